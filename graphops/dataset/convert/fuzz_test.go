package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/tabular"
)

// fuzzed converts a folder with one fuzzed file and checks the outcome: no panic, every accepted
// dataset is valid (read checks it), and every error is one line.
func fuzzed(t *testing.T, files map[string]string, name string, data []byte, o Options) {
	if len(data) > 1<<16 {
		return
	}
	dir := putFile(t, files)
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		dir = path
	}
	o.Threads = 1
	d, _, err := read(t.Context(), dir, &tabular.Meter{}, o)
	switch {
	case err == nil && d.Nodes() > 1<<22:
		t.Errorf("%d bytes have become %s", len(data), d)
	case err != nil && (!strings.HasPrefix(err.Error(), "convert: ") || len(err.Error()) > 2000):
		t.Errorf("the error is %q", err)
	}
}

func FuzzEdgeFiles(f *testing.F) {
	for _, text := range []string{
		"# Nodes: 4 Edges: 4\n0 1\n0 2\n1 2\n2 3\n", "src,dst,w\n0,1,0.5\n1,2,1e3\n", "5,4,u,graph\n1,2\n1,3\n2,3\n3,4\n", gz("0 1\n1 2\n"),
		"c\np sp 5 4\na 1 2 7\na 1 3 1\na 2 3 2\na 3 4 5\n", "p tw 3 1\n1 2\n", "% m\n5 4 011 1\n1 2 7 3 1\n1 1 7 3 2\n1 1 1 2 2 4 5\n1 3 5\n1\n", "2 1\n2\n1\n",
	} {
		for format := range 5 {
			f.Add([]byte(text), uint8(format))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		o := Options{Format: []string{"auto", "edgelist", "jlg", "dimacs", "metis"}[format%5], Relabel: format&64 != 0, Undirected: format&128 != 0}
		fuzzed(t, nil, "g.graph", data, o)
	})
}

func FuzzGraphSAINT(f *testing.F) {
	names := []string{"class_map.json", "role.json", "adj_full.npz", "feats.npy"}
	for i, name := range names {
		f.Add([]byte(saintFiles()[name]), uint8(i))
	}
	f.Add([]byte(`{"0": [0, 1], "3": [1, 1], "2": [NaN, 1.0]}`), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		fuzzed(t, saintFiles(), names[which%4], data, Options{Undirected: which&128 != 0})
	})
}

func FuzzGraphSAGE(f *testing.F) {
	files := func() map[string]string {
		return map[string]string{
			"t-G.json":         `{"directed": false, "graph": {}, "nodes": [{"id": "a", "val": false, "test": false}, {"id": "b\u00e9\ud83d\ude00", "val": true}], "links": [{"source": 0, "target": 1}]}`,
			"t-id_map.json":    `{"a": 0, "b\u00e9\ud83d\ude00": 1}`,
			"t-class_map.json": `{"a": 0, "b\u00e9\ud83d\ude00": 1}`,
		}
	}
	names := []string{"t-G.json", "t-id_map.json", "t-class_map.json"}
	for i, name := range names {
		f.Add([]byte(files()[name]), uint8(i))
	}
	f.Add([]byte(`{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": "a", "target": -1e0}]}`), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) { fuzzed(t, files(), names[which%3], data, Options{}) })
}

func FuzzOGB(f *testing.F) {
	names := []string{"raw/edge.csv", "raw/num-node-list.csv", "raw/node-feat.csv", "raw/node-label.csv", "split/time/train.csv", "raw/num-edge-list.csv"}
	f.Add([]byte("0,1\n0,2\n1,2\n2,3\n"), uint8(0))
	f.Add([]byte("5\n"), uint8(1))
	f.Add([]byte("0,1\n2,3\n4,5\n6,7e0\n8,-9.5\n"), uint8(2))
	f.Add([]byte("1\n0\n2\nnan\n2.0\n"), uint8(3))
	f.Add([]byte("0\n4\n"), uint8(4))
	f.Add([]byte("4\n"), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		name := names[int(which)%len(names)]
		files := ogbFiles()
		delete(files, name+".gz")
		fuzzed(t, files, name, data, Options{})
	})
}

func FuzzNumPy(f *testing.F) {
	names := []string{"edge_index.npy", "x.npy", "y.npy", "train_mask.npy", "valid_idx.npy", "edge_weight.npy"}
	for i, name := range names {
		f.Add([]byte(numpyFiles()[name]), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		fuzzed(t, numpyFiles(), names[int(which)%len(names)], data, Options{})
	})
}

func FuzzCSV(f *testing.F) {
	for name, text := range cSVFiles() {
		f.Add([]byte(text), name == "nodes.csv")
		f.Add([]byte(strings.ReplaceAll(text, ",", ";")), name == "nodes.csv")
	}
	f.Add([]byte("id,label,split\n\"a\",1,train\nb,-1,test\n\"c\"\"\",2e0,\n"), true)
	f.Add([]byte("\xef\xbb\xbfsource\ttarget\tweight\na\tb\t0.5\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, nodes bool) {
		name := "edges.csv"
		if nodes {
			name = "nodes.csv"
		}
		fuzzed(t, cSVFiles(), name, data, Options{})
	})
}

func FuzzOneHot(f *testing.F) {
	f.Add([]byte("1,2\n0\n\n2,0,1\n2,2\n"))
	f.Add([]byte(gz("1\n0\n1\n2\n2.0\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		csv := filepath.Join(t.TempDir(), "p.csv")
		if err := os.WriteFile(csv, data, 0o666); err != nil {
			t.Fatal(err)
		}
		fuzzed(t, saintFiles(), "extra", nil, Options{Features: "one-hot:" + csv})
	})
}
