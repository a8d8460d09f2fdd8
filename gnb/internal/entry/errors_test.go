package entry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/multigpu"
)

func TestPrintError(t *testing.T) {
	failed := fmt.Errorf("while training: %w", &multigpu.WorkerError{
		Rank: 1, Epoch: 0, Step: 3, Stage: "forward", Reason: "panic: oh, at main.go:27",
		Stack: "goroutine 1 [running]:\nruntime/debug.Stack()\n\tstack.go:26\npanic({0x1, 0x2})\n\tpanic.go:9\nmain.again()\npanic({0x1, 0x2})\n\tpanic.go:9\nmain.layer()\n\tmain.go:27\n",
	})
	const message = "while training: multigpu: rank 1 failed at epoch 0, step 3, stage forward: panic: oh, at "
	const trace = "goroutine 1 [running]:\npanic({0x1, 0x2})\n\tpanic.go:9\nmain.layer()\n\t"
	for _, c := range []struct {
		name, env, cells string
		err              error
		want             string
	}{
		{"plain", "", "", errors.New("no"), "no\n"},
		{"plain, traced", "1", "", errors.New("no"), "no\n"},
		{"panic", "", "", failed, "(GNB_TRACE=1 shows the trace)\n" + message + "main.go:27\n"},
		{"panic, not traced", "0", "", failed, "(GNB_TRACE=1 shows the trace)\n" + message + "main.go:27\n"},
		{"panic, traced", "1", "", failed, trace + "main.go:27\n" + message + "main.go:27\n"},
		{"several lines", "", "", errors.Join(errors.New("first"), errors.New("second")), "first; second\n"},
		// For a panic in a cell, another function shows the trace, folded.
		{"panic in a cell", "", "/tmp/gonb_1f/main.go", failed, message + "main.go:27\n"},
		{
			"places in cells", "", "/tmp/gonb_1f/main.go", errors.New("rank 0 is at line 3 `w.Step(x)`, rank 1 at line 12 of the cells and line 3 `w.Step(x)`; line 4 is not one"),
			"  /tmp/gonb_1f/main.go:3\n  /tmp/gonb_1f/main.go:12\nrank 0 is at line 3 `w.Step(x)`, rank 1 at line 12 of the cells and line 3 `w.Step(x)`; line 4 is not one\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GNB_TRACE", c.env)
			var b strings.Builder
			printError(&b, c.err, c.cells)
			if b.String() != c.want {
				t.Errorf("printed %q, want %q", b.String(), c.want)
			}
		})
	}
	if h := foldedTrace(`<script>&`); !strings.Contains(h, "&lt;script&gt;&amp;") {
		t.Errorf("a trace is not escaped: %s", h)
	}
}
