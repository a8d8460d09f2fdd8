package notebooks_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of relations runs in a real kernel, on made-up files of WordNet's form: the network predicts the
// classes far more often than the definitions alone tell them, and the picture of the confusion is there.
func TestRelationsNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/relations.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_SMALL=1", "GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	// A definition tells the class of somewhat more than half of the synsets.
	if got := percent(t, r, "test accuracy"); got < 65 {
		t.Errorf("the test accuracy is %v %%", got)
	}
	if n := strings.Count(r.Stdout(), " taken for "); n < 3 {
		t.Errorf("%d pairs of classes are listed as confused:\n%s", n, r.Stdout())
	}
}
