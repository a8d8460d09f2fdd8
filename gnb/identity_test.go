package gnb_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/envknob"
)

// identityOptions are the options of the program in testdata/identity.
type identityOptions struct {
	Data string
	Args identityArgs

	Seed         uint64
	Workers      int
	VirtualRanks int
	Threads      int
	Precision    string
	Title        string
	Resume       string

	CheckpointEvery int
	KeepCheckpoints int
	TensorBoard     bool
}

type identityArgs struct {
	Epochs int
	LR     float64
	Note   string
}

// identityModules are the directory trees in which variants are built. Each has its own local
// package and replaced module, shared by several programs.
type identityModules struct {
	t    *testing.T
	root string // the checkout
	dir  string
	bins map[string]string
	// before is called with a module's directory before the module is built.
	before func(dir string)
}

// tree writes a module and builds its programs, one for each edit, under the edits' names.
func (m *identityModules) tree(name, inner, near string, programs map[string]func(string) string, flags ...string) {
	m.t.Helper()
	base, err := os.ReadFile("testdata/identity/main.go.txt")
	if err != nil {
		m.t.Fatal(err)
	}
	root, err := os.ReadFile(filepath.Join(m.root, "go.mod"))
	if err != nil {
		m.t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(m.root, "go.sum"))
	if err != nil {
		m.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(root), "\n")
	dir := filepath.Join(m.dir, name)
	files := map[string]string{
		"go.mod": fmt.Sprintf("module example.com/identity\n%s\nrequire (\n\tgithub.com/graphnb/graphnb v0.0.0\n\texample.com/near v0.0.0\n)\n\nreplace (\n\tgithub.com/graphnb/graphnb => %q\n\texample.com/near => ./replaced\n)\n",
			rest, m.root),
		"go.sum":             string(sum),
		"near/near.go":       "package inner\n\n// Constant is part of the program.\nfunc Constant() float64 { return " + inner + " }\n\nfunc Unused() {}\n",
		"replaced/go.mod":    "module example.com/near\n\ngo 1.26.0\n",
		"replaced/near.go":   "package near\n\nvar constant = " + near + "\n\nfunc Constant() float64 { return constant }\n",
		"replaced/unused.go": "package near\n\nfunc Unused() {}\n",
	}
	for program, edit := range programs {
		text := edit(string(base))
		if program != "base" && program != "rebuilt" && text == string(base) && inner == "1.5" && near == "2.5" {
			m.t.Fatalf("%s changes nothing", program)
		}
		files["cmd/"+program+"/main.go"] = text
	}
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.before != nil {
		m.before(dir)
	}
	cmd := exec.Command("go", append(append([]string{"build", "-ldflags=-s", "-o", filepath.Join(dir, "bin") + "/"}, flags...), "./cmd/...")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	for program := range programs {
		m.bins[program] = filepath.Join(dir, "bin", program)
	}
}

// launch runs a program and returns its output.
func (m *identityModules) launch(t *testing.T, bin, home string, o identityOptions, again bool) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GNB_RUNS="+home, "IDENTITY_OPTIONS="+string(raw))
	if again {
		cmd.Env = append(cmd.Env, "IDENTITY_AGAIN=1")
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), gnb.ErrInterrupted.Error()) {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func replaced(old, now string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			return s // the caller detects an edit without effect
		}
		return strings.ReplaceAll(s, old, now)
	}
}

// both returns an edit that makes two edits.
func both(a, b func(string) string) func(string) string {
	return func(s string) string { return b(a(s)) }
}

// reordered returns the program's cells in reverse order, as a notebook may have them.
func reordered(s string) string {
	cells := strings.Split(s, "// CELL")
	slices.Reverse(cells[1:])
	return strings.Join(cells, "// CELL")
}

// The test interrupts a real run and starts it again after one change. For 28 of the changes a new
// run begins and reports the difference; for the other 12 the run resumes. Each change of the code needs
// a program of its own; without GNB_SOAK three of them are built, since the tests of internal/codeid make
// all of these changes without building.
func TestFortyChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	m := &identityModules{t: t, root: root, dir: dir, bins: map[string]string{}}
	keep := func(s string) string { return s }
	type codeChange struct {
		edit func(string) string
		said string // the reported difference; "" for a change that does not count
	}
	code := map[string]codeChange{
		"constant":      {replaced("width = 8", "width = 9"), "constant `width` changed"},
		"relu":          {replaced("h = activate(f, h)", "_ = activate"), "function `(*gnn).Layer` changed"},
		"helper":        {replaced("return f.ReLU(h)", "return f.Scale(f.ReLU(h), 2)"), "function `activate` changed"},
		"embedded":      {replaced("return s.By", "return s.By + 1"), "function `scaled.factor` changed"},
		"type":          {replaced("By float64", "By, And float64"), "type `scaled` changed"},
		"model":         {replaced("scaled{By: 1}", "scaled{By: 3}"), "variable `GNN` changed"},
		"rate":          {replaced(`rates["adam"]*a.LR`, "1e-5"), "function `(*trainer).run` changed"},
		"fanouts":       {replaced("[]int{4, 3}", "[]int{3, 3}"), "function `(*trainer).run` changed"},
		"sampler":       {replaced("s.Fan[h.Index]", "s.Fan[h.Index]+1"), "function `half.Pick` changed"},
		"loss":          {replaced("return nn.CrossEntropy(out, labels)", "return nn.CrossEntropy(out.Fwd().Scale(out, 2), labels)"), "function `loss` changed"},
		"initialiser":   {replaced(`"adam": 0.01`, `"adam": 0.02`), "variable `rates` changed"},
		"called by one": {replaced("return 2 }", "return 3 }"), "function `start` changed"},
		"init":          {replaced(`rates["sgd"] = 0.1`, `rates["adam"] = 0.1`), "function `init` changed"},
		"receiver":      {replaced("clip: start()", "clip: 2*start()"), "variable `job` changed"},

		"cell edited":   {replaced("unrelated = 3", "unrelated = 4"), ""},
		"cell added":    {both(replaced("// CELL 3", "type more struct{}\n\nfunc (more) Layer() {}\n\n// CELL 3"), replaced("\"flag\"\n", "\"flag\"\n\t_ \"image/png\"\n")), ""},
		"cell removed":  {both(replaced("func init() { unrelated++ }", ""), both(replaced("var unrelated = 3\n\nfunc other(x int) int { return x * unrelated }", ""), replaced("other(1)", "1"))), ""},
		"reordered":     {reordered, ""},
		"comments":      {both(replaced("// half is a sampler.", "// half samples (or not)."), replaced("return h.Uniform", "/* evenly */ return h.Uniform")), ""},
		"formatting":    {both(replaced("{\n\t\th = activate(f, h)\n\t}", "{ h = activate(f, h); }"), replaced("gnb.ModelConfig{In: ds.FeatureDim(), Hidden: width,", "gnb.ModelConfig{\n\t\tIn: ds.FeatureDim(),\n\n\t\tHidden: width,")), ""},
		"prints before": {replaced(`fmt.Println("before"`, `fmt.Println("long before", "it"`), ""},
		"prints after":  {replaced(`fmt.Println("ended:", err)`, `fmt.Println("ended:", err); fmt.Println("and that was it")`), ""},
	}
	if !envknob.Soak.On() {
		maps.DeleteFunc(code, func(name string, _ codeChange) bool {
			return !slices.Contains([]string{"embedded", "initialiser", "reordered"}, name)
		})
	}
	programs := map[string]func(string) string{"base": keep}
	for name, c := range code {
		programs[strings.ReplaceAll(name, " ", "-")] = c.edit
	}
	m.tree("first", "1.5", "2.5", programs, "-ldflags=-s")
	m.tree("again", "1.5", "2.5", map[string]func(string) string{"rebuilt": keep}) // in another directory, with symbols
	m.tree("inner", "1.6", "2.5", map[string]func(string) string{"inner": keep}, "-ldflags=-s")
	m.tree("near", "1.5", "2.6", map[string]func(string) string{"near": keep}, "-ldflags=-s")

	spec := "planted?nodes=400&features=8&classes=3&seed=2"
	data := filepath.Join(dir, "data")
	ds := load(t, spec)
	if err := dataset.Write(data, ds); err != nil {
		t.Fatal(err)
	}
	written := func(name string, change func(d *dataset.Dataset)) string {
		d := load(t, spec)
		change(d)
		path := filepath.Join(t.TempDir(), name)
		if err := dataset.Write(path, d); err != nil {
			t.Fatal(err)
		}
		return path
	}
	base := identityOptions{Data: data, Args: identityArgs{Epochs: 4000, LR: 1, Note: "a"}, Seed: 3, Workers: 2, Threads: 1}
	home := filepath.Join(dir, "runs")
	m.launch(t, m.bins["base"], home, base, false)

	type change struct {
		name, bin string
		o         func(o *identityOptions)
		said      string
	}
	same := func(*identityOptions) {}
	changes := []change{
		{"rebuilt elsewhere", "rebuilt", same, ""},
		{"a package of the module", "inner", same, "function `example.com/identity/near.Constant` changed"},
		{"a replaced module", "near", same, "variable `example.com/near.constant` changed"},
		{"features", "base", func(o *identityOptions) { o.Data = spec + "&noise=8" }, "the data changed (other features)"},
		{"splits", "base", func(o *identityOptions) {
			o.Data = written("data", func(d *dataset.Dataset) { d.Splits["train"], d.Splits["val"] = d.Splits["val"], d.Splits["train"] })
		}, "the data changed (other splits)"},
		{"labels", "base", func(o *identityOptions) {
			o.Data = written("data", func(d *dataset.Dataset) {
				r := rand.New(rand.NewPCG(1, 2))
				r.Shuffle(len(d.Labels), func(i, j int) { d.Labels[i], d.Labels[j] = d.Labels[j], d.Labels[i] })
			})
		}, "the data changed (other labels)"},
		{"a generator's seed", "base", func(o *identityOptions) { o.Data = strings.Replace(spec, "seed=2", "seed=3", 1) }, "the data changed (other structure, features"},
		{"learning rate", "base", func(o *identityOptions) { o.Args.LR = 0.5 }, "LR was 1 and is 0.5"},
		{"epochs", "base", func(o *identityOptions) { o.Args.Epochs = 10 }, "Epochs was 4000 and is 10"},
		{"a text", "base", func(o *identityOptions) { o.Args.Note = "b" }, "Note was a and is b"},
		{"seed", "base", func(o *identityOptions) { o.Seed = 4 }, "the seed was 3 and is 4"},
		{"a node fewer to train on", "base", func(o *identityOptions) {
			o.Data = written("data", func(d *dataset.Dataset) { d.Splits["train"] = d.Splits["train"][1:] })
		}, "the data changed (other splits)"},
		{"precision", "base", func(o *identityOptions) { o.Precision = "bf16" }, "the precision was float32 and is bf16"},
		{"workers", "base", func(o *identityOptions) { o.Workers = 1 }, "workers × virtual ranks were 2 and are 1"},
		{"virtual ranks", "base", func(o *identityOptions) { o.VirtualRanks = 2 }, "workers × virtual ranks were 2 and are 4"},
		{"as many ranks, the same data elsewhere", "base", func(o *identityOptions) {
			o.Workers, o.VirtualRanks, o.Data = 1, 2, written("other", func(*dataset.Dataset) {})
		}, ""},
		{"threads and title", "base", func(o *identityOptions) { o.Threads, o.Title = 2, "another" }, ""},
		{"checkpoints", "base", func(o *identityOptions) { o.CheckpointEvery, o.KeepCheckpoints, o.TensorBoard = 7, 1, true }, ""},
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		changes = append(changes, change{name, strings.ReplaceAll(name, " ", "-"), same, code[name].said})
	}
	alarms := 0
	for _, c := range changes {
		if c.said != "" {
			alarms++
		}
	}
	if envknob.Soak.On() && (len(changes)-alarms < 12 || alarms < 28) {
		t.Errorf("the table has %d changes that count and %d that do not", alarms, len(changes)-alarms)
	}
	var mu sync.Mutex
	t.Run("changes", func(t *testing.T) {
		for _, c := range changes {
			t.Run(c.name, func(t *testing.T) {
				o := base
				mu.Lock()
				c.o(&o)
				mu.Unlock()
				copied := filepath.Join(t.TempDir(), "runs")
				if err := os.CopyFS(copied, os.DirFS(home)); err != nil {
					t.Fatal(err)
				}
				out := m.launch(t, m.bins[c.bin], copied, o, true)
				if c.said == "" {
					if !strings.Contains(out, "\nresuming run ") || strings.Contains(out, "not resuming") {
						t.Errorf("the run was not resumed:\n%s", out)
					}
					return
				}
				line := ""
				for _, l := range strings.Split(out, "\n") {
					if strings.HasPrefix(l, "not resuming the interrupted run ") {
						line = l
					}
				}
				if !strings.Contains(line, ": "+c.said) || !strings.HasSuffix(line, "; a new run begins") {
					t.Errorf("the reported difference is %q, want %q, in\n%s", line, c.said, out)
				}
				if n := strings.Count(line, "; "); n != 1 && c.bin == "base" {
					t.Errorf("more than one difference was reported: %q", line)
				}
				if found, err := os.ReadDir(copied); err != nil || len(found) != 2 {
					t.Errorf("%d runs (%v), want a new one", len(found), err)
				}
			})
		}
	})
}
