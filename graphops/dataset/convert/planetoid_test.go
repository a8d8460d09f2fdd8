package convert

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// tiny returns the files of testdata/make.py's dataset by part.
func tiny(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, part := range parts {
		b, err := os.ReadFile(filepath.Join("testdata", "ind.tiny."+part))
		if err != nil {
			t.Fatal(err)
		}
		files[part] = b
	}
	return files
}

// stored writes files of the dataset tiny into a new directory.
func stored(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for part, b := range files {
		store(t, dir, part, b)
	}
	return dir
}

func store(t testing.TB, dir, part string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "ind.tiny."+part), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTiny(t *testing.T) {
	d, err := planetoidRead("testdata", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	neighbours := [][]int32{{1, 2, 8}, {0}, {0, 3}, {2}, {5}, {4, 8}, {7}, {6}, {0, 5}}
	for v, want := range neighbours {
		if got := d.Graph.InNeighbors(int32(v)); !slices.Equal(got, want) {
			t.Errorf("the neighbours of node %d are %v, want %v", v, got, want)
		}
	}
	if want := []int32{0, 2, 1, 1, 0, 0, -1, 1, 2}; !slices.Equal(d.Labels, want) {
		t.Errorf("the classes are %v, want %v", d.Labels, want)
	}
	if want := map[string][]int32{"train": {0, 1}, "val": {2, 3, 4}, "test": {5, 7, 8}}; !reflect.DeepEqual(d.Splits, want) {
		t.Errorf("the splits are %v, want %v", d.Splits, want)
	}
	want := []float32{
		.5, 0, 0, .5, 0, 1, 0, 0, .25, .25, .25, .25, 0, 0, 0, 0, 0, 0, .5, .5,
		1, 0, 0, 0, 0, 0, 0, 0, .5, 0, .5, 0, 0, .5, .5, 0,
	}
	if got := d.SparseFeatures.Dense(); !slices.Equal(got, want) {
		t.Errorf("the features are %v, want %v", got, want)
	}
	if d.Name() != "tiny" || d.Classes() != 3 || d.FeatureDim() != 4 || !d.Meta.Undirected {
		t.Errorf("the dataset is %v, %+v", d, d.Meta)
	}
	raw, err := readRaw("testdata", "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if raw.SparseFeatures.Values != nil || !slices.Equal(raw.SparseFeatures.Indices, d.SparseFeatures.Indices) {
		t.Errorf("the raw features are %+v, want ones", raw.SparseFeatures)
	}
}

func TestNormalizeRows(t *testing.T) {
	s := &dataset.Sparse{Rows: 3, Cols: 3, Indptr: []int64{0, 2, 4, 4}, Indices: []int32{0, 2, 0, 1}, Values: []float32{1, 3, 2, -2}}
	normalizeRows(s)
	if want := []float32{.25, .75, 2, -2}; !slices.Equal(s.Values, want) {
		t.Errorf("the values are %v, want %v", s.Values, want)
	}
}

func TestNames(t *testing.T) {
	dir := stored(t, tiny(t))
	if err := os.WriteFile(filepath.Join(dir, "ind.other.graph"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := planetoidParts(dir); err != nil || !slices.Equal(names, []string{"other", "tiny"}) {
		t.Errorf("the names are %v %v", names, err)
	}
	for name, want := range map[string]string{
		"":               "holds 2 datasets (other, tiny): choose one",
		"other":          "ind.other.x: it does not exist; the dataset other consists of",
		"../tiny":        "has a path in it",
		`..\tiny`:        "has a path in it",
		"absent":         "ind.absent.x: it does not exist",
		"tiny.graph\x00": "has a path in it",
	} {
		if _, err := planetoidRead(dir, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", name, err, want)
		}
	}
	if _, err := planetoidRead(filepath.Join(dir, "none"), ""); err == nil {
		t.Error("reading a directory that does not exist gave no error")
	}
}

func TestMissing(t *testing.T) {
	for _, part := range parts {
		files := tiny(t)
		delete(files, part)
		dir := stored(t, files)
		if _, err := planetoidRead(dir, "tiny"); err == nil || !strings.Contains(err.Error(), "ind.tiny."+part+": it does not exist") {
			t.Errorf("without %s: %v", part, err)
		}
		if err := os.Mkdir(filepath.Join(dir, "ind.tiny."+part), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := planetoidRead(dir, "tiny"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s is a directory: %v", part, err)
		}
	}
}

// planetoidRefused checks that reading fails with a one-line error that names the file.
func planetoidRefused(t *testing.T, dir, part, what string) {
	t.Helper()
	_, err := planetoidRead(dir, "tiny")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "ind.tiny.")) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%s %s: the error is %v", part, what, err)
	}
}

func TestPlanetoidTruncated(t *testing.T) {
	testneed.NotShort(t, "it reads files cut at every byte")
	good := tiny(t)
	dir := stored(t, good)
	for _, part := range parts {
		full := good[part]
		for n := range full {
			if part == "test.index" && n == len(full)-1 {
				continue // a cut here removes only the last line break
			}
			store(t, dir, part, full[:n])
			planetoidRefused(t, dir, part, "cut off")
		}
		store(t, dir, part, full)
	}
}

// Each byte is damaged in turn. A file that is still accepted gives a valid dataset.
func TestPlanetoidDamaged(t *testing.T) {
	good := tiny(t)
	dir := stored(t, good)
	rng := rand.New(rand.NewPCG(3, 4))
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, part := range parts {
		full := good[part]
		for i := 0; i < len(full); i += step {
			bad := slices.Clone(full)
			bad[i] ^= byte(1 + rng.IntN(255))
			store(t, dir, part, bad)
			d, err := planetoidRead(dir, "tiny")
			if err != nil {
				if !strings.Contains(err.Error(), "ind.tiny.") || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%s, byte %d is %#x: the error is %v", part, i, bad[i], err)
				}
				continue
			}
			if err := d.Check(context.Background()); err != nil {
				t.Fatalf("%s, byte %d is %#x: %v", part, i, bad[i], err)
			}
		}
		store(t, dir, part, full)
	}
}

func TestPlanetoidHostile(t *testing.T) {
	good := tiny(t)
	graph := func(dict string) []byte { return []byte("\x80\x02}(" + dict + "u.") }
	rest := "K\x02]K\x03]K\x04]K\x05]K\x06]K\x07]K\x08]"
	for _, c := range []struct {
		name, part string
		content    []byte
		want       string
	}{
		{"code", "graph", []byte("cos\nsystem\n(S'touch /tmp/x'\ntR."), `ind.tiny.graph: at byte 0: it names "system" of the module "os"`},
		{"code in features", "allx", []byte("cbuiltins\nexec\n(S'1'\ntR."), `ind.tiny.allx: at byte 0: it names "exec"`},
		{"a list for the graph", "graph", []byte("]."), "it holds a list; a dict of lists was expected"},
		{"a negative neighbour", "graph", graph("K\x00](J\xff\xff\xff\xffeK\x01]" + rest), "neighbour 0 of node 0 is -1; the nodes are 0 to 8"},
		{"a neighbour beyond the last", "graph", graph("K\x00](K\x01K\x09eK\x01]" + rest), "neighbour 1 of node 0 is 9"},
		{"a neighbour of 2^40", "graph", graph("K\x00](\x8a\x06\x00\x00\x00\x00\x00\x01eK\x01]" + rest), "neighbour 0 of node 0 is 1099511627776"},
		{"a neighbour that is a string", "graph", graph("K\x00](U\x01aeK\x01]" + rest), "neighbour 0 of node 0 is bytes"},
		{"a key that is negative", "graph", graph("J\xff\xff\xff\xff]K\x01]" + rest), "the key -1 is not one of the 9 nodes"},
		{"a key beyond the last", "graph", graph("K\x09]K\x01]" + rest), "the key 9 is not one of the 9 nodes"},
		{"a key that is a string", "graph", graph("U\x010]K\x01]" + rest), "a key is bytes"},
		{"a node twice", "graph", graph("K\x01]K\x01]" + rest), "node 1 has two lists"},
		{"a node with a number", "graph", graph("K\x00K\x05K\x01]" + rest), "node 0 has a whole number"},
		{"a node less", "graph", graph("K\x00]K\x01]" + rest[:len(rest)-3]), "test.index: line 1 is 8; the test nodes lie in 5 to 7"},
		{"a node more", "graph", graph("K\x00]K\x01]K\x09]" + rest), "the last node is 8, but ind.tiny.graph has the nodes 0 to 9"},
		{"one list for all", "graph", graph("K\x00](" + strings.Repeat("K\x01", 90) + "eq\x00" + strings.ReplaceAll("K\x01]"+rest, "]", "h\x00")), "share their lists"},
		{"a test node twice", "test.index", []byte("8\n5\n8\n"), "line 3 is 8, which was listed before"},
		{"a test node among the others", "test.index", []byte("8\n5\n4\n"), "line 3 is 4; the test nodes lie in 5 to 8"},
		{"a negative test node", "test.index", []byte("8\n-5\n7\n"), "line 2 is -5"},
		{"a test node beyond the last", "test.index", []byte("8\n5\n999999999999\n"), "line 3 is 999999999999"},
		{"words", "test.index", []byte("8\nfive\n"), `line 2 is "five", not the number of a node`},
		{"an endless line", "test.index", []byte("8\n" + strings.Repeat("5", 1<<20)), "line 2"},
		{"fewer test nodes", "test.index", []byte("8\n5\n"), "it lists 2 nodes, but ind.tiny.tx has 3 rows"},
		{"classes for features", "allx", good["ally"], "it holds a NumPy array; a SciPy CSR matrix was expected"},
		{"features for classes", "ally", good["allx"], "it holds a SciPy CSR matrix; a NumPy array was expected"},
		{"fewer features", "allx", good["tx"], "ind.tiny.ally: it has 5 rows, but ind.tiny.allx has 3"},
		{"fewer classes", "ally", good["ty"], "ind.tiny.ally: it has 3 rows, but ind.tiny.allx has 5"},
		{"fewer training nodes", "x", good["tx"], "ind.tiny.y: it has 2 rows, but ind.tiny.x has 3"},
	} {
		files := tiny(t)
		files[c.part] = c.content
		_, err := planetoidRead(stored(t, files), "tiny")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
}

// Rows with two ones or with other numbers are not classes.
func TestOneHot(t *testing.T) {
	one := []byte{1, 11: 0} // the first row
	good := tiny(t)
	at := strings.Index(string(good["ally"]), string(one))
	for _, c := range []struct {
		offset int
		value  byte
		want   string
	}{{4, 1, "row 0 has two classes, 0 and 1"}, {0, 2, "row 0, column 0 is 2"}} {
		bad := slices.Clone(good["ally"])
		bad[at+c.offset] = c.value
		files := tiny(t)
		files["ally"] = bad
		if _, err := planetoidRead(stored(t, files), "tiny"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one with %q", err, c.want)
		}
	}
}

func TestPlanetoidMemory(t *testing.T) {
	// The arrays of the matrix claim 2^40 elements, although the lists take only 4 MiB.
	lying := strings.Replace(string(tiny(t)["allx"]), "K\x06\x85", "\x8a\x06\x00\x00\x00\x00\x00\x01\x85", 1)
	if lying == string(tiny(t)["allx"]) {
		t.Fatal("ind.tiny.allx has no shape (6,)")
	}
	for part, content := range map[string]string{"allx": lying, "graph": strings.Repeat("]", 4<<20)} {
		files := tiny(t)
		files[part] = []byte(content)
		dir := stored(t, files)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := planetoidRead(dir, "tiny")
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", part)
		}
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(4*len(content)+3<<20); got > limit {
			t.Errorf("%s: %d bytes were allocated for a file of %d", part, got, len(content))
		}
	}
}

// cora returns the directory of the public files.
func cora(t *testing.T) string {
	t.Helper()
	return filepath.Dir(testneed.RealData(t, "planetoid/ind.cora.graph"))
}

// coraScript prints Cora as Python's own pickle module reads it. It needs no SciPy: a class with
// the matrix's attributes replaces it.
const coraScript = `
import json, pickle, sys
import numpy as np
class csr_matrix: pass
class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        return csr_matrix if module.startswith("scipy.sparse") else super().find_class(module, name)
def part(name):
    with open(f"{sys.argv[1]}/ind.cora.{name}", "rb") as f:
        return Reader(f, encoding="latin1").load()
allx, tx, graph = part("allx"), part("tx"), part("graph")
test = [int(line) for line in open(f"{sys.argv[1]}/ind.cora.test.index")]
n = max(graph) + 1
rows = [None] * n
y = [None] * n
def put(m, hot, ids):
    for i, v in enumerate(ids):
        cols = m.indices[m.indptr[i]:m.indptr[i + 1]]
        vals = m.data[m.indptr[i]:m.indptr[i + 1]]
        rows[v] = sorted((int(c), float(x)) for c, x in zip(cols, vals))
        y[v] = int(hot[i].argmax())
put(allx, part("ally"), range(allx._shape[0]))
put(tx, part("ty"), test)
edges = {(a, b) for v in graph for u in graph[v] for a, b in ((u, v), (v, u)) if u != v}
near = [sorted(a for a, b in ()) for _ in range(n)]
for a, b in edges:
    near[b].append(a)
json.dump({"near": [sorted(r) for r in near], "rows": rows, "y": y, "test": sorted(test),
           "train": len(part("y")), "features": allx._shape[1]}, sys.stdout)
`

func TestCora(t *testing.T) {
	dir := cora(t)
	d, err := planetoidRead(dir, "cora")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := []int{d.Nodes(), int(d.Edges() / 2), d.FeatureDim(), d.Classes(), len(d.Splits["train"]), len(d.Splits["val"]), len(d.Splits["test"])}; !slices.Equal(got, []int{2708, 5278, 1433, 7, 140, 500, 1000}) {
		t.Errorf("Cora is %v", d)
	}
	for v := range d.Nodes() {
		var sum float64
		_, values := d.SparseFeatures.Row(v)
		for _, x := range values {
			sum += float64(x)
		}
		if math.Abs(sum-1) > 1e-5 { // 30 roundings of 2^-24 each
			t.Fatalf("the features of node %d add up to %v", v, sum)
		}
	}
}

func TestCoraLikePython(t *testing.T) {
	testneed.NotShort(t, "it starts Python")
	dir := cora(t)
	exe := testneed.PythonWith(t, "numpy")
	cmd := exec.Command(exe, "-c", coraScript, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Near            [][]int32
		Rows            [][][2]float64
		Y, Test         []int32
		Train, Features int
	}
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	d, err := readRaw(dir, "cora")
	if err != nil {
		t.Fatal(err)
	}
	if d.Nodes() != len(want.Y) || d.FeatureDim() != want.Features || len(d.Splits["train"]) != want.Train {
		t.Fatalf("%v, but Python finds %d nodes, %d features, %d training nodes", d, len(want.Y), want.Features, want.Train)
	}
	if !slices.Equal(d.Labels, want.Y) || !slices.Equal(d.Splits["test"], want.Test) {
		t.Error("classes or test nodes differ")
	}
	for v := range d.Nodes() {
		if !slices.Equal(d.Graph.InNeighbors(int32(v)), want.Near[v]) {
			t.Fatalf("the neighbours of node %d are %v; Python finds %v", v, d.Graph.InNeighbors(int32(v)), want.Near[v])
		}
		cols, values := d.SparseFeatures.Row(v)
		if values != nil || len(cols) != len(want.Rows[v]) {
			t.Fatalf("node %d has %d features; Python finds %d", v, len(cols), len(want.Rows[v]))
		}
		for k, c := range cols {
			if want.Rows[v][k] != [2]float64{float64(c), 1} {
				t.Fatalf("node %d has the feature %d; Python finds %v", v, c, want.Rows[v][k])
			}
		}
	}
}

func FuzzPlanetoidRead(f *testing.F) {
	good := tiny(f)
	for i, part := range parts {
		f.Add(uint8(i), good[part])
	}
	dir := stored(f, good)
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		part := parts[int(which)%len(parts)]
		store(t, dir, part, content)
		d, err := planetoidRead(dir, "tiny")
		store(t, dir, part, good[part])
		if err != nil {
			return
		}
		if err := d.Check(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
