package notebooks_test

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// lookAt keeps the pictures of a notebook for eyes to see, in $GNB_LOOK.
func lookAt(t *testing.T, name string, pictures [][]byte) {
	t.Helper()
	dir := os.Getenv("GNB_LOOK")
	for i, p := range pictures {
		img, _, err := image.Decode(bytes.NewReader(p))
		if err != nil {
			t.Fatalf("figure %d: %v", i, err)
		}
		if n := nbtest.Drawn(img); n < 1000 {
			t.Errorf("figure %d: %d pixels differ from its background, want more than 1000", i, n)
		}
		if dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+strconv.Itoa(i)+".png"), p, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The notebook of scaling curves runs in a real kernel: two pictures, and repeated
// work that grows with the fanouts.
func TestScalingNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/scaling.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_SMALL=1"}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`strong scaling of sage on planted\n.*median of 5 repeats of 10 steps`, `weak scaling of sage on planted\n`, `(?m)^ +2 +\d+ +1024 .*\d\.\d\d$`, `efficiency with 2 workers: \d+ %`,
	} {
		if !regexp.MustCompile(want).MatchString(r.Stdout()) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	last := 1.0
	found := regexp.MustCompile(`fanouts \[.*\], \d+ workers: edges × ([\d.]+), rows × ([\d.]+), efficiency \d+ %`).FindAllStringSubmatch(r.Stdout(), -1)
	for _, m := range found {
		rows, err := strconv.ParseFloat(m[2], 64)
		if err != nil || rows < last {
			t.Errorf("rows × %s after × %v: larger fanouts must repeat more (%v)", m[2], last, err)
		}
		last = rows
	}
	if len(found) != 3 || last < 1.05 {
		t.Errorf("%d curves, and × %v with all neighbours:\n%s", len(found), last, r.Stdout())
	}
	lookAt(t, "scaling-notebook", figures(t, r.Executed, 2))
	raw, err := os.ReadFile(filepath.Join(dir, "scaling.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
		t.Errorf("scaling.png: %v", err)
	}
}

// samplersCompared are those of the notebook.
var samplersCompared = []string{"uniform", "full", "labor", "walks", "ppr", "weighted", "budget"}

// The notebook of samplers runs in a real kernel: a batch under the microscope, and
// seven samplers whose counts are what they promise, compared by accuracy after a time.
func TestSamplersNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/samplers.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_SMALL=1", "GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	edges, rows, test := map[string]float64{}, map[string]float64{}, map[string]float64{}
	times, reached := 0, 0 // lines of the table of times, and times in it
	for line := range strings.Lines(r.Stdout()) {
		f := strings.Fields(line)
		if len(f) == 4 && slices.Contains(samplersCompared, f[0]) {
			times++
			for _, ms := range f[1:] {
				if _, err := strconv.ParseFloat(ms, 64); err == nil {
					reached++
				} else if ms != "–" {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
		if len(f) != 8 || !slices.Contains(samplersCompared, f[0]) {
			continue
		}
		for at, to := range map[int]map[string]float64{1: edges, 2: rows, 7: test} {
			x, err := strconv.ParseFloat(f[at], 64)
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			to[f[0]] = x
		}
	}
	if times != len(samplersCompared) || reached < 3 { // the best sampler has reached all shares of its own accuracy
		t.Errorf("%d samplers and %d times in the table of times:\n%s", times, reached, r.Stdout())
	}
	if len(edges) != len(samplersCompared) {
		t.Fatalf("%d samplers in the table, want %d:\n%s", len(edges), len(samplersCompared), r.Stdout())
	}
	for name, accuracy := range test {
		if accuracy < 0.6 {
			t.Errorf("%s: test accuracy %v", name, accuracy)
		}
		if name != "full" && edges[name] >= edges["full"] {
			t.Errorf("%s has %v edges a step, and all neighbours are %v", name, edges[name], edges["full"])
		}
	}
	for _, name := range []string{"weighted", "labor"} { // as many for each destination, of which labor has fewer
		if edges[name] > 1.02*edges["uniform"] {
			t.Errorf("%s has %v edges a step, uniform has %v", name, edges[name], edges["uniform"])
		}
	}
	if rows["labor"] > 0.95*rows["uniform"] {
		t.Errorf("labor reads %v rows a step, want clearly less than the %v of uniform", rows["labor"], rows["uniform"])
	}
	if rows["budget"] > 2*(128+400+1200) {
		t.Errorf("a budget of 400 and 1200 of each worker reads %v rows a step", rows["budget"])
	}
	lookAt(t, "samplers-notebook", figures(t, r.Executed, 2))
}
