//go:build cuda && linux && cgo

package plan

func init() { EnableGPUs() }
