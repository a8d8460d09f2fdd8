package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/divided/dividedtest"
	"github.com/graphnb/graphnb/internal/envknob"
)

// damageable returns directories of datasets of several kinds, by name.
func damageable(t *testing.T) map[string]string {
	t.Helper()
	load := func() *dataset.Dataset {
		ds, err := datasets.Load("planted?nodes=300&features=8&seed=3")
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	plain, sparse, typed, split := load(), load(), load(), load()
	sparse.Features, sparse.SparseFeatures = nil, &dataset.Sparse{Rows: 300, Cols: 40, Indptr: []int64{0}}
	for v := range 300 {
		sparse.SparseFeatures.Indices = append(sparse.SparseFeatures.Indices, int32(v%20), int32(20+v%17))
		sparse.SparseFeatures.Indptr = append(sparse.SparseFeatures.Indptr, int64(2*v+2))
	}
	types := make([]uint16, typed.Edges())
	for v := range int32(300) {
		for e := typed.Graph.Indptr[v]; e < typed.Graph.Indptr[v+1]; e++ {
			types[e] = uint16(2*(typed.Graph.Indices[e]/150) + v/150)
		}
	}
	var err error
	if typed.Graph, err = typed.Graph.WithTypes(&graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "a", Count: 150}, {Name: "b", Count: 150}},
		Relations: []graphops.Relation{{Src: "a", Name: "r", Dst: "a"}, {Src: "a", Name: "r", Dst: "b"}, {Src: "b", Name: "r", Dst: "a"}, {Src: "b", Name: "r", Dst: "b"}},
	}, types); err != nil {
		t.Fatal(err)
	}
	x := typed.Features.F32
	typed.NodeFeatures = []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: 150, Cols: 8, F32: x[:1200]}}, {Sparse: &dataset.Sparse{
		Rows: 150, Cols: 40, Indptr: sparse.SparseFeatures.Indptr[:151], Indices: sparse.SparseFeatures.Indices[:300],
	}}}
	typed.Features = nil
	split.EdgeSplits = map[string][]int64{"train": {0, 1, 2, 3}, "val": {4, 5}, "test": {6, 7}}
	dirs := map[string]string{}
	for name, ds := range map[string]*dataset.Dataset{"plain": plain, "sparse": sparse, "typed": typed, "edge splits": split} {
		dirs[name] = filepath.Join(t.TempDir(), "d")
		o := dataset.WriteOptions{}
		if name == "edge splits" {
			o.FeatureType = "f16"
		}
		if err := dataset.WriteWith(t.Context(), dirs[name], ds, o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	dirs["parts"] = dividedtest.PartsBy(t, plain, 3, func(v int32) int { return int(v % 3) }, divided.Options{NoTopology: true}).Dir()
	return dirs
}

// files returns all files below a directory.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, slices.DeleteFunc(found, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || info.IsDir()
		})...)
	}
	return list
}

// Every command that opens a dataset says in a sentence that a bit of it was flipped. Without digests it says so or goes on,
// and none ends in a trace.
func TestCommandsOnFlippedBits(t *testing.T) {
	t.Setenv("GNB_HOME", t.TempDir())
	t.Setenv("GNB_RUNS", t.TempDir())
	tries := 1
	if envknob.Soak.On() {
		tries = 20
	}
	commands := [][]string{
		{"data", "check"}, {"data", "info"}, {"partition", "--parts", "2", "--fanout", "2"}, {"plan", "--fanout", "2,2", "--hidden", "4"},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for name, dir := range damageable(t) {
		for _, digests := range []bool{true, false} {
			if !digests {
				dividedtest.Undigested(t, dir, nil)
			}
			noticed, all := 0, 0
			for _, path := range files(t, dir) {
				good, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for range tries {
					bad, bit := bytes.Clone(good), rng.IntN(8*len(good))
					bad[bit/8] ^= 1 << (bit % 8)
					if err := os.WriteFile(path, bad, 0o600); err != nil {
						t.Fatal(err)
					}
					for _, args := range commands {
						var out, errs bytes.Buffer
						status := dispatch(t.Context(), append(slices.Clone(args), dir), &out, &errs)
						said := errs.String()
						all++
						switch {
						case strings.Contains(said, "panic") || strings.Contains(said, "runtime error") || strings.Contains(said, "goroutine "):
							t.Errorf("%s: gnb %s after bit %d of %s was flipped: %s", name, args, bit, path, said)
						case status != 0:
							noticed++
						case digests && (args[0] != "data" || args[1] == "check"):
							t.Errorf("%s: gnb %s did not notice that bit %d of %s was flipped", name, args, bit, path)
						}
					}
				}
				if err := os.WriteFile(path, good, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%s, digests %v: %d of %d commands noticed", name, digests, noticed, all)
		}
	}
}
