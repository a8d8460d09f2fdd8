package notebooks

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of links runs in a real kernel: mini-batches, the whole graph and a loop of one's own find
// links better than common neighbours do.
func TestLinksNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../notebooks/links.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_SMALL=1", "GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	auc := func(pattern string) float64 {
		m := regexp.MustCompile(pattern + `([0-9.]+)`).FindStringSubmatch(r.Stdout())
		if m == nil {
			t.Fatalf("the notebook does not print %q:\n%s", pattern, r.Stdout())
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	neighbours := auc(`common_neighbours_auc +`)
	for _, pattern := range []string{`test_auc +`, `whole graph: AUC `, `hadamard +AUC `} {
		if got := auc(pattern); got < neighbours+0.03 {
			t.Errorf("%q: AUC %v, want more than the common neighbours' %v", pattern, got, neighbours)
		}
	}
}
