//go:build !linux

package mapped

func populate([]byte, func() bool) bool { return false }
