package tutorials

import (
	"os/exec"
	"testing"
)

// The table of lines and words in the README is what the notebooks have.
func TestCounts(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "python3", "count.py", "--check").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
