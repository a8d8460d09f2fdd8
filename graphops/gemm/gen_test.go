package gemm

import (
	"os/exec"
	"testing"
)

// The kernels in the tree are those that gen.go writes.
func TestKernelsAreGenerated(t *testing.T) {
	if out, err := exec.Command("go", "run", "gen.go", "gen_bf16.go", "-check").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
