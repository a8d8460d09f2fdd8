package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func TestRMAT(t *testing.T) {
	d, err := Load("rmat?scale=12&degree=16&features=20&classes=8&seed=3")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err != nil { // the check covers symmetry too
		t.Fatal(err)
	}
	if d.Nodes() != 1<<12 || d.FeatureDim() != 20 || d.Classes() != 8 || d.Meta.Seed != 3 {
		t.Errorf("got %s", d)
	}
	// 2^15 edges are drawn; some coincide, mostly in the dense quadrant.
	if e := d.Edges() / 2; e < 24000 || e > 32500 {
		t.Errorf("%d edges", e)
	}
	most, isolated, own := 0, 0, 0
	for v := range int32(d.Nodes()) {
		row := d.Graph.InNeighbors(v)
		most = max(most, len(row))
		if len(row) == 0 {
			isolated++
		}
		for i, u := range row {
			if u == v || i > 0 && u == row[i-1] {
				t.Fatalf("node %d has a self-loop or an edge twice: %v", v, row)
			}
			if d.Labels[u] == d.Labels[v] {
				own++
			}
		}
	}
	// A uniform graph of these sizes has no degree above 40 and no isolated node.
	if most < 200 || isolated < 300 {
		t.Errorf("the largest degree is %d and %d nodes have none: not skewed", most, isolated)
	}
	if share := float64(own) / float64(d.Edges()); share < 0.2 || share > 0.5 {
		t.Errorf("%.2f of the edges stay within one of 8 classes", share)
	}
	counts := make([]int, 8)
	for _, y := range d.Labels {
		counts[y]++
	}
	if slices.Min(counts) != 512 || slices.Max(counts) != 512 {
		t.Errorf("the classes have the sizes %v", counts)
	}
	for name, want := range map[string]int{"train": 2048, "val": 1024, "test": 1024} {
		if ids, _ := d.Split(name); len(ids) != want {
			t.Errorf("%d nodes in %s", len(ids), name)
		}
	}
}

// The bits depend only on the options, and no release changes them.
func TestRMATBits(t *testing.T) {
	o := RMATOptions{Scale: 10, Seed: 1}.defaults()
	var digests []string
	for _, threads := range []int{1, 2, 5} {
		d, err := rmat(o, threads, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		if err := d.Pack(h); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, hex.EncodeToString(h.Sum(nil)[:8]))
	}
	const want = "83aab62c224e6f57"
	for i, got := range digests {
		if got != want {
			t.Errorf("thread count %d: %s, want %s", i, got, want)
		}
	}
	o.Seed = 2
	if d, err := rmat(o, 1, nil); err != nil || d.Edges() == 0 {
		t.Error(err)
	}
}

func TestRMATWithoutFeaturesOrClasses(t *testing.T) {
	for spec, want := range map[string][2]int{
		"rmat?scale=6&features=0&classes=0": {0, 0},
		"rmat?scale=6&features=8&classes=0": {8, 0},
		"rmat?scale=6&features=0":           {0, 16},
		"rmat?scale=6":                      {64, 16},
		"rmat?scale=1":                      {64, 2},
		"rmat?scale=6&a=1&b=0&c=0&degree=3": {64, 16}, // every edge is the same self-loop
		"rmat?scale=6&a=0.25&b=0.25&c=0.25": {64, 16},
		"rmat?scale=6&degree=0":             {64, 16},
	} {
		d, err := Load(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if err := d.Check(context.Background()); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		if d.FeatureDim() != want[0] || d.Classes() != want[1] || d.Splits["test"] == nil {
			t.Errorf("%s: %s", spec, d)
		}
		if strings.Contains(spec, "a=1&") && d.Edges() != 0 {
			t.Errorf("%s: %d edges", spec, d.Edges())
		}
	}
	if d, err := RMAT(RMATOptions{Scale: 5, Features: -1, Classes: -1}); err != nil || d.FeatureDim() != 0 || d.Classes() != 0 {
		t.Errorf("negative: %v %v", d, err)
	}
}

func TestRMATRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"scale=0":                "scale is 0",
		"scale=31":               "scale is 31",
		"scale=x":                `scale is "x"`,
		"scale=30&degree=10000":  "at most 4294967296",
		"degree=-1":              "degree is -1",
		"degree=NaN":             "degree is NaN",
		"a=0.9&b=0.9":            "a + b + c is 1.8",
		"a=-0.1":                 "a is -0.1",
		"scale=3&classes=9":      "classes is 9",
		"features=3":             "features is 3",
		"features=100000":        "features is 100000",
		"noise=-1":               "noise is -1",
		"nodes=7":                `no parameter "nodes"`,
		"scale=5&scale=6":        "scale is given 2 times",
		"seed=-1":                `seed is "-1"`,
		"a=Inf":                  "a is +Inf",
		"classes=-1&features=-2": "classes is -1",
	} {
		if _, err := Load("rmat?" + spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", spec, err, want)
		}
	}
}

func BenchmarkRMAT(b *testing.B) {
	for b.Loop() {
		if _, err := RMAT(RMATOptions{Scale: 20}); err != nil {
			b.Fatal(err)
		}
	}
}
