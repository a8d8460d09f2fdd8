package simd

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// Class returns the class of the CPU, whose code paths determine the last bits of sums.
func Class() string {
	switch {
	case runtime.GOARCH != "amd64":
		return runtime.GOARCH
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW:
		return "amd64-avx512"
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return "amd64-avx2"
	}
	return "amd64"
}
