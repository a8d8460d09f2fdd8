package notebooks_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// leastUpdates is how often a panel has to change: 10 times, or less within less than a
// second, for there are at most 20 updates a second, and machines grow faster.
func leastUpdates(d nbtest.Display) int {
	return int(min(10, 2+8*(d.Times[len(d.Times)-1]-d.Times[0])))
}

// The first notebook runs in a real kernel: panels that change while it trains,
// one figure each in the saved notebook, and accuracies that show what the graph
// is worth.
func TestQuickstartNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	r := env.Run(t, "../../../notebooks/quickstart.ipynb", nbtest.Options{})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name   string
		lo, hi float64
	}{{"SAGE", 85, 100}, {"MLP", 50, 65}} {
		m := regexp.MustCompile(want.name + ` accuracy: ([\d.]+) %`).FindStringSubmatch(r.Stdout())
		if m == nil {
			t.Fatalf("no %s accuracy in what the cells wrote:\n%s", want.name, r.Stdout())
		}
		if a, _ := strconv.ParseFloat(m[1], 64); a < want.lo || a > want.hi {
			t.Errorf("%s accuracy %v %%, want %v to %v", want.name, a, want.lo, want.hi)
		}
	}
	panels := 0
	for id, d := range r.Displays {
		if !strings.HasPrefix(id, "gnb_") {
			continue
		}
		panels++
		if d.Displays != 1 {
			t.Errorf("cell %d: the panel was shown anew %d times, want once and then updates in place", d.Cell, d.Displays)
		}
		if least := leastUpdates(d); strings.Contains(cellSource(r, d.Cell), "gnb.SAGE") && d.DistinctUpdates < least {
			t.Errorf("cell %d: %d different updates of its panel, want at least %d", d.Cell, d.DistinctUpdates, least)
		}
		// Over a second and more: a short run's last update does not wait.
		if n := len(d.Times); n > 1 && d.Times[n-1]-d.Times[0] > 1 && float64(n-1)/(d.Times[n-1]-d.Times[0]) > 25 {
			t.Errorf("cell %d: %d updates within %.2f s, want at most 20 a second", d.Cell, n, d.Times[n-1]-d.Times[0])
		}
	}
	if panels != 5 {
		t.Errorf("%d panels, want 5", panels)
	}
	if m := regexp.MustCompile(`karate: (\d+) of 20`).FindStringSubmatch(r.Stdout()); m == nil || len(m[1]) < 2 || m[1] < "16" {
		t.Errorf("karate: %q, want at least 16 of 20 right", m)
	}
	// Fay has chess players for friends, Lou those who play go.
	if !strings.Contains(r.Stdout(), "line 7 of nodes.csv: chess\nline 13 of nodes.csv: go\n") {
		t.Errorf("the friends' games are not what their friends play:\n%s", r.Stdout())
	}
	for i, f := range figures(t, r.Executed, 5) {
		img, _, err := image.Decode(bytes.NewReader(f))
		if err != nil {
			t.Fatalf("figure %d: %v", i, err)
		}
		if n := nbtest.Drawn(img); n < 1000 {
			t.Errorf("figure %d: %d pixels differ from its background, want more than 1000", i, n)
		}
	}
}

func cellSource(r *nbtest.Result, index int) string {
	for _, c := range r.Cells {
		if c.Index == index {
			return c.Source
		}
	}
	return ""
}

// figures are the PNG outputs of an executed notebook, of which each cell may
// have one, and which are to be so many.
func figures(t *testing.T, notebook string, want int) [][]byte {
	t.Helper()
	var out [][]byte
	for i, c := range cellFigures(t, notebook) {
		if len(c) > 1 {
			t.Errorf("cell %d keeps %d figures, want one", i, len(c))
		}
		out = append(out, c...)
	}
	if len(out) != want {
		t.Errorf("the saved notebook keeps %d figures, want %d", len(out), want)
	}
	return out
}

// cellFigures are the figures that each cell of an executed notebook keeps.
func cellFigures(t *testing.T, notebook string) [][][]byte {
	t.Helper()
	raw, err := os.ReadFile(notebook)
	if err != nil {
		t.Fatal(err)
	}
	var nb struct {
		Cells []struct {
			Outputs []struct {
				Data map[string]any
			}
		}
	}
	if err := json.Unmarshal(raw, &nb); err != nil {
		t.Fatal(err)
	}
	out := make([][][]byte, len(nb.Cells))
	for i, c := range nb.Cells {
		for _, o := range c.Outputs {
			s, ok := o.Data["image/png"].(string)
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
			if err != nil {
				t.Fatalf("cell %d: %v", i, err)
			}
			out[i] = append(out[i], b)
		}
	}
	return out
}

// A cell of somebody's notebook that trains is interrupted: a checkpoint, all
// workers gone within 5 s, and the same cell again goes on to the end.
func TestInterruptInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	dir := t.TempDir()
	const cell = `import "github.com/graphnb/graphnb/gnb"

%%
ctx := context.Background()
ds := gnb.Must(gnb.Load(ctx, "planted?nodes=4000"))
run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Seed: 2, RunDir: "run"}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 150, Batch: 200}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
fmt.Println("epochs:", run.Result.Epochs)
`
	first, second := env.Interrupt(t, dir, cell, 8, "step ")
	if first.Status != "error" || !strings.Contains(first.Shown+first.Stderr, "interrupted") || !strings.Contains(first.Shown+first.Stderr, "checkpoint") {
		t.Errorf("the interrupted cell ended as %q and does not say that it was interrupted and where its checkpoint is:\n%s\n%s", first.Status, first.Shown, first.Stderr)
	}
	if strings.Contains(first.Shown+first.Stderr, "failed") {
		t.Errorf("the interrupted cell calls the interrupt a failure:\n%s\n%s", first.Shown, first.Stderr)
	}
	if first.Workers != 2 {
		t.Errorf("%d workers before the interrupt, want 2", first.Workers)
	}
	if first.Gone == nil || *first.Gone > 5 {
		t.Errorf("workers were left 5 s after the interrupt (%v)", first.Gone)
	}
	if second.Status != "ok" || !strings.Contains(second.Stdout, "epochs: 150") || !strings.Contains(second.Shown+second.Stdout, "resuming run") {
		t.Errorf("the cell's second run ended as %q and did not go on:\n%s\n%s\n%s", second.Status, second.Stdout, second.Shown, second.Stderr)
	}
	r, err := runs.Open(dir + "/run")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := r.Steps()
	if err != nil {
		t.Fatal(err)
	}
	if want := 150 * 10; len(steps) != want || r.Result.Steps != int64(want) {
		t.Errorf("%d steps in the metrics and %d in the result, want %d: none lost, none twice", len(steps), r.Result.Steps, want)
	}
}

// The statements of a cell before it trains run once, also with 4 workers; and common mistakes in a
// notebook are errors: a model declared inside main, or twice.
func TestCellsInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	dir := t.TempDir()
	r := env.Run(t, "testdata/cells.ipynb", nbtest.Options{Dir: dir})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "lines.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(lines), "\n"); n != 1 {
		t.Errorf("the cell's line was written %d times, want once", n)
	}
	for _, want := range []string{
		"workers: 4",
		`inside main: gnb: model "inside" is declared inside main`, "declare it at package level",
		`twice: gnb: two models are named "twice"`, "%rm",
	} {
		if !strings.Contains(r.Stdout(), want) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
}
