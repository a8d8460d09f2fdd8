package convert

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

func TestOneHotFeatures(t *testing.T) {
	src := putFile(t, saintFiles())
	csv := one(t, "preds.csv", "1,2\n0\n\n2,0,1\n2,2\n")
	d, _ := converted(t, src, Options{Features: "one-hot:" + csv})
	if d.Features != nil || d.SparseFeatures == nil || d.SparseFeatures.Values != nil {
		t.Fatalf("%s: want sparse features of ones alone", d)
	}
	// Positions 0, 1 and 2 have the columns 0-2, 3-5 and 6-8.
	if want := []int32{1, 5, 0, 2, 3, 7, 2, 5}; d.FeatureDim() != 9 || !slices.Equal(d.SparseFeatures.Indices, want) || !slices.Equal(d.SparseFeatures.Indptr, []int64{0, 2, 3, 3, 6, 8}) {
		t.Errorf("%d features, columns %v by %v; want 9, %v", d.FeatureDim(), d.SparseFeatures.Indices, d.SparseFeatures.Indptr, want)
	}
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "1\n0\n2\n3\n0\n")}, "p.csv", "line 4", "class 3", "0 to 2")
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "1\n0\n2\n-1\n0\n")}, "line 4", "class -1")
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "1\n0\n2\n")}, "p.csv", "3 lines", "5 nodes")
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "1\n0\n2\n1\n1\n1\n")}, "line 6", "more lines")
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "\n\n\n\n\n")}, "names no class")
	refused(t, src, Options{Features: "one-hot:" + one(t, "p.csv", "a\n\n\n\n\n")}, "line 1", `"a"`)
	refused(t, src, Options{Features: "one-hot:/nowhere.csv"}, "/nowhere.csv", "no such file")

	// Without labels, the file's ids determine the number of classes.
	d, _ = converted(t, one(t, "g.txt", "0 1\n1 2\n"), Options{Features: "one-hot:" + one(t, "p.csv.gz", gz("4\n0\n1,1\n"))})
	if d.FeatureDim() != 10 || !slices.Equal(d.SparseFeatures.Indices, []int32{4, 0, 1, 6}) {
		t.Errorf("%d features, columns %v", d.FeatureDim(), d.SparseFeatures.Indices)
	}
}

func TestFileAndRandomFeatures(t *testing.T) {
	src := putFile(t, saintFiles())
	file := one(t, "f.npy", npyFile(">i2", "5, 1", []byte{0, 1, 0, 2, 0, 3, 0, 4, 255, 255}))
	d, _ := converted(t, src, Options{Features: file})
	if !slices.Equal(d.Features.F32, []float32{1, 2, 3, 4, -1}) {
		t.Errorf("features %v", d.Features.F32)
	}
	refused(t, src, Options{Features: one(t, "f.npy", npyFile("<f4", "2, 2", []float32{1, 2, 3, 4}))}, "2 rows", "5 nodes")
	refused(t, src, Options{Features: one(t, "f.npy", npyFile("<f4", "5, 1", []float32{1, 2, float32(math.NaN()), 4, 5}))}, "f.npy", "entry 2", "NaN")
	for _, spec := range []string{"random:", "random:x", "random:0", "random:70000", "one-hot:", "two-hot:x.csv", "x.csv"} {
		refused(t, src, Options{Features: spec}, "--features")
	}

	a, _ := converted(t, src, Options{Features: "random:300", Seed: 1, Threads: 1})
	b, _ := converted(t, src, Options{Features: "random:300", Seed: 1, Threads: 3})
	c, _ := converted(t, src, Options{Features: "random:300", Seed: 2})
	if !slices.Equal(a.Features.F32, b.Features.F32) || slices.Equal(a.Features.F32, c.Features.F32) {
		t.Error("random features depend on more than the seed")
	}
	var sum, square float64
	for _, x := range a.Features.F32 {
		sum, square = sum+float64(x), square+float64(x)*float64(x)
	}
	// For 1500 values the standard deviation of the mean is 0.026 and that of the variance 0.037.
	if n := float64(len(a.Features.F32)); math.Abs(sum/n) > 0.13 || math.Abs(square/n-1) > 0.19 {
		t.Errorf("mean %v and variance %v; want 0 and 1", sum/n, square/n)
	}
}

func TestRandomSplits(t *testing.T) {
	const n = 400
	y := make([]int32, n)
	for v := range y {
		y[v] = int32(v % 3)
		if v%3 == 2 && v > 60 {
			y[v] = -1 // class 2 has 20 nodes
		}
	}
	make1 := func(seed uint64) *dataset.Dataset {
		d := &dataset.Dataset{Graph: &graphops.Graph{Indptr: make([]int64, n+1)}, Labels: y, Meta: dataset.Metadata{Name: "x", NumClasses: 3}}
		if err := RandomSplits(d, 10, 15, 30, seed); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := make1(5)
	if d.SplitSets() != 10 {
		t.Fatalf("%d sets", d.SplitSets())
	}
	for k := range 10 {
		view, err := d.WithSplitSet(k)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string][]int{}
		seen := map[int32]bool{}
		for name, ids := range view.Splits {
			count[name] = make([]int, 3)
			for _, v := range ids {
				if seen[v] || y[v] < 0 {
					t.Fatalf("set %d: node %d is in two splits, or has no label", k, v)
				}
				seen[v] = true
				count[name][y[v]]++
			}
		}
		if !slices.Equal(count["train"], []int{15, 15, 15}) || !slices.Equal(count["val"], []int{30, 30, 5}) || len(seen) != 134+133+20 {
			t.Errorf("set %d: by class %v, %d nodes", k, count, len(seen))
		}
	}
	if slices.Equal(d.Splits["train"], d.Splits["train@1"]) {
		t.Error("sets 0 and 1 are equal")
	}
	if !slices.Equal(d.Splits["train@7"], make1(5).Splits["train@7"]) || slices.Equal(d.Splits["train"], make1(6).Splits["train"]) {
		t.Error("splits depend on more than the seed")
	}
	if err := RandomSplits(&dataset.Dataset{Graph: d.Graph}, 1, 1, 1, 0); err == nil {
		t.Error("a dataset without labels was split")
	}
}

// The larger of two components is kept, with the features of its nodes, and splits are drawn from
// its nodes.
func TestLargestComponent(t *testing.T) {
	dir := putFile(t, map[string]string{
		"edge_index.npy": npyFile("<i8", "2, 4", []int64{0, 6, 3, 4, 1, 3, 4, 6}),
		"y.npy":          npyFile("<i8", "7,", []int64{0, 0, 0, 0, 1, 0, 1}),
		"x.npy":          npyFile("<f4", "7, 1", []float32{0, 10, 20, 30, 40, 50, 60}),
	})
	d, stats := converted(t, dir, Options{LargestComponent: true, Undirected: true})
	if stats.Nodes != 3 || stats.Edges != 6 || !slices.Equal(d.Features.F32, []float32{30, 40, 60}) || !slices.Equal(d.Labels, []int32{0, 1, 1}) {
		t.Errorf("%s, features %v, classes %v", d, d.Features.F32, d.Labels)
	}
	if ids, err := d.Split("train@9"); err != nil || !slices.Equal(ids, []int32{0, 1, 2}) {
		t.Errorf("split %v, %v", ids, err)
	}
	if want := "largest component (3 of 7 nodes)"; !strings.Contains(d.Meta.Source, want) {
		t.Errorf("source %q lacks %q", d.Meta.Source, want)
	}
}
