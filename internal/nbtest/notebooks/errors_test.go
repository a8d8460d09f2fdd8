package notebooks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// notebookOf writes a notebook of code cells.
func notebookOf(t *testing.T, cells ...string) string {
	t.Helper()
	return notebookWith(t, map[string]any{}, cells...)
}

// notebookWith returns a notebook whose cells have the given metadata.
func notebookWith(t *testing.T, meta map[string]any, cells ...string) string {
	t.Helper()
	type cell struct {
		Type    string         `json:"cell_type"`
		ID      string         `json:"id"`
		Meta    map[string]any `json:"metadata"`
		Source  string         `json:"source"`
		Count   *int           `json:"execution_count"`
		Outputs []any          `json:"outputs"`
	}
	var nb struct {
		Cells  []cell         `json:"cells"`
		Meta   map[string]any `json:"metadata"`
		Format int            `json:"nbformat"`
		Minor  int            `json:"nbformat_minor"`
	}
	nb.Format, nb.Minor = 4, 5
	nb.Meta = map[string]any{"kernelspec": map[string]string{"name": "graphnb", "display_name": "Go (GraphNB)", "language": "go"}}
	for i, c := range cells {
		nb.Cells = append(nb.Cells, cell{"code", string(rune('a' + i)), meta, c, nil, []any{}})
	}
	raw, err := json.Marshal(nb)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made.ipynb")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// oddCell is a cell with models that go wrong in their layer, in ways that compile.
const oddCell = `import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)

type odd struct {
	C   *nn.SAGEConv
	Bad string
}
func (m *odd) NumLayers() int { return 1 }
func (m *odd) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	switch m.Bad {
	case "panics":
		var none []int
		return f.Scale(h, float64(none[7]))
	case "exits":
		os.Exit(3)
	case "killed":
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		time.Sleep(time.Minute)
	}
	return m.C.Forward(f, b, h)
}
func goes(bad string, in int) func(s gnb.ModelConfig) *odd {
	return func(s gnb.ModelConfig) *odd { return &odd{nn.NewSAGE(in, s.Out), bad} }
}
var (
	Wide = gnb.Model("wide", goes("", 3))
	Panics = gnb.Model("panics", goes("panics", 34))
	Exits = gnb.Model("exits", goes("exits", 34))
	Killed = gnb.Model("killed", goes("killed", 34))
)

%%
ctx := context.Background()
`

// What goes wrong in a cell is one message, the last line: what, where and the way out, without a Go
// trace; that is printed before it on demand. A cell whose
// line with %% is missing says so, a failed cell gives its status once, and a package-level
// variable with the name of one of our packages is named as the cause.
func TestErrorsInNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	train := func(model string) string {
		return oddCell + `ds := gnb.Must(gnb.Load(ctx, "karate"))
gnb.Must(gnb.Train(ctx, ds, ` + model + `, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))`
	}
	const rank = `multigpu: rank [01] \(pid \d+\) failed at epoch 0, step 0, stage forward: `
	cases := []struct {
		name, cell string
		want       string // a pattern of the message
		trace      string // part of the trace, if there is one
		env        string
	}{
		{"shape", train("Wide"), rank + `gnb: model "wide": nn: layer 0 of \*main\.odd: tensor: Linear: x is \[\d+,34\] and the weight is \[2,3\] \[out,in\]: x must have 3 columns`, "", ""},
		{"dataset", oddCell + `gnb.Must(gnb.Load(ctx, "coar"))`, `dataset: there is no dataset "coar"; did you mean cora\?`, "", ""},
		{"file", oddCell + `gnb.Must(gnb.Load(ctx, "./nowhere"))`, `dataset: .*nowhere`, "", ""},
		// GoNB finds the cell's line.
		{"panic", train("Panics"), `Line 15.*main\.go:\d+\n` + rank + `panic: runtime error: index out of range \[7\] with length 0, at line \d+ ` + "`return f.Scale\\(h, float64\\(none\\[7\\]\\)\\)`\\s*$", "main.(*odd).Layer", ""},
		{"panic, traced", train("Panics"), `main\.\(\*odd\)\.Layer(?s:.*)` + rank + `panic: [^\n]*\s*$`, "main.(*odd).Layer", "GNB_TRACE=1"},
		{"exit", train("Exits"), rank + `it ended with status 3: something called os\.Exit, or log\.Fatal`, "", ""},
		{"killed", train("Killed"), rank + `it was killed by signal 9 \(killed\), from outside the run: by a user, or by the kernel because memory ran out \(smaller batches and fewer workers need less\)`, "", ""},
		{"devices", oddCell + `ds := gnb.Must(gnb.Load(ctx, "karate"))
gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Device: "gpu"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))`, `gnb: Device is "gpu"; it is "auto", "cpu" or "cuda"`, "", ""},
	}
	// One kernel for each environment, which goes on after a failed cell.
	cells := map[string][]string{}
	for _, tc := range cases {
		cells[tc.env] = append(cells[tc.env], tc.cell)
	}
	cells[""] = append(
		cells[""],
		"import \"github.com/graphnb/graphnb/gnb\"\n\nctx := context.Background()\nds := gnb.Must(gnb.Load(ctx, \"karate\"))\n",
		"%%\nos.Exit(3)\n",
		"import \"github.com/graphnb/graphnb/gnb/monitor\"\n\nvar monitor = 3\n\n%%\nfmt.Println(monitor, monitor.Options{})\n",
	)
	ran, saved := map[string][]nbtest.Cell{}, map[string][]string{}
	for name, some := range cells {
		r := env.Run(t, notebookWith(t, map[string]any{"tags": []string{"raises-exception"}}, some...), nbtest.Options{Env: []string{name}})
		if len(r.Cells) != len(some) {
			t.Fatalf("%d of %d cells ran: %v", len(r.Cells), len(some), r.Err())
		}
		ran[name], saved[name] = r.Cells, outputs(t, r.Executed)
	}
	for _, tc := range cases {
		cell, outputs := ran[tc.env][0], saved[tc.env][0]
		ran[tc.env], saved[tc.env] = ran[tc.env][1:], saved[tc.env][1:]
		t.Run(tc.name, func(t *testing.T) {
			if cell.Error == "" {
				t.Fatalf("the cell did not fail: %+v", cell)
			}
			stderr := cell.Stderr
			if !regexp.MustCompile(tc.want).MatchString(stderr) {
				t.Errorf("the cell's error does not match %q:\n%s", tc.want, stderr)
			}
			traced := tc.env != ""
			if strings.Contains(stderr, "goroutine ") != traced {
				t.Errorf("a Go trace in the message: %v, want %v:\n%s", !traced, traced, stderr)
			}
			lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(stderr, "exit status 1", "")), "\n")
			most := 1
			if tc.trace != "" {
				most = 2 // and the place
			}
			if !traced && len(lines) > most {
				t.Errorf("the message has %d lines:\n%s", len(lines), stderr)
			}
			folded := strings.Contains(outputs, `<details><summary>trace`)
			if want := tc.trace != "" && !traced; folded != want || want && !strings.Contains(outputs, tc.trace) {
				t.Errorf("a trace is folded below the message: %v, want %v", folded, want)
			}
		})
	}
	missing, status, hidden := ran[""][0], ran[""][1], ran[""][2]
	if want := "expected declaration, found ctx; statements stand below a line with %% in a cell, and only declarations above it: is the line with %% missing?"; missing.Error == "" || !strings.Contains(missing.Error+missing.Stderr, want) {
		t.Errorf("the failure does not say %q: %+v", want, missing)
	}
	if strings.Contains(status.Stderr, "exit status") || !strings.Contains(status.Error, "exit status 3") {
		t.Errorf("the status of a cell: %+v", status)
	}
	if want := "monitor is the name of a package of GraphNB, and the cells declare something else by it"; hidden.Error == "" || !strings.Contains(hidden.Error+hidden.Stderr, want) {
		t.Errorf("the failure does not say %q: %+v", want, hidden)
	}
}

// outputs returns the outputs of each code cell of a saved notebook, as JSON.
func outputs(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var nb struct {
		Cells []struct {
			Outputs json.RawMessage `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(raw, &nb); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range nb.Cells {
		all = append(all, string(c.Outputs))
	}
	return all
}
