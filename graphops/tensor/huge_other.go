//go:build !linux

package tensor

func hugePages([]float32) {}
