package repotest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the generated tables of the pages")

// results is a recorded run of "make bench-peers".
type results struct {
	file    string
	Date    string
	Command string
	Only    string // the rows, "" in a run of all
	Machine struct {
		CPU   string
		Cores int
	}
	Floors   map[string]struct{ Share float64 }
	Versions map[string]string
	Newest   map[string]string `json:"versions_newest"` // of the environment with the newest PyTorch
	Results  []struct {
		Row, Engine, Unit string
		Ours, Tuned       bool
		Median            float64
		Extra             struct {
			Mapped float64 `json:"mapped_file_bytes"` // in rows of memory
		}
	}
}

// recorded reads the runs of "make bench-peers" that the pages show, the newest first: runs of some rows (--only), then the
// newest run of all rows, which ends the list.
func recorded(t *testing.T) []*results {
	t.Helper()
	files := glob(t, "bench/results/20*.json")
	var runs []*results
	for _, file := range slices.Backward(files) {
		r := &results{file: strings.TrimSuffix(filepath.Base(file), ".json")}
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		runs = append(runs, r)
		if r.Only == "" {
			return runs
		}
	}
	t.Fatal("bench/results has no run of all rows")
	return nil
}

// newest is the newest of these runs that has a row.
func newest(t *testing.T, runs []*results, row string) *results {
	t.Helper()
	for _, r := range runs {
		if r.unit(row) != "" {
			return r
		}
	}
	t.Fatalf("no run has the row %s", row)
	return nil
}

// versions says what a run compared, with which machine and when; link leads to bench/results.
func (r *results) versions(link string) string {
	pytorch := r.Versions["torch"]
	if v := r.Newest["torch"]; v != "" {
		pytorch += fmt.Sprintf(" (PyG also on PyTorch %s)", v)
	}
	return fmt.Sprintf("%s, %d cores; GraphNB %s, DGL and GraphBolt %s, PyG %s, PyTorch %s; [one run](%s/%s.md) of `%s` on %s",
		r.cpu(), r.Machine.Cores, r.Versions["graphnb"], r.Versions["dgl"], r.Versions["torch_geometric"], pytorch, link, r.file, r.Command, r.day())
}

// cpu is the processor's name, and day the date of the run.
func (r *results) cpu() string {
	return strings.NewReplacer("(R)", "", " Processor", "").Replace(r.Machine.CPU)
}
func (r *results) day() string { return r.Date[:len(time.DateOnly)] }

// least returns the shortest median of those engines of a row whose names begin with engine, and
// whether there is one.
func (r *results) least(row, engine string, ours, tuned bool) (float64, bool) {
	return r.leastBut(row, engine, none, ours, tuned)
}

// leastBut is least without the engines whose names begin with but.
func (r *results) leastBut(row, engine, but string, ours, tuned bool) (float64, bool) {
	best := math.Inf(1)
	for _, e := range r.Results {
		if strings.HasPrefix(e.Engine, but) {
			continue
		}
		if e.Row == row && e.Ours == ours && e.Tuned == tuned && strings.HasPrefix(e.Engine, engine) && e.Median > 0 {
			best = min(best, e.Median)
		}
	}
	return best, !math.IsInf(best, 1)
}

func (r *results) unit(row string) string {
	for _, e := range r.Results {
		if e.Row == row {
			return e.Unit
		}
	}
	return ""
}

// short returns a figure with two significant digits, or with all digits before the decimal point.
func short(x float64) string {
	switch {
	case x < 0.995:
		return fmt.Sprintf("%.2f", x)
	case x < 9.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// measured returns a figure with its unit and at most three digits.
func measured(x float64, unit string) string {
	if unit == "ms" && x >= 1000 {
		x, unit = x/1000, "s"
	}
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f %s", x, unit)
	case x < 100:
		return fmt.Sprintf("%.1f %s", x, unit)
	}
	return fmt.Sprintf("%.0f %s", x, unit)
}

// ours returns GraphNB's own median; with bf16, the one measured with --precision bf16.
func (r *results) ours(t *testing.T, row string, bf16 bool) float64 {
	t.Helper()
	for _, e := range r.Results {
		if e.Row == row && e.Ours && strings.HasSuffix(e.Engine, "bf16") == bf16 {
			return e.Median
		}
	}
	t.Fatalf("%s has no row %s of GraphNB", r.file, row)
	return 0
}

// memory returns the own memory and the mapped files in MB of the first engine whose name begins with name, and whether
// there is one.
func (r *results) memory(row, name string, tuned bool) (own, mapped float64, ok bool) {
	for _, e := range r.Results {
		if e.Row == row && e.Tuned == tuned && strings.HasPrefix(e.Engine, name) && e.Median > 0 {
			return e.Median, e.Extra.Mapped / 1e6, true
		}
	}
	return 0, 0, false
}

// peerCell returns how many times as long a peer takes as GraphNB's x: as installed, and tuned where that was measured.
func (r *results) peerCell(row, peer, but string, x float64) string {
	installed, ok := r.leastBut(row, peer, but, false, false)
	tuned, ok2 := r.leastBut(row, peer, but, false, true)
	switch {
	case ok && ok2:
		return fmt.Sprintf(" %s / %s |", short(installed/x), short(tuned/x))
	case ok:
		return fmt.Sprintf(" %s |", short(installed/x))
	case ok2:
		return fmt.Sprintf(" – / %s |", short(tuned/x))
	}
	return " |"
}

// line is one of the table: what a row measures, and whether GraphNB's figure is that of bf16.
type line struct {
	name, row string
	bf16      bool
}

// Beginnings of the names of engines: of PyG on the newest PyTorch, and of none.
const newestPyG, none = "PyG on torch", "\x00"

// versionsOfPyTorch returns the table of PyG on both versions of PyTorch, of the rows that have both.
func versionsOfPyTorch(t *testing.T, runs []*results, lines []line) string {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		r := newest(t, runs, l.row)
		if _, ok := r.least(l.row, newestPyG, false, false); !ok || l.bf16 {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, "\n| PyG on | PyTorch %s | PyTorch %s |\n|---|---:|---:|\n", r.Versions["torch"], r.Newest["torch"])
		}
		x := r.ours(t, l.row, false)
		fmt.Fprintf(&b, "| %s |%s%s\n", l.name, r.peerCell(l.row, "PyG", newestPyG, x), r.peerCell(l.row, newestPyG, none, x))
	}
	return b.String()
}

// table returns the tables of docs/performance.md: the peers' times and memory as multiples of GraphNB's.
// A row comes from the newest run that has it, with GraphNB and all peers of that run.
func table(t *testing.T, runs []*results) string {
	t.Helper()
	whole := runs[len(runs)-1]
	lines := []line{
		{"training step, arxiv", "train-arxiv", false},
		{"the same, GraphNB with bf16", "train-arxiv", true},
		{"training step, products-like", "train-products", false},
		{"the same, GraphNB with bf16", "train-products", true},
		{"sampling, arxiv", "sample-arxiv", false},
		{"sampling, products-like", "sample-products", false},
		{"gathering features, arxiv", "gather-arxiv", false},
		{"gathering features, products-like", "gather-products", false},
		{"mean over neighbours, 128 columns", "spmm-arxiv-128-forward", false},
		{"its gradient", "spmm-arxiv-128-gradient", false},
		{"mean over neighbours, 256 columns", "spmm-arxiv-256-forward", false},
		{"its gradient", "spmm-arxiv-256-gradient", false},
		{"inference of all nodes, arxiv", "infer-arxiv", false},
		{"full-graph training step, arxiv", "full-arxiv", false},
		{"Cora, 200 epochs with evaluation", "cora", false},
		{"start to the first step, Cora", "startup", false},
	}
	var b strings.Builder
	for _, r := range runs[:len(runs)-1] {
		var names []string
		for _, l := range lines {
			if newest(t, runs, l.row) == r && !l.bf16 {
				names = append(names, l.name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "- %s: %s.\n", strings.Join(names, "; "), r.versions("../bench/results"))
		}
	}
	if b.Len() > 0 {
		b.WriteString("- All other rows: ")
	}
	fmt.Fprintf(&b, "%s.\n\n", whole.versions("../bench/results"))
	b.WriteString("| | GraphNB | DGL | GraphBolt | PyG | PyTorch |\n|---|---:|---:|---:|---:|---:|\n")
	for _, l := range lines {
		r := newest(t, runs, l.row)
		x := r.ours(t, l.row, l.bf16)
		fmt.Fprintf(&b, "| %s | %s |", l.name, measured(x, r.unit(l.row)))
		for _, peer := range []string{"DGL", "GraphBolt", "PyG", "PyTorch"} {
			b.WriteString(r.peerCell(l.row, peer, none, x))
		}
		b.WriteString("\n")
	}
	b.WriteString(versionsOfPyTorch(t, runs, lines))
	b.WriteString("\n| memory of training, own + mapped files | GraphNB | GraphBolt | GraphBolt, tuned | DGL | PyG |\n|---|---:|---:|---:|---:|---:|\n")
	for _, l := range [][2]string{{"arxiv", "memory-arxiv"}, {"products-like", "memory-products"}} {
		r := newest(t, runs, l[1])
		own, mapped, ok := r.memory(l[1], "GraphNB", false)
		if !ok || mapped == 0 {
			t.Fatalf("%s has no mapped files of GraphNB in %s", r.file, l[1])
		}
		all := own + mapped
		fmt.Fprintf(&b, "| %s | %.0f + %.0f = %.0f MB |", l[0], own, mapped, all)
		for _, peer := range []struct {
			name  string
			tuned bool
		}{{"GraphBolt", false}, {"GraphBolt", true}, {"DGL", false}, {"PyG", false}} {
			own, mapped, ok := r.memory(l[1], peer.name, peer.tuned)
			if !ok || mapped == 0 {
				t.Fatalf("%s has no mapped files of %s in %s", r.file, peer.name, l[1])
			}
			fmt.Fprintf(&b, " %.0f + %.0f MB, × %s |", own, mapped, short((own+mapped)/all))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nShare of the floor that a training step reaches: ")
	for i, row := range []string{"train-arxiv", "train-products"} {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.0f %% on %s", 100*newest(t, runs, row).Floors[row].Share, []string{"arxiv", "products-like"}[i])
	}
	workers := newest(t, runs, "workers-arxiv")
	one, _ := workers.least("workers-arxiv", "GraphNB, 1 × 2", true, false)
	two, _ := workers.least("workers-arxiv", "GraphNB, 2 × 1", true, false)
	fmt.Fprintf(&b, ".\n\nTraining on arxiv: two workers with one thread each process %.0f %% more seeds per second than one worker with two threads.\n", 100*(one/two-1))
	b.WriteString("\n| matrix product, 2 threads | GraphNB | PyTorch (MKL) | OpenBLAS |\n|---|---:|---:|---:|\n")
	for _, shape := range []string{"1024x1024x1024-nn", "65536x256x128-nt", "65536x256x256-nt", "1024x47x256-nt", "256x256x65536-tn"} {
		row := "gemm-" + shape + "-2"
		r := newest(t, runs, row)
		x := r.ours(t, row, false)
		fmt.Fprintf(&b, "| %s | %s |", strings.ReplaceAll(shape[:len(shape)-3], "x", " × "), measured(x, r.unit(row)))
		for _, peer := range []string{"PyTorch", "OpenBLAS"} {
			y, ok := r.least(row, peer, false, false)
			if !ok {
				t.Errorf("%s has no %s", row, peer)
			}
			fmt.Fprintf(&b, " %.2f |", y/x)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The tables of docs/performance.md equal those of the newest recorded runs.
func TestPerformancePage(t *testing.T) {
	compare(t, "performance.md", "figures", table(t, recorded(t)))
}

// compare checks that a part of a page, between two lines that name the part, equals the recorded results; with -update it
// writes the part. The name is that of a page in docs, or a path with a slash from the root.
func compare(t *testing.T, name, part, want string) {
	t.Helper()
	path := name // of the repository, or a page in docs
	if !strings.Contains(path, "/") {
		path = "docs/" + path
	}
	page := read(t, path)
	from, to := fmt.Sprintf("<!-- %s: written by go test ./internal/repotest -update -->\n", part), fmt.Sprintf("<!-- end of %s -->", part)
	before, rest, ok := strings.Cut(page, from)
	got, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", path, from, to)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the %s of %s differs from bench/results; run go test ./internal/repotest -update\n%s", part, path, want)
	}
	if err := os.WriteFile(filepath.Join(root, path), []byte(before+from+want+to+after), 0o644); err != nil { //nolint:gosec // a page that everybody reads
		t.Fatal(err)
	}
}

// comparePicture checks that a picture in docs has this content; with -update it writes it.
func comparePicture(t *testing.T, name string, want []byte) {
	t.Helper()
	file := filepath.Join(root, "docs", filepath.FromSlash(name))
	got, err := os.ReadFile(filepath.Clean(file))
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("docs/%s differs from what it is made of; run go test ./internal/repotest -update", name)
	} else if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // a picture that everybody sees
		t.Fatal(err)
	}
}
