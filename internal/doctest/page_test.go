package doctest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// row is one line of the page's tables.
type row struct {
	number int
	line   int
	theirs []string // PyG's and DGL's cells
	ours   []string // codes of the last column
}

func rows(t *testing.T, path string) []row {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		c := Cells(line)
		if n, err := strconv.Atoi(c[0]); err == nil && len(c) == 4 {
			all = append(all, row{n, i + 1, c[1:3], Spans(c[3])})
		}
	}
	return all
}

var page = filepath.Join(root, "docs", "from-pyg-or-dgl.md")

// notRun are the rows that are compiled and not run, with why.
var notRun = map[int]string{1: "it downloads"}

// The page has forty lines of theirs, in Python, and of ours, and all of ours run, each in a program
// of its own where it is one's for a worker. That they compile TestDocumentationCompiles sees.
func TestFromPyGOrDGL(t *testing.T) {
	all := rows(t, page)
	if len(all) != 40 {
		t.Errorf("the page has %d lines, want 40", len(all))
	}
	var python []string
	for i, r := range all {
		if r.number != i+1 {
			t.Errorf("line %d of the page has the number %d, want %d", r.line, r.number, i+1)
		}
		if len(r.ours) == 0 {
			t.Errorf("number %d shows nothing of ours", r.number)
		}
		for _, cell := range r.theirs {
			python = append(python, Spans(cell)...)
		}
	}
	t.Run("python", func(t *testing.T) { parsePython(t, python) })
	t.Run("run", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it links a program, and starts some workers")
		}
		runRows(t, all)
	})
}

// parsePython says which lines are no Python.
func parsePython(t *testing.T, lines []string) {
	t.Helper()
	in, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("python3", "-c", `
import ast, json, sys
for line in json.load(sys.stdin):
    try: ast.parse(line.replace("…", "**etc"))
    except SyntaxError as e: print(f"{line!r} is no Python: {e}")`)
	c.Stdin = strings.NewReader(string(in))
	out, err := c.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%s%v", out, err)
	}
}

// harness runs row N in the way its kind needs: "main" in main, "worker" in a program, "batch" in a
// program's loop over batches. It gives the variables of Context values.
const harness = `package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/tensor"
)

type job struct {
	Row  int
	Kind string
}

var theRow = gnb.Program("page-row", func(worker *gnb.Worker, j job) error {
	w = worker
	ds, g = w.Dataset(), w.Dataset().Graph
	net = gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt = w.Adam(net, 0.01)
	if j.Kind == "worker" {
		theRows[j.Row]()
		return nil
	}
	for b = range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3}, Batch: 4, MaxSteps: 2}) {
		out = net.Forward(b)
		loss, f, block = b.Loss(out), out.Fwd(), b.Blocks[1]
		h = f.Input(block.NumSrc, 3, make([]float32, 3*block.NumSrc), tensor.SrcSpace(block))
		score = f.Input(block.NumEdges(), 1, make([]float32, block.NumEdges()), tensor.EdgeSpace(block))
		theRows[j.Row]()
	}
	return nil
})

func main() {
	flag.Parse()
	ctx = context.Background()
	ds = gnb.Must(gnb.Load(ctx, "karate"))
	g = ds.Graph
	src, dst, sums = []int32{0, 1, 2}, []int32{1, 2, 3}, []float64{1, 2}
	scores, labels = []float32{0.1, 0.9}, []int8{0, 1}
	own = &gnb.Dataset{Graph: g, Labels: ds.Labels, Meta: ds.Meta}
	run = gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{Workers: 1, Epochs: 1, Hidden: 4, Quiet: true}))
	ran := 0
	for _, j := range jobs {
		if j.Kind == "main" {
			theRows[j.Row]()
		} else if _, err := gnb.Launch(ctx, theRow, j, gnb.LaunchOptions{Data: ds, Workers: 2, Quiet: true}); err != nil {
			fmt.Println("number", j.Row, "failed:", err)
			os.Exit(1)
		}
		ran++
	}
	fmt.Println("ran", ran)
}
`

// runRows makes one program of all rows, builds it beside the module's own packages, and runs it.
func runRows(t *testing.T, all []row) {
	t.Helper()
	pieces, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	pieces = slices.DeleteFunc(pieces, func(p Piece) bool { return p.Kind != Block })
	blocks := len(pieces)
	for _, r := range all {
		if notRun[r.number] == "" {
			pieces = append(pieces, Piece{Span, filepath.Base(page), r.line, strings.Join(r.ours, "\n")})
		}
	}
	u, err := NewUnit(pieces)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"harness.go": harness, "context.go": u.ContextSource("main")}
	var jobs, table strings.Builder
	run := all[:0:0]
	for _, r := range all {
		if notRun[r.number] == "" {
			run = append(run, r)
		}
	}
	for i, p := range u.Parts {
		name := fmt.Sprintf("part%d", i)
		if i < blocks {
			files[name+".go"] = u.Source(p, "main", name)
			continue
		}
		n := run[i-blocks].number
		files[name+".go"] = u.Source(statements(p, run[i-blocks]), "main", name)
		fmt.Fprintf(&jobs, "\t{%d, %q},\n", n, kind(p))
		fmt.Fprintf(&table, "\t%d: %s,\n", n, name)
	}
	files["jobs.go"] = "package main\n\nvar jobs = []job{\n" + jobs.String() + "}\n\nvar theRows map[int]func()\n\nfunc init() {\n\ttheRows = map[int]func(){\n" + table.String() + "}\n}\n"
	out := build(t, files)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, out)
	c.Dir, c.Env = dir, append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
	text, err := c.CombinedOutput()
	if want := fmt.Sprintf("ran %d\n", len(run)); err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("the page's program ended with %v and wrote\n%swant %q at the end", err, text, want)
	}
}

// statements makes one of a row's codes each: a value alone is assigned to nothing.
func statements(p Part, r row) Part {
	lines := slices.Clone(r.ours)
	for i, line := range lines {
		if !strings.HasSuffix(line, ")") && !strings.Contains(line, "=") && !strings.Contains(line, "{ ") {
			lines[i] = "_ = " + line
		}
	}
	p.Kind, p.Text = Block, strings.Join(lines, "\n")
	return p
}

// kind is where a row runs, by what it uses.
func kind(p Part) string {
	uses := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(p.Free, n) })
	}
	switch {
	case uses("b", "out", "f", "block", "h", "loss", "score"):
		return "batch"
	case uses("w", "net", "opt"):
		return "worker"
	}
	return "main"
}

// build builds files as a package of this module that is only in an overlay.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	abs, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(abs, "page", name)] = file
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "page")
	c := exec.Command("go", "build", "-overlay", list, "-o", out, "./page")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}
