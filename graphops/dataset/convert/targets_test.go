package convert

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// Numbers to predict come from targets.npy, or from labels with fractions; without a split the nodes with a target get one.
func TestTargetsOfArrays(t *testing.T) {
	files := func(more map[string]string) map[string]string {
		all := map[string]string{"edge_index.npy": npyFile("<i8", "2, 4", []int64{0, 0, 1, 2, 1, 2, 2, 3})}
		for name, text := range more {
			all[name] = text
		}
		return all
	}
	nan := math.NaN()
	d, _ := converted(t, putFile(t, files(map[string]string{"targets.npy": npyFile("<f8", "5, 2", []float64{1, 2, 3, nan, nan, nan, 7, 8, 9, -10})})), Options{})
	if d.Nodes() != 5 || d.TargetDim() != 2 || d.Target(4)[1] != -10 || d.HasTarget(2) || d.Classes() != 0 {
		t.Errorf("the dataset is %v with %v", d, d.Targets)
	}
	var in []int32
	for _, s := range []string{"train", "val", "test"} {
		in = append(in, d.Splits[s]...)
	}
	if slices.Sort(in); !slices.Equal(in, []int32{0, 1, 3, 4}) {
		t.Errorf("the splits have the nodes %v, want those with a target", in)
	}
	y := make([]float64, 1000)
	for i := range y {
		y[i] = float64(i) + 0.5
	}
	var said notice.List
	d, _ = converted(t, putFile(t, files(map[string]string{"y.npy": npyFile("<f8", "1000,", y)})), Options{Notice: func(n notice.Notice) { said.Add(n) }})
	if d.Labels != nil || d.TargetDim() != 1 || d.Target(999)[0] != 999.5 {
		t.Errorf("labels with fractions make %v", d)
	}
	if a, b, c := len(d.Splits["train"]), len(d.Splits["val"]), len(d.Splits["test"]); a+b+c != 1000 || a < 550 || a > 650 || b < 150 || c < 150 {
		t.Errorf("the random split has %d, %d and %d nodes", a, b, c)
	}
	if !slices.ContainsFunc(said, func(n notice.Notice) bool { return strings.Contains(n.What, "first 0.5, so they are targets") }) {
		t.Errorf("the notices are %v", said)
	}
	refused(t, putFile(t, files(map[string]string{"targets.npy": npyFile("<f8", "4,", []float64{1, 2, math.Inf(1), 3})})), Options{}, "entry 2 is +Inf", "a target is a number")
	refused(t, putFile(t, files(map[string]string{"x.npy": npyFile("<f8", "5, 1", []float64{1, 2, 3, 4, 5}), "targets.npy": npyFile("<f8", "4,", []float64{1, 2, 3, 3})})), Options{}, "each of the 5 nodes")
	refused(t, putFile(t, files(map[string]string{"targets.npy": npyFile("<f8", "4,", []float64{nan, nan, nan, nan})})), Options{}, "every target of every node is unknown")
}
