//go:build !linux

package entry

func EndWithKernel() {}
