package nbtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// CellRun is one execution of a cell by [Env.Interrupt].
type CellRun struct {
	Status         string // "ok", "error" or "aborted"
	Seconds        float64
	Updates        int // number of updates of all displays
	Stdout, Stderr string
	Shown          string // the text displayed last

	// For an interrupted cell: the number of its workers before, and the seconds from the interrupt
	// until no worker was left and until the cell had ended. Gone is nil if workers were left after
	// 10 s.
	Workers int
	Gone    *float64
	Idle    float64
}

// Interrupt runs code in a cell, interrupts it with Jupyter's interrupt request after that many
// updates of its display, once that shows a text, and runs the same cell again to its end.
func (e *Env) Interrupt(t testing.TB, dir, code string, updates int, shows string) (first, second CellRun) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cell.go.txt")
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := e.script(t, nil, "interrupt.py", "--kernel", KernelName, "--dir", dir, "--updates", strconv.Itoa(updates), "--shows", shows, file)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ First, Second CellRun }
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("nbtest: what interrupt.py printed: %v\n%s", err, out)
	}
	return r.First, r.Second
}
