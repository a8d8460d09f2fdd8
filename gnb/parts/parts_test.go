package parts_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/parts"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// A division balances the requested quantity, and its directory holds the division.
func TestDivide(t *testing.T) {
	ds, err := gnb.Load(t.Context(), "planted?nodes=4000&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	train, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	balances := []string{"", "nodes", "edges", "train"}
	if testing.Short() {
		balances = balances[3:]
	}
	for _, balance := range balances {
		out := filepath.Join(t.TempDir(), "parents", "parts")
		r, err := parts.Divide(t.Context(), ds, 4, parts.Options{Balance: balance, Out: out, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		weights := make([]float64, 4)
		total := 0.0
		add := func(v int32, w int) { weights[r.Of[v]] += float64(w); total += float64(w) }
		switch balance {
		case "train":
			for _, v := range train {
				add(v, 1)
			}
		default:
			for v := range int32(ds.Nodes()) {
				w := 1
				if balance == "edges" {
					w = ds.Graph.InDegree(v)
				}
				add(v, w)
			}
		}
		most := 0.0
		for _, w := range weights {
			most = max(most, 4*w/total)
		}
		if d := most - r.Imbalance; d > 1e-9 || d < -1e-9 || most > 1.035 {
			t.Errorf("balance %q: %v, imbalance %v; counted %v", balance, weights, r.Imbalance, most)
		}
		text, err := os.ReadFile(filepath.Join(out, "partition.json"))
		if err != nil {
			t.Fatal(err)
		}
		var back parts.Division
		if err := json.Unmarshal(text, &back); err != nil || back.EdgeCut != r.EdgeCut || back.Parts != 4 || back.Seconds <= 0 {
			t.Errorf("partition.json: %v\n%s", err, text)
		}
		npy, err := os.ReadFile(filepath.Join(out, "parts.npy"))
		if err != nil || len(npy) < 4*ds.Nodes() || !strings.Contains(string(npy[:128]), "'<i4'") || !strings.Contains(string(npy[:128]), "(4000,)") {
			t.Errorf("parts.npy: %v, %d bytes", err, len(npy))
		}
		for v, p := range r.Of {
			if at := len(npy) - 4*ds.Nodes() + 4*v; int32(npy[at]) != p || npy[at+1] != 0 {
				t.Fatalf("parts.npy has a different part for node %d", v)
			}
		}
		if !strings.Contains(r.String(), "4 parts by multilevel") {
			t.Errorf("%s", r)
		}
		if _, err := parts.Divide(t.Context(), ds, 4, parts.Options{Out: out, Quiet: true}); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("dividing into an existing directory gave %v", err)
		}
	}
	several, err := parts.Divide(t.Context(), ds, 4, parts.Options{Balance: "nodes,edges, train", Quiet: true})
	if err != nil || len(several.Imbalances) != 3 || slices.Max(several.Imbalances) > 1.04 || !strings.Contains(several.String(), "% above the mean at most, train ") {
		t.Errorf("balancing three quantities gave %v, %v, %s", err, several.Imbalances, several)
	}
	for _, method := range []string{"fennel", "range", "random"} {
		r, err := parts.Divide(t.Context(), ds, 4, parts.Options{Method: method, Quiet: true})
		if err != nil || r.Parts != 4 || r.Imbalance < 1 {
			t.Errorf("method %s: %v, %v", method, r, err)
		}
		_, err = parts.Divide(t.Context(), ds, 4, parts.Options{Method: method, Balance: "nodes,train", Quiet: true})
		if err == nil || !strings.Contains(err.Error(), "balances one quantity") {
			t.Errorf("method %s with two quantities: %v", method, err)
		}
	}
	if _, err := parts.Divide(t.Context(), ds, 4, parts.Options{Balance: "none", Quiet: true}); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("an unknown balance gave %v", err)
	}
	if _, err := parts.Divide(t.Context(), nil, 4, parts.Options{}); err == nil {
		t.Error("Divide without a dataset gave no error")
	}
	for _, o := range []parts.Options{{Imbalance: -1}, {Imbalance: math.NaN()}, {Threads: -1}} {
		if _, err := parts.Divide(t.Context(), ds, 4, o); err == nil {
			t.Errorf("%+v gave no error", o)
		}
	}
	out := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parts.Divide(t.Context(), ds, 2, parts.Options{Out: filepath.Join(out, "below"), Quiet: true}); err == nil || !strings.Contains(err.Error(), "file") {
		t.Errorf("dividing into a folder below a file gave %v", err)
	}
}

// Parts with far more nodes, edges or features than the mean are named with the balance that mends it; where all is
// balanced nothing is said. The nodes of the training split are all at one end of a path.
func TestLopsided(t *testing.T) {
	ds, err := gnb.Load(t.Context(), "planted?nodes=2000&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	path := *ds
	var src, dst []int32
	for v := range int32(1999) {
		src, dst = append(src, v, v+1), append(dst, v+1, v)
	}
	if path.Graph, err = graphops.FromEdges(2000, src, dst, graphops.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	path.Splits = map[string][]int32{"train": {0, 1, 2, 3, 4, 5, 6, 7}}
	d, err := parts.Divide(t.Context(), &path, 4, parts.Options{Balance: "train", Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	text := d.String()
	for _, want := range []string{"times as many nodes as the mean", "in-edges as the mean", `balance "train,nodes"`, "memory"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if d, err = parts.Divide(t.Context(), &path, 4, parts.Options{Balance: "nodes,train", Quiet: true}); err != nil || len(d.Notes) > 0 || !slices.Equal(d.Train, []int64{2, 2, 2, 2}) {
		t.Errorf("balanced: %v\n%s", err, d)
	}
	if d, err = parts.Divide(t.Context(), &path, 4, parts.Options{Method: "range", Quiet: true}); err != nil || len(d.Notes) != 1 || !strings.Contains(d.String(), "part 0 has 4.0 times as many training nodes") || !strings.Contains(d.String(), `balance "train"`) {
		t.Errorf("ranges: %v\n%s", err, d)
	}
	var total int64
	for _, n := range d.FeatureBytes {
		total += n
	}
	if want := int64(2000 * 4 * ds.FeatureDim()); total != want {
		t.Errorf("the parts have %d bytes of features, want %d", total, want)
	}
}

// Parts of a dataset of tables keep the original ids, also if edges of weight 0 are left out.
func TestOriginalIDsWithZeroWeights(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	g, err := graphops.FromEdges(4, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 0}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write(dir, &dataset.Dataset{Graph: g.WithEdgeWeights([]float32{1, 0, 2, 3}), Meta: dataset.Metadata{Name: "ring"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dataset.NamesFile("")), []byte("a\nb\nc\nd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	d, err := parts.Divide(t.Context(), ds, 2, parts.Options{Out: out, Quiet: true})
	if err != nil || d.ZeroWeights != 1 {
		t.Fatalf("%d edges of weight 0, %v", d.ZeroWeights, err)
	}
	divided, err := dataset.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer divided.Close()
	if ids, err := divided.IDs(); err != nil || !slices.Equal(ids, []string{"a", "b", "c", "d"}) {
		t.Errorf("the ids are %v, %v", ids, err)
	}
}
