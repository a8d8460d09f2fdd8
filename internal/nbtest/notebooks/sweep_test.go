package notebooks_test

import (
	"bytes"
	"image"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of sweeps runs in a real kernel: a picture and a table a sweep that
// change while it goes, trials that are stopped, and the best one found again.
func TestSweepNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/sweep.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_SMALL=1", "GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if v, test := percent(t, r, "validation"), percent(t, r, "test"); v < 60 || test < v-15 {
		t.Errorf("%v %% on validation and %v %% on test", v, test)
	}
	for _, want := range []string{
		`tpe search of sage on planted: done, 16 trials`, `each explains alone: `, `stopped: \d+ of 24, after \d+ epochs in all instead of 216`,
		`best: trial \d+ with \[lr `, `run := gnb.Must\(gnb.Train\(ctx, ds, gnb.SAGE, o\)\)\n`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout()) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	if strings.Contains(r.Stdout(), "stopped: 0 of") {
		t.Error("no trial was stopped")
	}
	panels := 0
	for id, d := range r.Displays {
		if strings.HasPrefix(id, "gnb_") {
			panels++
			if d.Displays != 1 || d.DistinctUpdates < 2 {
				t.Errorf("cell %d: the panel was shown anew %d times and changed %d times, want once and at least 2", d.Cell, d.Displays, d.DistinctUpdates)
			}
		}
	}
	if panels != 2 {
		t.Errorf("%d panels, want 2", panels)
	}
	for i, f := range figures(t, r.Executed, 2) {
		img, _, err := image.Decode(bytes.NewReader(f))
		if err != nil {
			t.Fatalf("figure %d: %v", i, err)
		}
		if n := nbtest.Drawn(img); n < 1000 {
			t.Errorf("figure %d: %d pixels differ from its background, want more than 1000", i, n)
		}
	}
}
