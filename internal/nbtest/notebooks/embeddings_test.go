package notebooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of reports and embeddings runs in a real kernel: it shows the pictures of the report, of two projections and
// of its own figure, and the table of mistakes, and writes the predictions of all nodes.
func TestEmbeddingsNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/embeddings.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if got := percent(t, r, "test accuracy"); got < 60 {
		t.Errorf("the test accuracy is %v %%", got)
	}
	data, err := os.ReadFile(filepath.Join(dir, "predictions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 6001 {
		t.Errorf("predictions.csv has %d lines, want a head and 6000 nodes", n)
	}
	lookAt(t, "embeddings-notebook", figures(t, r.Executed, 5)) // of the run, the report, two projections, and its own
	saved, err := os.ReadFile(r.Executed)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(saved), "<b>most confident mistakes</b>"); n != 1 {
		t.Errorf("the outputs hold %d tables of mistakes", n)
	}
}
