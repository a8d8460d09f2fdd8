package gnb_test

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/gemm"
)

// Training with products in bfloat16 is as accurate as in float32. It has other bits, which are the
// same on any number of threads.
func TestPrecision(t *testing.T) {
	ds := load(t, smallSet)
	with := func(precision string, threads int) *runs.Run {
		return train(t, ds, gnb.TrainOptions{
			LaunchOptions:    gnb.LaunchOptions{Precision: precision, Workers: 1, Threads: threads, Seed: 3},
			OptimizerOptions: gnb.OptimizerOptions{Epochs: 8, LR: 0.02},
			ModelOptions:     gnb.ModelOptions{Hidden: 32, Dropout: 0.5},
		})
	}
	full, half, again := with("", 1), with("bf16", 1), with("bf16", 2)
	if full.Config.Precision != "float32" || half.Config.Precision != "bf16" {
		t.Errorf("the runs record the precisions %q and %q", full.Config.Precision, half.Config.Precision)
	}
	// The way of multiplying bfloat16 determines the bits, so the run records it for resuming.
	if want := full.Config.CPU + "-bf16-" + gemm.BF16(); half.Config.CPU != want {
		t.Errorf("the run in bfloat16 has the CPU class %q, want %q", half.Config.CPU, want)
	}
	if half.Loss() == full.Loss() || half.Loss() != again.Loss() {
		t.Errorf("losses %v in float32, %v and %v in bfloat16 on 1 and 2 threads; want the bfloat16 losses equal, and different from float32", full.Loss(), half.Loss(), again.Loss())
	}
	if d := math.Abs(half.TestAccuracy() - full.TestAccuracy()); d > 0.03 || full.TestAccuracy() < 0.7 {
		t.Errorf("test accuracy %v in float32, %v in bfloat16", full.TestAccuracy(), half.TestAccuracy())
	}
}
