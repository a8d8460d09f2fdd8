package doctest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	theirs []string // the cells for PyG and DGL
	ours   []string // the code in the last column
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

// notRun holds the rows that are only compiled, with the reason.
var notRun = map[int]string{1: "it downloads"}

// The page shows 50 pairs of lines: PyG's or DGL's in Python, and GraphNB's. GraphNB's lines all
// run: in main, in a worker, or in a worker's loop over batches.
func TestFromPyGOrDGL(t *testing.T) {
	all := rows(t, page)
	if len(all) != 50 {
		t.Errorf("the page has %d lines, want 50", len(all))
	}
	var python []string
	for i, r := range all {
		if r.number != i+1 {
			t.Errorf("line %d of the page has the number %d, want %d", r.line, r.number, i+1)
		}
		if len(r.ours) == 0 {
			t.Errorf("number %d shows no code of GraphNB", r.number)
		}
		for _, cell := range r.theirs {
			python = append(python, Spans(cell)...)
		}
	}
	parsePython(t, python)
	if testing.Short() {
		t.Skip("running the lines links a program and starts workers")
	}
	runRows(t, all)
}

// parsePython fails the test for lines that are not valid Python.
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

// harness runs row N in the way that its kind needs: "main" in main, "worker" in a program, "batch"
// in a program's loop over batches. It gives values to the variables that Context declares.
const harness = `package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

type job struct {
	Row  int
	Kind string
}

func init() { // the rows launch programs themselves
	rows = rowsInit()
}

var rows map[int]func()

var theRow = gnb.Program("page-row", func(worker *gnb.Worker, j job) error {
	w = worker
	ds, g = w.Dataset(), w.Dataset().Graph
	net = gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt = w.Adam(net, 0.01)
	if j.Kind == "worker" {
		rows[j.Row]()
		return nil
	}
	for b = range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3}, Batch: 4, MaxSteps: 2}) {
		out = net.Forward(b)
		loss, f, block = b.Loss(out), out.Fwd(), b.Blocks[1]
		h = f.Input(block.NumSrc, 3, make([]float32, 3*block.NumSrc), tensor.SrcSpace(block))
		score = f.Input(block.NumEdges(), 1, make([]float32, block.NumEdges()), tensor.EdgeSpace(block))
		rows[j.Row]()
	}
	return nil
})

// relations is a ring of n nodes with two relations, splits of its edges and, if there are classes, of its nodes.
func relations(n, classes int) *gnb.Dataset {
	s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "user", Count: n}}, Relations: []graphops.Relation{{Src: "user", Name: "likes", Dst: "user"}, {Src: "user", Name: "knows", Dst: "user"}}}
	var from, to []int32
	var types []uint16
	d := &gnb.Dataset{EdgeSplits: map[string][]int64{"train": nil, "val": nil, "test": nil}}
	for i := range 2 * n {
		from, to, types = append(from, int32(i%n)), append(to, int32((i+1+i/n)%n)), append(types, uint16(i/n))
		part := []string{"train", "train", "val", "test"}[i%4]
		d.EdgeSplits[part] = append(d.EdgeSplits[part], int64(i))
	}
	typed := gnb.Must(graphops.FromEdgesWith(n, from, to, graphops.EdgeData{Types: types}, graphops.BuildOptions{}))
	d.Graph = gnb.Must(typed.WithTypes(s, typed.EdgeTypes))
	d.Meta.Name = "relations"
	if classes > 0 {
		karate := gnb.Must(gnb.Load(ctx, "karate"))
		d.EdgeSplits, d.Features, d.Labels, d.Splits, d.Meta.NumClasses = nil, karate.Features, karate.Labels, karate.Splits, karate.Classes()
	}
	return d
}

func main() {
	flag.Parse()
	ctx = context.Background()
	ds = gnb.Must(gnb.Load(ctx, "karate"))
	ds.Graph = ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*len(ds.Graph.Indices))}, nil)
	g = ds.Graph
	schema = &graphops.Schema{Nodes: []graphops.NodeType{{Name: "paper", Count: 34}}, Relations: []graphops.Relation{{Src: "paper", Name: "cites", Dst: "paper"}}}
	src, dst, sums = []int32{0, 1, 2}, []int32{1, 2, 3}, []float64{1, 2}
	scores, labels = []float32{0.1, 0.9}, []int8{0, 1}
	hetero, triples = relations(34, 2), relations(10, 0)
	own = &gnb.Dataset{Graph: g, Labels: ds.Labels, Meta: ds.Meta}
	run = gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: 4, Dropout: 0.5}}))
	ran := 0
	for _, j := range jobs {
		if j.Kind == "main" {
			rows[j.Row]()
		} else if _, err := gnb.Launch(ctx, theRow, j, gnb.LaunchOptions{Data: ds, Workers: 2, Quiet: true}); err != nil {
			fmt.Println("number", j.Row, "failed:", err)
			os.Exit(1)
		}
		ran++
	}
	fmt.Println("ran", ran)
}
`

// runRows makes one program of all rows, builds it as a package that exists only in an overlay, and
// runs it.
func runRows(t *testing.T, all []row) {
	t.Helper()
	pieces, err := Read(page)
	if err != nil {
		t.Fatal(err)
	}
	u := newUnit()
	for _, p := range pieces {
		if p.Span {
			continue
		}
		if err := u.add(p); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"harness.go": harness, "context.go": u.source("", contextSource(u))}
	for i, d := range u.decls {
		files[fmt.Sprintf("decls%d.go", i)] = u.source(d.File, string(d.text))
	}
	jobs, rows, ran := "var jobs = []job{", "func rowsInit() map[int]func() {\nreturn map[int]func(){\n", 0
	for _, r := range all {
		if notRun[r.number] != "" {
			continue
		}
		ran++
		code := ""
		for _, line := range r.ours {
			if !strings.HasSuffix(line, ")") && !strings.Contains(line, "=") && !strings.Contains(line, "{ ") {
				line = "_ = " + line // a value alone is not a statement
			}
			code += line + "\n"
		}
		jobs += fmt.Sprintf("{%d, %q}, ", r.number, kind(code))
		rows += fmt.Sprintf("%d: func() {\n%s%s},\n", r.number, code, uses(code))
	}
	files["rows.go"] = u.source("", jobs+"}\n"+rows+"}\n}")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, build(t, files))
	c.Dir, c.Env = dir, append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
	text, err := c.CombinedOutput()
	if want := fmt.Sprintf("ran %d\n", ran); err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("the page's program ended with %v and wrote\n%swant %q at the end", err, text, want)
	}
}

// source returns a file of the program with the imports that its text uses.
func (u *unit) source(name, text string) string {
	var b strings.Builder
	b.WriteString("package main\n")
	for pkg, path := range u.imports {
		if u.place[pkg].in == nil && regexp.MustCompile(`(^|[^\w."])`+pkg+`\.[A-Z]`).MatchString(text) {
			fmt.Fprintf(&b, "import %s %q\n", pkg, path)
		}
	}
	fmt.Fprintf(&b, "//line %s:1\n%s\n", cmp.Or(name, "page"), text)
	return b.String()
}

// kind returns where a row's code runs, which depends on the variables of Context that it uses.
func kind(code string) string {
	kind := "main"
	file, err := parser.ParseFile(token.NewFileSet(), "", prefix+"func _(){"+code+"\n}", 0)
	if err != nil {
		return kind // the compiler reports the error in detail
	}
	for _, id := range file.Unresolved {
		switch id.Name {
		case "b", "out", "f", "block", "h", "loss", "score":
			return "batch"
		case "w", "net", "opt":
			kind = "worker"
		}
	}
	return kind
}

// build builds files as a package of this module that exists only in an overlay.
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
