package tutorials

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

var (
	seeds = flag.Bool("seeds", false, "run each notebook with three seeds, and compare with what its page says of them")
	full  = flag.Bool("full", false, "take the real datasets, not the small ones (GNB_SMALL)")
)

// Every tutorial runs headless in a real kernel at its small size with two
// workers: no error, every worker of every run has had its share, and what the
// notebook prints lies within the band that its page states: the notebook's, or without GNB_SOAK, where
// they train less, README.md's. With -seeds: what the page says of three seeds is what they give.
func TestTutorialsRun(t *testing.T) {
	env := nbtest.Setup(t)
	for _, path := range notebooks(t) {
		t.Run(name(path), func(t *testing.T) {
			t.Parallel()
			bands := read(t, path).bands(t)
			if fewer := shorter[name(path)]; fewer != nil && !*full && !testneed.Soak.Here() {
				bands = shorterBands(t, name(path), bands)
				path = nbtest.Shorter(t, path, fewer...)
			}
			stdout := run(t, env, path)
			if !*full {
				within(t, "printed", bands, stdout)
			}
			for i := range 3 {
				if !*seeds {
					break
				}
				if i > 0 {
					stdout = run(t, env, withSeed(t, path, i))
				}
				for _, b := range bands {
					got := printed(t, b.label, stdout)
					t.Logf("seed %d: %s: %v", i, b.label, got)
					if math.Abs(got-b.seeds[i]) > 0.0051*max(1, math.Round(b.hi)) { // the last place that is written down
						t.Errorf("seed %d: %s is %v, and the notebook says %v", i, b.label, got, b.seeds[i])
					}
				}
			}
		})
	}
}

// shorter holds how tutorials train less: with fewer epochs or neighbours, or a narrower network.
var shorter = map[string][]string{
	"01-reddit-sage":                         {"Hidden: 256, Epochs: 20", "Hidden: 128, Epochs: 20"},
	"02-papers100m-gcn":                      {`\"fanout\", 50`, `\"fanout\", 15`},
	"03-arxiv-multi-gpu":                     {"Train, 5,", "Train, 2,", "Hidden: 256", "Hidden: 128"},
	"04-reddit-from-full-graph-to-multi-gpu": {".Name(), 100}", ".Name(), 20}", "Repeats: 3, Steps: 20", "Repeats: 2, Steps: 8"},
	"05-products-custom-sampler":             {"w.Epochs(10)", "w.Epochs(7)"},
	"06-products-distributed":                {`\"10\", \"4\"`, `\"10\", \"2\"`, "Hidden: 256", "Hidden: 64", "nodes=20000", "nodes=8000"},
}

var seedOption = regexp.MustCompile(`(Seed:\s*)(\d+)`)

// withSeed is a copy of a notebook in which every "Seed: n" is "Seed: n+add".
func withSeed(t *testing.T, path string, add int) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !seedOption.Match(raw) {
		t.Fatal("no cell says Seed: NUMBER")
	}
	changed := seedOption.ReplaceAllFunc(raw, func(b []byte) []byte {
		m := seedOption.FindSubmatch(b)
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "%s%d", m[1], n+add)
	})
	other := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(other, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// What is saved in a notebook is what a reader sees first: figures within the band, and prose that says what
// it is of. That outputs are there and belong to the code, internal/nbtest tests of all notebooks.
func TestTutorialsAreSaved(t *testing.T) {
	for _, path := range notebooks(t) {
		t.Run(name(path), func(t *testing.T) {
			nb := read(t, path)
			stdout := ""
			for _, c := range nb.Cells {
				for _, o := range c.Outputs {
					if o.OutputType == "stream" && o.Name == "stdout" {
						stdout += string(o.Text)
					}
				}
			}
			within(t, "saved", nb.bands(t), stdout)
			prose := nb.prose()
			for _, want := range []string{"\n## What to try next", "\n| the original's line | ours |", "GNB_SMALL"} {
				if !strings.Contains(prose, want) {
					t.Errorf("its prose has no %q", strings.TrimSpace(want))
				}
			}
		})
	}
}

func notebooks(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../tutorials/*.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func name(path string) string { return strings.TrimSuffix(filepath.Base(path), ".ipynb") }

// run executes a notebook and returns what its cells wrote.
func run(t *testing.T, env *nbtest.Env, path string) (stdout string) {
	t.Helper()
	dir := t.TempDir()
	o := nbtest.Options{
		Dir: dir, Timeout: 15 * time.Minute, // of a cell, on a machine that is busy otherwise
		Env: []string{"GNB_WORKERS=2", "GNB_RUNS="},
	}
	if *full {
		o.Timeout = 24 * time.Hour
	} else {
		o.Env = append(o.Env, "GNB_SMALL=1", "GNB_HOME="+filepath.Join(dir, "home"))
	}
	r := env.Run(t, path, o)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f s", r.Seconds)
	tookPart(t, filepath.Join(dir, "runs"))
	return r.Stdout()
}

// tookPart checks the runs that a notebook has left in a folder: all are done,
// some had several workers, and each worker had seeds to train on.
func tookPart(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	several := false
	for _, e := range entries {
		r, err := runs.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Result.State != runs.StateDone {
			t.Errorf("run %s is %s: %s", r.Config.ID, r.Result.State, r.Result.Error)
		}
		if r.Config.Workers > 1 {
			several = true
			if s := r.Result.WorkerSeeds; len(s) != r.Config.Workers || slices.Contains(s, 0) {
				t.Errorf("the %d workers of run %s trained on %v seeds, want some for each", r.Config.Workers, r.Config.ID, s)
			}
		}
	}
	if !several {
		t.Errorf("none of the %d runs had several workers", len(entries))
	}
}

// band is a line of a notebook's table "What to expect": a figure that a cell
// prints as "label: value", what three seeds gave, where it must lie, and what
// comes out when the graph is left out of account.
type band struct {
	label     string
	seeds     []float64
	lo, hi    float64
	graphless float64
}

var shorterLine = regexp.MustCompile("(?m)^\\| `([\\w-]+)` \\| `([^`]+)` \\| ([\\d., ]+) \\| ([\\d.]+) to ([\\d.]+) \\|$")

// shorterBands are the bands of a notebook that trains less, which are in tutorials/README.md.
func shorterBands(t *testing.T, notebook string, whole []band) []band {
	t.Helper()
	page, err := os.ReadFile("../../../tutorials/README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := shorterLine.FindAllStringSubmatch(string(page), -1)
	bands := slices.Clone(whole)
	for i := range bands {
		b := &bands[i]
		k := slices.IndexFunc(lines, func(m []string) bool { return m[1] == notebook && m[2] == b.label })
		if k < 0 {
			t.Fatalf("tutorials/README.md has no line | `%s` | `%s` | three seeds | band |", notebook, b.label)
		}
		b.set(t, lines[k][3:6])
		b.check(t, lines[k][0])
	}
	return bands
}

var bandLine = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([\\d., ]+) \\| ([\\d.]+) to ([\\d.]+) \\| ([\\d.]+) \\|$")

// bands reads the table, and checks that it is one that says something: three
// seeds within the band, and the model without the graph below it.
func (nb *notebook) bands(t *testing.T) []band {
	t.Helper()
	var bands []band
	for _, m := range bandLine.FindAllStringSubmatch(nb.prose(), -1) {
		b := band{label: m[1], graphless: number(t, m[5])}
		b.set(t, m[2:5])
		b.check(t, m[0])
		bands = append(bands, b)
	}
	if len(bands) == 0 {
		t.Error("its table \"What to expect\" has no line like | `test accuracy` | 0.91, 0.92, 0.93 | 0.89 to 0.95 | 0.55 |")
	}
	return bands
}

// set takes the seeds' figures, "a, b, c", and the ends of the band.
func (b *band) set(t *testing.T, cells []string) {
	t.Helper()
	b.seeds = nil
	for _, s := range strings.Split(cells[0], ",") {
		b.seeds = append(b.seeds, number(t, s))
	}
	b.lo, b.hi = number(t, cells[1]), number(t, cells[2])
}

func (b *band) check(t *testing.T, line string) {
	t.Helper()
	if len(b.seeds) != 3 || slices.Min(b.seeds) < b.lo || slices.Max(b.seeds) > b.hi || b.graphless >= b.lo {
		t.Errorf("this line should have three seeds within its band, and the model without the graph below it: %s", line)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// within checks figures that cells wrote against the bands.
func within(t *testing.T, what string, bands []band, stdout string) {
	t.Helper()
	for _, b := range bands {
		if got := printed(t, b.label, stdout); got < b.lo || got > b.hi {
			t.Errorf("%s: %s is %v, want %v to %v", what, b.label, got, b.lo, b.hi)
		}
	}
}

// printed is the figure of the last line "label: figure" in what cells wrote, NaN
// if there is none.
func printed(t *testing.T, label, stdout string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(label)+`: ([\d.]+)`).FindAllStringSubmatch(stdout, -1)
	if m == nil {
		t.Errorf("no cell wrote a line %q:\n%s", label+": …", stdout)
		return math.NaN()
	}
	x, err := strconv.ParseFloat(m[len(m)-1][1], 64)
	if err != nil {
		t.Error(err)
	}
	return x
}

// notebook is what these tests read of one.
type notebook struct {
	Cells []struct {
		CellType string `json:"cell_type"`
		Source   text
		Outputs  []struct {
			OutputType string `json:"output_type"`
			Name       string
			Text       text
		}
	}
}

// text is a string that a notebook may hold as a list of lines.
type text string

func (s *text) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*s = text(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(s))
}

func read(t *testing.T, path string) *notebook {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	nb := &notebook{}
	if err := json.Unmarshal(raw, nb); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return nb
}

func (nb *notebook) prose() string {
	var b strings.Builder
	for _, c := range nb.Cells {
		if c.CellType == "markdown" {
			b.WriteString("\n" + string(c.Source) + "\n")
		}
	}
	return b.String()
}
