package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
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
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
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

// oneStep is a command that takes one step of training, in this process.
func oneStep(t *testing.T) []string {
	return []string{"train", "--epochs", "1", "--batch", "300", "--fanout", "2,2", "--hidden", "4", "--workers", "1", "--eval", "none", "--json", "--run", filepath.Join(t.TempDir(), "run")}
}

// inProcess runs a command in this process, and returns its status and what it wrote to standard error.
func inProcess(t *testing.T, args ...string) (status int, said string) {
	if args[0] == "serve" {
		return serveAndTrain(t, args[1:]...)
	}
	var out, errs bytes.Buffer
	status = dispatch(t.Context(), args, &out, &errs)
	return status, errs.String()
}

// serveAndTrain serves a dataset. If it can be served, one step of training on the server follows, and its status and text are
// returned too.
func serveAndTrain(t *testing.T, args ...string) (status int, said string) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	out, in := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		status := dispatch(ctx, append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--drain", "1s"}, args...), in, &errs)
		_ = in.Close()
		done <- status
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e struct{ Event, Address string }
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event == "listening" {
			status, said = inProcess(t, append(oneStep(t), e.Address)...)
			end()
		}
	}
	return max(<-done, status), errs.String() + said
}

// Every command that opens a dataset says in a sentence that a bit of it was flipped. Without digests it says so or goes on,
// and none ends in a trace.
func TestCommandsOnFlippedBits(t *testing.T) {
	t.Setenv("GNB_HOME", t.TempDir())
	t.Setenv("GNB_RUNS", t.TempDir())
	t.Setenv("GNB_IN_PROCESS", "1")
	tries := 1
	if envknob.Soak.On() {
		tries = 20
	}
	commands := [][]string{
		{"data", "check"}, {"data", "info"}, {"partition", "--parts", "2", "--fanout", "2"}, {"plan", "--fanout", "2,2", "--hidden", "4"}, {"serve"},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for name, dir := range damageable(t) {
		for _, digests := range []bool{true, false} {
			if !digests {
				dividedtest.Undigested(t, dir, nil)
			}
			for _, args := range [][]string{{"serve"}, oneStep(t)} { // sound, it trains
				status, said := inProcess(t, append(slices.Clone(args), dir)...)
				unserved := name == "edge splits" && strings.Contains(said, "which servers do not send yet")
				if status != 0 && !unserved && (digests || name != "parts") { // parts have digests
					t.Errorf("%s, digests %v: gnb %s: %s", name, digests, args, said)
				}
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
					for _, args := range append(commands, oneStep(t)) {
						status, said := inProcess(t, append(slices.Clone(args), dir)...)
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
