package nbtest

import (
	"encoding/json"
	"testing"
)

// After a cell that fails or is interrupted, the cells that wait are aborted; those sent later run.
// An interrupt is no error: the cell shows none.
func TestWaitingCellsAreAborted(t *testing.T) {
	env := Setup(t)
	out, err := env.script(t, nil, "waiting.py", "--kernel", KernelName, "--dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	type cell struct {
		Status, Ename, Stdout, Stderr string
		Errors                        int
	}
	var got map[string][]cell
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]struct {
		status, ename, stdout string
		errors                int
		next                  string
	}{
		"exit":               {"error", "ERROR", "", 1, "aborted"},
		"compile":            {"error", "ERROR", "", 1, "aborted"},
		"panic":              {"error", "ERROR", "", 1, "aborted"},
		"go on":              {"error", "ERROR", "", 1, "ok"},
		"interrupt":          {"error", "Interrupted", "runs\ninterrupted\n", 0, "aborted"},
		"interrupt handled":  {"error", "Interrupted", "runs\nsaved\n", 0, "aborted"},
		"interrupt shell":    {"ok", "", "runs\ninterrupted\n", 0, "aborted"},
		"interrupt compiler": {"error", "Interrupted", "", 0, "aborted"},
	} {
		cells := got[name]
		if len(cells) != 4 {
			t.Fatalf("%s: %d cells: %s", name, len(cells), out)
		}
		first := cells[0]
		if first.Status != want.status || first.Ename != want.ename || first.Stdout != want.stdout || first.Errors != want.errors {
			t.Errorf("%s: the cell ended as %+v, want %+v", name, first, want)
		}
		if want.errors == 0 && first.Stderr != "" {
			t.Errorf("%s: the interrupted cell has the red output %q", name, first.Stderr)
		}
		for _, c := range cells[1:3] {
			if c.Status != want.next || (c.Stdout == "42\n") != (want.next == "ok") || c.Errors > 0 {
				t.Errorf("%s: a waiting cell ended as %+v, want %q", name, c, want.next)
			}
		}
		if last := cells[3]; last.Status != "ok" || last.Stdout != "42\n" {
			t.Errorf("%s: a cell sent later ended as %+v", name, last)
		}
	}
}
