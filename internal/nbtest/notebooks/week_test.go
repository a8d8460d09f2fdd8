package notebooks_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of an ordinary week runs in a real kernel, and each of its seven tasks has its result. Customer i leaves if i
// is a multiple of 3. The lines of each task are counted by TestWeekTable of internal/repotest. Without GNB_SOAK it trains for
// fewer epochs, on fewer neighbours, and repeats a training twice instead of five times.
func TestWeekNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	dir := t.TempDir()
	notebook := nbtest.Shorter(t, "../../../notebooks/week.ipynb", "o.Heads, o.Fanouts = 40, 32, 0.5, 4, []int{15, 10}", "o.Heads, o.LR, o.Fanouts = 20, 32, 0.5, 4, 0.02, []int{6, 4}",
		"o.WeightDecay = 30,", "o.WeightDecay = 10,", "Repeat(ctx, 5,", "Repeat(ctx, 2,", "w.Epochs(40)", "w.Epochs(20)", "Loader{Fanouts: []int{15, 10}", "Loader{Fanouts: []int{8, 5}")
	r := env.Run(t, notebook, nbtest.Options{Dir: dir, Env: []string{"GNB_RUNS=" + filepath.Join(dir, "runs")}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
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
	for what, want := range map[string]float64{
		`(?m)^accuracy ([\d.]+), macro F1 [\d.]+, ROC AUC [\d.]+, average precision [\d.]+, loss`: 0.85, `calibration error ([\d.]+)\n`: 0, `sage test_accuracy ([\d.]+) ± [\d.]+`: 0.6,
		`gatv2 test_accuracy ([\d.]+) ± [\d.]+`: 0.6, `val recall ([\d.]+) in epoch \d+`: 0.6, `focal: ([\d.]+) %`: 80,
	} {
		m := regexp.MustCompile(what).FindStringSubmatch(out)
		if m == nil {
			t.Errorf("the cells did not write %q:\n%s", what, out)
			continue
		}
		if got, err := strconv.ParseFloat(m[1], 64); err != nil || !(got >= want) || math.IsInf(got, 0) {
			t.Errorf("%s is %v, want at least %v", what, m[1], want)
		}
	}
	if want := `model = GAT(266, 32, 2, 2, dropout=0.5, act="elu", heads=4, v2=True, edge_dim=1)`; !strings.Contains(out, want) {
		t.Errorf("the cells did not write the lines for PyG, %s:\n%s", want, out)
	}
	if head, err := os.ReadFile(filepath.Join(dir, "predictions.parquet")); err != nil || len(head) < 1000 || string(head[:4]) != "PAR1" || string(head[len(head)-4:]) != "PAR1" {
		t.Errorf("predictions.parquet has %d bytes, %v", len(head), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "best.safetensors")); err != nil {
		t.Error(err)
	}
}
