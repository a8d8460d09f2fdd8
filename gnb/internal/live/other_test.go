//go:build !(linux || darwin)

package live

func fakeCell() bool { return false }
