package notebooks_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/nbtest"
)

// The notebook of partitions runs in a real kernel: multilevel is the best in it, and
// more parts cut more.
func TestPartitionNotebook(t *testing.T) {
	env := nbtest.Setup(t)
	t.Parallel()
	r := env.Run(t, "../../../notebooks/partition.ipynb", nbtest.Options{Dir: t.TempDir(), Env: []string{"GNB_SMALL=1"}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	cut := map[string][]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+), \d+ parts: ([\d.]+) %$`).FindAllStringSubmatch(r.Stdout(), -1) {
		x, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		cut[m[1]] = append(cut[m[1]], x)
	}
	if len(cut["multilevel"]) != 4 || len(cut["fennel"]) != 4 || len(cut["random"]) != 4 {
		t.Fatalf("curves %v:\n%s", cut, r.Stdout())
	}
	for i, x := range cut["multilevel"] {
		if x >= cut["fennel"][i] || cut["fennel"][i] >= cut["random"][i] || i > 0 && x <= cut["multilevel"][i-1] {
			t.Errorf("cut: %v", cut)
		}
	}
	for _, want := range []string{"multilevel, hop 1: ", "random, hop 3: ", "train balanced: nodes ", `true {`} {
		if !strings.Contains(r.Stdout(), want) {
			t.Errorf("the cells did not write %q:\n%s", want, r.Stdout())
		}
	}
	lookAt(t, "partition-notebook", figures(t, r.Executed, 1))
}
