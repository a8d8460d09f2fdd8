//go:build !linux

package mapped

func hugePages([]byte) {}

// HugePages does nothing on this system.
func HugePages([]byte) {}
