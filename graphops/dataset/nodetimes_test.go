package dataset_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Times of nodes are kept by directories, by shared memory, by a part of the nodes and by another graph of them; they are in the digest
// of the structure, and a file of another length is an error.
func TestNodeTimes(t *testing.T) {
	g, err := graphops.FromEdgesWith(4, []int32{0, 1, 2}, []int32{1, 2, 3}, graphops.EdgeData{Times: []int64{5, 6, 7}}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &dataset.Dataset{Graph: g, NodeTimes: []int64{3, -6, 9, 1}, Meta: dataset.Metadata{Name: "timed", TimeUnit: "s"}}
	if n := d.EdgesBeforeNodes(); n != 2 { // 1 → 2 at 6 and 2 → 3 at 7, of the node 2 of time 9
		t.Errorf("%d edges are before their nodes", n)
	}
	dir := filepath.Join(t.TempDir(), "d")
	if err := dataset.Write(dir, d); err != nil {
		t.Fatal(err)
	}
	opened, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := opened.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	part, err := opened.Subset([]int32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	loops, err := opened.WithSelfLoops()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]int64{"directory": opened.NodeTimes, "another graph": opened.WithGraph(opened.Graph).NodeTimes, "self-loops": loops.NodeTimes} {
		if !slices.Equal(got, d.NodeTimes) {
			t.Errorf("%s: the times are %v", name, got)
		}
	}
	if !slices.Equal(part.NodeTimes, []int64{-6, 9}) {
		t.Errorf("a part has the times %v", part.NodeTimes)
	}
	with, err := opened.Digests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.NodeTimes = []int64{3, -6, 9, 2}
	without, err := d.Digests(t.Context(), nil)
	if err != nil || with.Structure == without.Structure || with.Whole == without.Whole {
		t.Errorf("with another time the digest is the same: %v, %v", without, err)
	}
	d.NodeTimes = []int64{3}
	if err := dataset.Write(dir+"2", d); err == nil || !strings.Contains(err.Error(), "1 times for 4 nodes") {
		t.Errorf("with one time: %v", err)
	}
	file := filepath.Join(dir, "node_times.npy")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"its shape is": func() error {
			return os.WriteFile(file, []byte(strings.Replace(string(raw), "(4,)", "(3,)", 1)), 0o644)
		},
		"does not exist": func() error { return os.Remove(file) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Open(dir); err == nil || !strings.Contains(err.Error(), "node_times.npy") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
