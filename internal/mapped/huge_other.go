//go:build !linux

package mapped

func hugePages([]byte) {}
