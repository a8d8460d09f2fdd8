//go:build unix

package labtest

import (
	"regexp"
	"strings"
	"testing"
)

// shown holds the output of a code cell.
type shown struct {
	Text     string
	Pictures []int // the width of each picture, 0 if it could not be drawn
	Error    bool
	Outputs  int
	Busy     bool
}

// runState is the state of a run on disk.
type runState struct {
	State       string
	Checkpoints int
}

// TestJupyterLab opens one JupyterLab, and three notebooks in it: a server, an installed kernel and their start serve all.
func TestJupyterLab(t *testing.T) {
	small := "GNB_SMALL=1"
	if picturesDir() != "" {
		small = "GNB_SMALL=0"
	}
	lab := Start(t, append(measuredLimits(t), small)...)
	t.Run("Explore", func(t *testing.T) { explore(t, lab) })
	t.Run("Pictures", func(t *testing.T) { pictures(t, lab) })
	t.Run("Pointer", func(t *testing.T) { pointer(t, lab) })
}

// explore does what a user does in the notebook explore.ipynb: it runs all cells and sees the
// panel change. The button ■ in the middle of training ends the workers and keeps a checkpoint, and
// running all cells again resumes from it. The saved notebook shows the final figures even where it
// is not trusted.
func explore(t *testing.T, lab *Lab) {
	lab.Copy(t, "../../notebooks/explore.ipynb", "nodes=60000", "nodes=30000") // trains less, in the same form
	// On a fast machine the rest of an interrupted run is short, and its panel has at most 20
	// updates per second.
	const looks, looksResumed = 12, 4
	var f struct {
		Version       string
		Workers       int
		Looks         int
		Gone          float64
		Interrupted   shown
		Runs          []runState
		Interruptions []runState `json:"runsInterrupted"`
		LooksResumed  int
		Most          int
		Cells         []shown
		Bytes         int
		Saved         [][]string
		Trusted       []bool
		Reopened      []shown
	}
	lab.Script(t, "explore.mjs", map[string]any{"notebook": "explore.ipynb", "looks": looks, "looksResumed": looksResumed}, &f)
	t.Logf("JupyterLab %s: %d states of the panel, workers ended after %.2f s; %d states in the second run; saved %d bytes",
		f.Version, f.Looks, f.Gone, f.LooksResumed, f.Bytes)

	if f.Looks < looks || f.LooksResumed < looksResumed {
		t.Errorf("the panel was seen to change %d and %d times, want %d and %d", f.Looks, f.LooksResumed, looks, looksResumed)
	}
	if f.Workers != 2 {
		t.Errorf("%d workers trained before the interrupt, want 2", f.Workers)
	}
	if f.Gone < 0 || f.Gone > 5 {
		t.Errorf("the workers ended %.1f s after the interrupt (-1: never), want at most 5", f.Gone)
	}
	if !strings.Contains(f.Interrupted.Text, "interrupted") || f.Interrupted.Error || len(f.Interrupted.Pictures) != 1 {
		t.Errorf("the interrupted cell shows %+v; want a panel that says so", f.Interrupted)
	}
	if strings.Contains(f.Interrupted.Text, "failed") {
		t.Errorf("the interrupted cell calls the interrupt a failure: %s", f.Interrupted.Text)
	}
	if r := f.Interruptions; len(r) != 1 || r[0].State != "interrupted" || r[0].Checkpoints == 0 {
		t.Errorf("after the interrupt the runs are %+v; want one interrupted, with a checkpoint: the cells that wait are not run", r)
	}

	all := ""
	for i, c := range f.Cells {
		all += c.Text + "\n"
		if c.Error || c.Busy || c.Text == "" {
			t.Errorf("cell %d shows in its second run: %+v", i, c)
		}
	}
	for _, want := range []string{
		`30,000 nodes`, `homophily: edge 0\.6\d`, `around node \d+`, `resuming run`,
		`(?m)^SAGE: [5-9]\d\.\d %`, `MLP: [12]\d\.\d %`, `args\.Fanouts`, `16 or more neighbours: [6-9]\d`, `after 50 epochs: [5-9]\d`,
	} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("no cell shows %q:\n%s", want, all)
		}
	}
	// The first run was resumed and not started again; the cells that waited when it was interrupted trained only later.
	if len(f.Runs) != 3 {
		t.Errorf("%d runs, want 3: %+v", len(f.Runs), f.Runs)
	}
	for _, r := range f.Runs {
		if r.State != "done" {
			t.Errorf("a run's state is %q", r.State)
		}
	}

	if f.Bytes > 550_000 {
		t.Errorf("the saved notebook has %d bytes", f.Bytes)
	}
	if len(f.Reopened) != len(f.Cells) || len(f.Trusted) != len(f.Cells) {
		t.Fatalf("the reopened notebook has %d cells, before %d", len(f.Reopened), len(f.Cells))
	}
	figures := 0
	for i, c := range f.Reopened {
		if f.Trusted[i] && f.Cells[i].Outputs > 0 {
			t.Errorf("cell %d is trusted", i)
		}
		if len(c.Pictures) != len(f.Cells[i].Pictures) {
			t.Errorf("cell %d shows %d figures if the notebook is not trusted, and %d where it ran", i, len(c.Pictures), len(f.Cells[i].Pictures))
		}
		for _, width := range c.Pictures {
			figures++
			if width < 300 {
				t.Errorf("cell %d: a figure is %d pixels wide", i, width)
			}
		}
		if !strings.Contains(squeeze(c.Text), squeeze(lastLine(f.Cells[i].Text))) {
			t.Errorf("cell %d shows, if the notebook is not trusted,\n%s\nand where it ran\n%s", i, c.Text, f.Cells[i].Text)
		}
	}
	// The figures are the dataset, a batch, three runs (one of them twice: trained and resumed) and, if present,
	// the comparison.
	if figures < 6 {
		t.Errorf("%d figures, want at least 6", figures)
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
