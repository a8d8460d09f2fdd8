package notebooks_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of answers runs in a real kernel: the model has learned, complaints are what answers rest on and what makes a new
// customer leave, and the served answers are those of the cell.
func TestAnswersNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/answers.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	find := func(pattern string) string {
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("the cells did not write %q:\n%s", pattern, out)
		}
		return m[1]
	}
	number := func(pattern string) float64 {
		x, err := strconv.ParseFloat(find(pattern), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if right := number(`^right for ([0-9.]+) %`); right < 75 {
		t.Errorf("the model is right for %v %% of the customers", right)
	}
	calm, angry := number(`with 0 complaints leaves with a probability of ([0-9.]+)`), number(`with 3 complaints leaves with a probability of ([0-9.]+)`)
	if angry < calm+0.3 {
		t.Errorf("a new customer leaves with a probability of %v without complaints and of %v with three", calm, angry)
	}
	if first := find(`column +value +score of its own +with neighbours *\n *(\S+)`); first != "complaints" {
		t.Errorf("the answer rests on %s first:\n%s", first, out)
	}
	if strings.Contains(out, "do not believe") {
		t.Errorf("the explanation is no better than a random one:\n%s", out)
	}
	asked, served := number(`^c2997 +\S+ +([0-9.]+)`), number(`"id":"c2997","class":"\w+","probability":([0-9.]+)`)
	if asked-served > 1e-4 || served-asked > 1e-4 {
		t.Errorf("the cell has a probability of %v and the server answers %v", asked, served)
	}
	if !strings.Contains(out, `404 Not Found: {"error":"predict: \"c9999\" is the id of no node of churn"`) {
		t.Errorf("an unknown customer is answered:\n%s", out)
	}
	drawn := slices.Concat(cellFigures(t, r.Executed)...)
	if len(drawn) != 5 { // the run, an explanation, the report and what its answers rest on, and a link
		t.Errorf("the notebook keeps %d figures", len(drawn))
	}
	lookAt(t, "answers-notebook", drawn)
}
