package notebooks_test

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// In a cell the doctor looks at the kernel that the cell runs in, and finds it well.
func TestDoctorInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	const cell = "!gnb doctor"
	first, _ := env.Interrupt(t, t.TempDir(), cell, 1<<30, "")
	if first.Status != "ok" {
		t.Fatalf("the cell ended as %q:\n%s\n%s", first.Status, first.Stdout, first.Stderr)
	}
	for _, want := range []string{"ok    go ", "ok    jupyter ", "ok    kernel         \"Go (GraphNB, tests)\"", "ok    memory ", "ok    shared memory ", "ok    disk "} {
		if !strings.Contains(first.Stdout, want) {
			t.Errorf("the cell did not write %q:\n%s", want, first.Stdout)
		}
	}
}
