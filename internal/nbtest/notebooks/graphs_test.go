package notebooks_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of whole graphs runs in a real kernel, on the molecules of ESOL if GNB_DATA has them and else on generated ones: a
// network that sees bonds is better than one that sees atoms alone, where only bonds tell, and what it says of a molecule does not depend on the others.
func TestGraphsNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, nbtest.Shorter(t, "../../../notebooks/graphs.ipynb", "= 60, 64, 0.001", "= 30, 64, 0.001"), nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	number := func(pattern string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("the cells did not write %q:\n%s", pattern, out)
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	alone, bonds := number(`atoms alone: RMSE ([0-9.]+)`), number(`with bonds: RMSE ([0-9.]+)`)
	// The deviation of ESOL's solubilities is 2.1. There the atoms say nearly all; on generated molecules the bonds do.
	if esol := strings.Contains(out, "solubility: "); esol && max(alone, bonds) > 1.4 || !esol && bonds > 0.5*alone {
		t.Errorf("the errors are %v by atoms alone and %v with bonds", alone, bonds)
	}
	if few := regexp.MustCompile(`(?m)^ *\d+ atoms: predicted +-?[0-9.]+, measured +-?[0-9.]+$`).FindAllString(out, -1); len(few) != 5 {
		t.Errorf("%d molecules were predicted:\n%s", len(few), out)
	}
	lookAt(t, "graphs-notebook", figures(t, r.Executed, 3)) // of two runs and the predictions
}
