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

// Numbers to predict of edges come from edge_targets.npy, in the order of edge_index, also of equal edges; their splits from masks
// and lists of places in it, or at random.
func TestEdgeTargetsOfArrays(t *testing.T) {
	files := func(more map[string]string) map[string]string {
		all := map[string]string{
			"edge_index.npy":   npyFile("<i8", "2, 5", []int64{2, 0, 0, 1, 2, 1, 1, 1, 0, 0}),
			"edge_time.npy":    npyFile("<i8", "5,", []int64{9, 8, 7, 6, 5}),
			"edge_targets.npy": npyFile("<f8", "5,", []float64{1, 2, 3, math.NaN(), 5}),
		}
		for name, text := range more {
			all[name] = text
		}
		return all
	}
	d, _ := converted(t, putFile(t, files(map[string]string{"edge_train_idx.npy": npyFile("<i8", "2,", []int64{0, 2}), "edge_test_mask.npy": npyFile("<i8", "5,", []int64{0, 1, 0, 0, 0})})), Options{Undirected: true})
	// The edges are 2 → 1, 0 → 1, 0 → 1, 1 → 0 and 2 → 0, of times 9 to 5.
	src, dst, _ := d.Graph.EdgesAt(d.EdgeRows)
	got := map[float32]int{}
	for row, e := range d.EdgeRows {
		y := d.EdgeAnswers.Target(int32(row))[0]
		got[y] = row
		if i := slices.Index([]float32{1, 2, 3, 0, 5}, y); i >= 0 && (src[row] != []int32{2, 0, 0, 1, 2}[i] || dst[row] != []int32{1, 1, 1, 0, 0}[i] || d.Graph.EdgeTimes[e] != int64(9-i)) {
			t.Errorf("row %d is %d → %d of time %d with %v", row, src[row], dst[row], d.Graph.EdgeTimes[e], y)
		}
	}
	if train := d.EdgeAnswers.Splits["train"]; d.Edges() != 10 || len(d.EdgeRows) != 5 || len(train) != 2 || !slices.Contains(train, int32(got[1])) || !slices.Contains(train, int32(got[3])) || !slices.Equal(d.EdgeAnswers.Splits["test"], []int32{int32(got[2])}) || d.EdgeAnswers.Splits["val"] != nil {
		t.Errorf("the rows are %v, and the splits %v", got, d.EdgeAnswers.Splits)
	}
	d, _ = converted(t, putFile(t, files(nil)), Options{Split: "time:0.5,0.25,0.25"})
	if test := d.EdgeAnswers.Splits["test"]; len(test) != 1 || d.EdgeAnswers.Target(test[0])[0] != 1 {
		t.Errorf("the splits by time are %v", d.EdgeAnswers.Splits)
	}
	refused(t, putFile(t, files(map[string]string{"edge_targets.npy": npyFile("<f8", "4,", []float64{1, 2, 3, 4})})), Options{}, "each of the 5 edges")
	refused(t, putFile(t, files(map[string]string{"edge_targets.npy": npyFile("<f8", "5,", []float64{1, math.Inf(1), 3, 4, 5})})), Options{}, "entry 1 is +Inf")
	refused(t, putFile(t, files(map[string]string{"edge_train_idx.npy": npyFile("<i8", "1,", []int64{5})})), Options{}, "edge_train_idx.npy")
}
