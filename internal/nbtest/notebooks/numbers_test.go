package notebooks_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of numbers runs in a real kernel, on the real starts if GNB_DATA has them and else on made-up ones: both
// networks are better than the mean, the report has its pictures and tables, and each start of the last race gets a place
// within its range.
func TestNumbersNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	r := env.Run(t, "../../../notebooks/numbers.ipynb", nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	value := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + `: ([0-9.]+) `).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("the cells did not write %q:\n%s", name, out)
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	mean, alone, graph := value("by the mean"), value("alone"), value("with the graph")
	if mean < 4.5 || mean > 5.5 || alone > 0.8*mean || graph > 0.8*mean {
		t.Errorf("the errors are %v places by the mean, %v alone and %v with the graph", mean, alone, graph)
	}
	if share := value("between the quantiles"); share < 65 || share > 90 {
		t.Errorf("%v %% of the finishes are between the quantiles, want about 80", share)
	}
	places := regexp.MustCompile(`(?m)^(\S+) +place +([0-9.]+), between +([0-9.]+) and +([0-9.]+)$`).FindAllStringSubmatch(out, -1)
	if len(places) != 20 {
		t.Fatalf("%d starts of the last race have a place:\n%s", len(places), out)
	}
	for _, m := range places {
		middle, _ := strconv.ParseFloat(m[2], 64)
		low, _ := strconv.ParseFloat(m[3], 64)
		high, _ := strconv.ParseFloat(m[4], 64)
		if low > middle || middle > high || low < 1 || high > 24 || strings.Split(m[1], "-")[0] < "2024" {
			t.Errorf("a start of the last race is %q", m[0])
		}
	}
	lookAt(t, "numbers-notebook", figures(t, r.Executed, 3)) // of two runs and the report
}
