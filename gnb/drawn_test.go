package gnb_test

import (
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/tbevents/tbread"
	"github.com/graphnb/graphnb/internal/testneed"
)

// drawing logs one of everything that can be looked at.
var drawing = gnb.Program("test.drawing", func(w *gnb.Worker, a drawArgs) error {
	for epoch := range w.Epochs(a.Epochs) {
		h := figure.Histogram{Values: []float64{float64(epoch), float64(epoch + 1)}}
		w.Log("weights", h, "score", epoch, "mistakes/of epoch", figure.Table{Head: []string{"node"}, Rows: [][]string{{"7, or so"}}})
		w.Log("picture", image.NewGray(image.Rect(0, 0, 8, 4)), "both", figure.New("both").Bars(figure.Bars{}))
		if a.Ragged {
			w.Log("ragged", figure.Table{Rows: [][]string{{"1"}}})
		}
		pauses{a.At}.point(w, "end")
	}
	return nil
})

type drawArgs struct {
	Epochs int
	Ragged bool
	At     string
}

// Charts, tables and pictures that a program logs are in the run's metrics, its directory and its file for TensorBoard.
func TestLogDrawn(t *testing.T) {
	testneed.NotShort(t, "it trains for 100 epochs")
	ds := load(t, smallSet)
	run, err := gnb.Launch(t.Context(), drawing, drawArgs{Epochs: 100}, gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run"), TensorBoard: true})
	if err != nil {
		t.Fatal(err)
	}
	var names, last []string
	var weights []float64
	err = run.Events(func(e runs.Event) {
		if e.Drawn == nil {
			return
		}
		if !slices.Contains(names, e.Drawn.Name) {
			names = append(names, e.Drawn.Name)
		}
		if e.Drawn.Name == "weights" {
			weights = append(weights, e.Drawn.Edges[0])
		}
		if e.Epoch == 99 {
			last = append(last, e.Drawn.Kind)
		}
	})
	slices.Sort(last)
	if err != nil || !slices.Equal(names, []string{"weights", "mistakes/of epoch", "picture", "both"}) || !slices.Equal(last, []string{"chart", "histogram", "picture", "table"}) {
		t.Errorf("the metrics have the drawings %q, the last ones %q (%v)", names, last, err)
	}
	// The first 64 and then every other one; the last one was kept at the end.
	if n := len(weights); n != 64+18+1 || weights[63] != 63 || weights[64] != 64 || weights[65] != 66 || weights[n-1] != 99 {
		t.Errorf("%d histograms are kept: %v", n, weights)
	}
	if run.Value("score") != 99 {
		t.Errorf("the number beside them is %v", run.Value("score"))
	}
	files, err := filepath.Glob(filepath.Join(run.Dir, "drawn", "*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if err != nil || !slices.Equal(files, []string{"both.png", "mistakes_of_epoch.csv", "picture.png", "weights.png"}) {
		t.Errorf("the run's directory has the drawings %q (%v)", files, err)
	}
	if b, err := os.ReadFile(filepath.Join(run.Dir, "drawn", "mistakes_of_epoch.csv")); err != nil || string(b) != "node\n\"7, or so\"\n" {
		t.Errorf("the table is %q (%v)", b, err)
	}
	events := strings.Join(tbread.Lines(t, tbread.File(t, run.Dir)), "\n")
	for _, want := range []string{`.5.1.1 "log/weights"`, `.5.1.5 "\t`, `log/picture`, `| node |\n|---|\n| 7, or so |`, `log/both`} {
		if !strings.Contains(events, want) {
			t.Errorf("the file for TensorBoard lacks %s", want)
		}
	}

	_, err = gnb.Launch(t.Context(), drawing, drawArgs{Epochs: 1, Ragged: true}, gnb.LaunchOptions{Data: ds, Workers: 1, Threads: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run")})
	if err == nil || !strings.Contains(err.Error(), `gnb: Log of "ragged" at drawn_test.go:`) || !strings.Contains(err.Error(), "there are 0 column names and row 0 has 1 cell") {
		t.Errorf("a ragged table: %v", err)
	}
}
