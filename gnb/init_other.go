//go:build !linux

package gnb

func endWithKernel() {}
