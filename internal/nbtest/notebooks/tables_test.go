package notebooks_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of tables runs in a real kernel: it finds the kinds of columns, warns of the column that knows the label,
// learns more with the graph than without it, and predicts most of the new customers, whose answer the test knows:
// customer i leaves if i is a multiple of 3. Without GNB_SOAK it trains for fewer epochs, on fewer neighbours.
func TestTablesNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	notebook := nbtest.Shorter(t, "../../../notebooks/tables.ipynb", "o.Epochs, o.Heads, o.Fanouts = 40, 4, []int{15, 10}", "o.Epochs, o.Heads, o.LR, o.Fanouts = 20, 4, 0.02, []int{6, 4}", "o.Seed = 30,", "o.Seed = 15,")
	r := env.Run(t, notebook, nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	for _, want := range []string{"words a value", `the column "cancelled" predicts the label "churned" exactly`, "2 classes"} {
		if !strings.Contains(out, want) {
			t.Errorf("the cells did not write %q:\n%s", want, out)
		}
	}
	alone, graph := percent(t, r, "alone"), percent(t, r, "with the graph")
	if alone > 85 || graph < 85 || graph < alone+5 {
		t.Errorf("%v %% alone and %v %% with the graph; want at most 85 and at least 85", alone, graph)
	}
	right, all := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^K(\d+) leaves: (yes|no)$`).FindAllStringSubmatch(out, -1) {
		i, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		all++
		if (m[2] == "yes") == (i%3 == 0) {
			right++
		}
	}
	if all != 12 || right < 9 {
		t.Errorf("%d of %d predictions for new customers are right, want at least 9 of 12:\n%s", right, all, out)
	}
}
