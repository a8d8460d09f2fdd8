package saving

import (
	"runtime"

	"golang.org/x/sys/cpu"

	"github.com/graphnb/graphnb/graphops/gemm"
)

// CPUClass returns the class of the CPU, whose code paths determine the last bits of sums: a run
// resumed within one class has the same bits. Runs with bfloat16 products have separate classes
// for the instructions that multiply.
func CPUClass(bf16 bool) string {
	if bf16 {
		return CPUClass(false) + "-bf16-" + gemm.BF16()
	}
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
