package saving

import (
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/simd"
)

// CPUClass returns the class of the CPU, whose code paths determine the last bits of sums: a run
// resumed within one class has the same bits. Runs with bfloat16 products have separate classes
// for the instructions that multiply.
func CPUClass(bf16 bool) string {
	if bf16 {
		return simd.Class() + "-bf16-" + gemm.BF16()
	}
	return simd.Class()
}
