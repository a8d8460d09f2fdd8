//go:build !linux

package mapped

func hugePages([]byte) {}

// HugePages does nothing here.
func HugePages([]byte) {}
