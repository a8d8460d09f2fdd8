package nbtest

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNotebookRuns(t *testing.T) {
	r := Setup(t).Run(t, "testdata/runs.ipynb", Options{})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	// The kernel builds the third cell, whose imports are those of the second, without "go build", and its build ID says so.
	out := r.Stdout()
	if runtime.GOOS == "linux" {
		var found bool
		if out, found = strings.CutSuffix(out, "relink\n"); !found {
			t.Error("the third cell was built with \"go build\"")
		}
	}
	if want := "49 1\nfrom the shell\n64\n81\n"; out != want {
		t.Errorf("the cells wrote %q, want %q", r.Stdout(), want)
	}
	if len(r.Cells) != 4 || r.Cells[0].Index != 1 {
		t.Fatalf("cells %+v", r.Cells)
	}
	for _, c := range r.Cells {
		if c.FirstOutput < 0 || c.FirstOutput > c.Seconds || c.Error != "" || c.Source == "" {
			t.Errorf("cell %+v", c)
		}
	}
	b, err := os.ReadFile(r.Executed)
	if err != nil || !strings.Contains(string(b), `"49 1\n"`) {
		t.Errorf("the executed notebook lacks the outputs (%v): %s", err, b)
	}
}

// A failure of a cell of any kind fails the run, and the reason names the failure.
func TestNotebookFails(t *testing.T) {
	env := Setup(t)
	for _, tc := range []struct {
		notebook string
		ran      int // number of cells that ran, including the failing one
		reasons  []string
	}{
		{"compile", 2, []string{"cell 1", `cannot use "text"`, "Line 2"}},
		{"panic", 1, []string{"cell 0", "assignment to entry in nil map", "exit status 2"}},
		{"exit", 1, []string{"exit status 3"}},
		{"shell", 1, []string{"!test 1 = 2", "exit status 1"}},
		{"hang", 1, []string{"still running after 2 s"}},
	} {
		t.Run(tc.notebook, func(t *testing.T) {
			t.Parallel()
			timeout := time.Minute
			if tc.notebook == "hang" {
				timeout = 2 * time.Second
			}
			r := env.Run(t, "testdata/"+tc.notebook+".ipynb", Options{Timeout: timeout})
			if r.Err() == nil {
				t.Fatal("the run did not fail")
			}
			for _, want := range tc.reasons {
				if !strings.Contains(r.Failure, want) {
					t.Errorf("the reason lacks %q:\n%s", want, r.Failure)
				}
			}
			if len(r.Cells) != tc.ran || r.Cells[tc.ran-1].Error == "" {
				t.Errorf("%d cells ran, want %d, the last with an error: %+v", len(r.Cells), tc.ran, r.Cells)
			}
			if _, err := os.Stat(r.Executed); err != nil {
				t.Errorf("the output before the failure was not kept: %v", err)
			}
		})
	}
}

// The message stream distinguishes updates; the saved notebook holds only the last one.
func TestDisplaysAreCounted(t *testing.T) {
	r := Setup(t).Run(t, "testdata/display.ipynb", Options{})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	d, ok := r.Displays["panel"]
	if !ok || d.Displays != 1 || d.Updates != 5 || d.DistinctUpdates != 3 || len(d.Times) != 5 || !slices.IsSorted(d.Times) || !slices.Equal(d.MIME, []string{"text/plain"}) {
		t.Errorf("displays %+v", r.Displays)
	}
}

// However a kernel ends, its cell, the processes that the cell started (including orphaned ones and
// those in their own sessions) and its temporary files are removed.
func TestKernelLeavesNothing(t *testing.T) {
	env := Setup(t)
	for _, way := range []string{"restart", "kill-gonb", "kill-kernel", "kill-group", "shutdown"} {
		t.Run(way, func(t *testing.T) {
			out, err := env.script(t, nil, "kill.py", "--kernel", KernelName, "--way", way)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Before  int
				Left    []string
				Files   []string
				Seconds float64
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			// gnb kernel, its guard, gonb, the cell and four sleeping processes
			if got.Before < 8 {
				t.Errorf("only %d processes ran before: the search finds too little", got.Before)
			}
			if len(got.Left) > 0 || len(got.Files) > 0 {
				t.Errorf("after 5 s there are still the processes %q and the files %q", got.Left, got.Files)
			}
			t.Logf("%d processes gone after %.2f s", got.Before, got.Seconds)
		})
	}
}
