package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// readScript prints what NumPy reads from a directory and writes a second directory with
// numpy.save, which Open must accept. In it, labels and one split have the type int64.
const readScript = `
import json, os, shutil, sys
import numpy as np
src, dst = sys.argv[1:]
meta = json.load(open(os.path.join(src, "metadata.json")))
load = lambda name: np.load(os.path.join(src, name), mmap_mode="r")
os.mkdir(dst)
shutil.copy(os.path.join(src, "metadata.json"), dst)
found = {}
for name in sorted(os.listdir(src)):
    if not name.endswith(".npy"):
        continue
    a = load(name)
    assert isinstance(a, np.memmap) or a.size == 0, name
    found[name] = {"dtype": a.dtype.str, "shape": list(a.shape), "sum": float(np.asarray(a, np.float64).sum())}
    wide = name in ("labels.npy", "split_val.npy") and a.dtype == np.int32
    np.save(os.path.join(dst, name), a.astype(np.int64) if wide else np.array(a))
indptr, indices, y = load("indptr.npy"), load("indices.npy"), load("labels.npy")
rows = np.repeat(np.arange(meta["num_nodes"]), np.diff(indptr))
found["in_class"] = int((y[rows] == y[indices]).sum())
json.dump(found, sys.stdout)
`

func TestNumPy(t *testing.T) {
	exe := testneed.PythonWith(t, "numpy")
	d := Karate()
	dir := stored(t, d)
	copied := filepath.Join(t.TempDir(), "copy")
	cmd := exec.Command(exe, "-c", readScript, dir, copied)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Indptr   npyFound `json:"indptr.npy"`
		Features npyFound `json:"features.npy"`
		Labels   npyFound `json:"labels.npy"`
		Train    npyFound `json:"split_train.npy"`
		InClass  int      `json:"in_class"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	var indptr int64
	for _, p := range d.Graph.Indptr {
		indptr += p
	}
	for _, c := range []struct {
		name string
		got  npyFound
		want npyFound
	}{
		{"indptr", found.Indptr, npyFound{"<i8", []int{35}, float64(indptr)}},
		{"features", found.Features, npyFound{"<f4", []int{34, 34}, 34}},
		{"labels", found.Labels, npyFound{"<i4", []int{34}, 17}},
		{"train", found.Train, npyFound{"<i4", []int{6}, 0 + 1 + 5 + 23 + 32 + 33}},
	} {
		if c.got.DType != c.want.DType || c.got.Sum != c.want.Sum || len(c.got.Shape) != len(c.want.Shape) || c.got.Shape[0] != c.want.Shape[0] {
			t.Errorf("%s: NumPy finds %+v, want %+v", c.name, c.got, c.want)
		}
	}
	if found.InClass != 156-22 {
		t.Errorf("NumPy counts %d edges within the factions, want 134", found.InClass)
	}
	if err := WriteDigests(t.Context(), copied, WriteDigestsOptions{}); err != nil { // NumPy stores the labels in another type
		t.Fatal(err)
	}
	again, err := Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	same(t, again, d)
	if err := again.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestNumPyRich has NumPy read and write sparse features, weights, targets and
// further split sets.
func TestNumPyRich(t *testing.T) {
	testneed.NotShort(t, "it starts Python several times")
	exe := testneed.PythonWith(t, "numpy")
	for _, d := range []*Dataset{rich(t), ones(t), edged(t), edgedHalf(t)} {
		copied := filepath.Join(t.TempDir(), "copy")
		cmd := exec.Command(exe, "-c", readScript, stored(t, d), copied)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]any{}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatal(err)
		}
		labels, _ := found["labels.npy"].(map[string]any)
		if edges := found["edge_features.npy"]; (edges != nil) != (d.EdgeFeatureDim() > 0) {
			t.Errorf("NumPy finds the edges' features %v", edges)
		}
		if labels["dtype"] != "|i1" || labels["sum"] != 2.0 {
			t.Errorf("NumPy finds the labels %v", labels)
		}
		if _, err := Open(copied); !errors.As(err, new(*DigestError)) {
			t.Errorf("files that NumPy wrote anew are opened with %v", err)
		}
		if err := WriteDigests(t.Context(), copied, WriteDigestsOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := Open(copied)
		if err != nil {
			t.Fatal(err)
		}
		same(t, again, d)
		if err := again.Check(context.Background()); err != nil {
			t.Error(err)
		}
		_ = again.Close()
	}
}

type npyFound struct {
	DType string  `json:"dtype"`
	Shape []int   `json:"shape"`
	Sum   float64 `json:"sum"`
}
