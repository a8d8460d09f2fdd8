package repotest

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the figures of docs/performance.md and docs/accuracy.md")

// results is a recorded run of "make bench-peers".
type results struct {
	file     string
	Date     string
	Command  string
	Machine  struct {
		CPU   string
		Cores int
	}
	Floors   map[string]struct{ Share float64 }
	Versions map[string]string
	Results  []struct {
		Row, Engine, Unit string
		Ours, Tuned       bool
		Median            float64
		Extra             struct {
			Mapped float64 `json:"mapped_file_bytes"` // in rows of memory
		}
	}
}

// newest reads the newest recorded run.
func newest(t *testing.T) *results {
	t.Helper()
	files := glob(t, "bench/results/20*.json")
	if len(files) == 0 {
		t.Fatal("there is no file of results in bench/results")
	}
	r := &results{file: strings.TrimSuffix(filepath.Base(files[len(files)-1]), ".json")}
	text, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// least returns the shortest median of those engines of a row whose names begin with engine, and
// whether there is one.
func (r *results) least(row, engine string, ours, tuned bool) (float64, bool) {
	best := math.Inf(1)
	for _, e := range r.Results {
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

// table returns the table of docs/performance.md: the peers' times as multiples of GraphNB's.
func (r *results) table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "From [one run](../bench/results/%s.md) of `make bench-peers`.\n\n", r.file)
	b.WriteString("| | GraphNB | DGL | GraphBolt | PyG | PyTorch | best tuned peer |\n|---|---|---|---|---|---|---|\n")
	for _, l := range []struct {
		name, row string
		bf16      bool
	}{
		{"training step, arxiv", "train-arxiv", false},
		{"the same with bf16", "train-arxiv", true},
		{"training step, products-like", "train-products", false},
		{"the same with bf16", "train-products", true},
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
		{"memory, arxiv", "memory-arxiv", false},
		{"memory, products-like", "memory-products", false},
	} {
		x := r.ours(t, l.row, l.bf16)
		fmt.Fprintf(&b, "| %s | %s |", l.name, measured(x, r.unit(l.row)))
		for _, peer := range []struct {
			name  string
			tuned bool
		}{{"DGL", false}, {"GraphBolt", false}, {"PyG", false}, {"PyTorch", false}, {"", true}} {
			if y, ok := r.least(l.row, peer.name, false, peer.tuned); ok {
				fmt.Fprintf(&b, " %s |", short(y/x))
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nShare of the floor that a training step reaches: ")
	for i, row := range []string{"train-arxiv", "train-products"} {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.0f %% on %s", 100*r.Floors[row].Share, []string{"arxiv", "products-like"}[i])
	}
	b.WriteString(".\n\n| matrix product, 2 threads | GraphNB | PyTorch (MKL) | OpenBLAS |\n|---|---|---|---|\n")
	for _, shape := range []string{"1024x1024x1024-nn", "65536x256x128-nt", "65536x256x256-nt", "1024x47x256-nt", "256x256x65536-tn"} {
		row := "gemm-" + shape + "-2"
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

// The tables of docs/performance.md equal those of the newest recorded run.
func TestPerformancePage(t *testing.T) {
	compare(t, "performance.md", "figures", newest(t).table(t))
}

// compare checks that a part of a page in docs, between two lines that name the part, equals the
// recorded results; with -update it writes the part.
func compare(t *testing.T, name, part, want string) {
	t.Helper()
	page := read(t, "docs", name)
	from, to := fmt.Sprintf("<!-- %s: written by go test ./internal/repotest -update -->\n", part), fmt.Sprintf("<!-- end of %s -->", part)
	before, rest, ok := strings.Cut(page, from)
	got, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("docs/%s has no lines %q and %q", name, from, to)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("the %s of docs/%s differs from bench/results; run go test ./internal/repotest -update\n%s", part, name, want)
	}
	if err := os.WriteFile(filepath.Join(root, "docs", name), []byte(before+from+want+to+after), 0o644); err != nil { //nolint:gosec // a page that everybody reads
		t.Fatal(err)
	}
}
