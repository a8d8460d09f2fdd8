package notebooks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// percent is the number that a notebook wrote behind a name.
func percent(t *testing.T, r *nbtest.Result, name string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `: ([\d.]+) %`).FindStringSubmatch(r.Stdout())
	if m == nil {
		t.Fatalf("no %q in what the cells wrote:\n%s", name, r.Stdout())
	}
	a, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Two tables become a trained model and its predictions, which are right far more
// often than without the graph: the notebook's labels are known to the test, since
// customer i has the tariff i mod 3.
func TestOwnDataNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/own-data.ipynb", nbtest.Options{Dir: dir})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	alone, graph := percent(t, r, "alone"), percent(t, r, "with the graph")
	if alone < 45 || alone > 80 || graph < 85 || graph < alone+10 {
		t.Errorf("%v %% alone and %v %% with the graph; want 45 to 80, and at least 85", alone, graph)
	}
	for _, want := range []string{"the features are age, minutes, roaming", "the classes are business, family, prepaid", "3000 nodes"} {
		if !strings.Contains(r.Stdout(), want) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "customers", "predicted.csv"))
	if err != nil {
		t.Fatal(err)
	}
	right, all := 0, 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) != 3 || f[0] == "id" {
			continue
		}
		i, err := strconv.Atoi(strings.TrimPrefix(f[0], "C"))
		if err != nil {
			t.Fatalf("predicted.csv: %q: %v", line, err)
		}
		all++
		if f[1] == []string{"family", "prepaid", "business"}[i%3] {
			right++
		}
	}
	if all < 200 || all > 400 || float64(right) < 0.75*float64(all) {
		t.Errorf("%d of %d predictions are right; want about 300, and 75 %% of them right", right, all)
	}
}

// A layer of somebody's own passes its tests in the notebook, and learns as well
// as the library's.
func TestOwnLayerNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/own-layer.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	gated, sage := percent(t, r, "gated"), percent(t, r, "SAGE")
	if gated < 85 || sage < 85 {
		t.Errorf("%v %% with gates and %v %% with SAGE, want at least 85 each", gated, sage)
	}
	for _, want := range []string{"--- PASS: TestFormula", "--- PASS: TestGradient"} {
		if !strings.Contains(r.Stdout(), want) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	t.Setenv("GNB_RUNS", filepath.Join(dir, "runs"))
	found, err := runs.List(t.Context())
	if err != nil || len(found) != 2 || found[0].Result.Model.Name != "gated" || found[0].Config.Workers != 2 {
		t.Errorf("runs %v (%v), want one of the gated model and one of SAGE, with 2 workers", found, err)
	}
}
