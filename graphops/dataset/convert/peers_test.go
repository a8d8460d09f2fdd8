package convert

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Folders in the layout of ogbn-mag and of DGL's CSVDataset become the arrays that OGB 1.3.6's and DGL 2.1.0's readers make
// of them. testdata/peers.py wrote both.
func TestPeersReadTheSame(t *testing.T) {
	t.Parallel()
	for _, peer := range []string{"ogb", "dgl"} {
		raw, err := os.ReadFile(filepath.Join("testdata", peer+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Types        []string
			Counts       map[string]int
			Edges        map[string][][2]int32
			EdgeFeatures map[string][][]float32 `json:"edge_features"`
			Features     map[string][][]float32
			Labels       map[string][]int32
			Splits       map[string]map[string][]int32
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		var o Options
		if peer == "dgl" {
			o.EdgeFeatures = "all"
		}
		d, _ := typedConverted(t, filepath.Join("testdata", peer), o)
		s := d.Schema()
		var types []string
		for _, n := range s.Nodes {
			types = append(types, n.Name)
			if n.Count != want.Counts[n.Name] {
				t.Errorf("%s: %d nodes of type %s, want %d", peer, n.Count, n.Name, want.Counts[n.Name])
			}
		}
		if !slices.Equal(types, want.Types) || len(s.Relations) != len(want.Edges) {
			t.Fatalf("%s: the types are %v, want %v; the relations are %v, want %v", peer, types, want.Types, s.Relations, slices.Sorted(maps.Keys(want.Edges)))
		}
		starts := s.Starts()
		// What edges and their features are, whatever the order.
		type edge struct {
			relation string
			src, dst int32
		}
		there := map[edge][]float32{}
		for v := range d.Nodes() {
			for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
				r := int(d.Graph.EdgeTypes[e])
				from, to := s.Ends(r)
				row := make([]float32, d.EdgeFeatureDimOf(r))
				d.Graph.EdgeFeatures.CopyRow(row, e)
				there[edge{s.Relations[r].String(), d.Graph.Indices[e] - int32(starts[from]), int32(v - starts[to])}] = row
			}
		}
		total := 0
		for relation, edges := range want.Edges {
			total += len(edges)
			for i, ends := range edges {
				row, ok := there[edge{relation, ends[0], ends[1]}]
				var features []float32
				if x := want.EdgeFeatures[relation]; x != nil {
					features = x[i]
				}
				if !ok || !slices.Equal(row, features) {
					t.Errorf("%s: the edge %v of %s has the features %v (there: %v), want %v", peer, ends, relation, row, ok, features)
				}
			}
		}
		if total != len(there) || int64(total) != d.Edges() {
			t.Errorf("%s: %d edges, want %d", peer, d.Edges(), total)
		}
		for i, n := range s.Nodes {
			x := d.NodeFeatures[i].Dense
			if features := want.Features[n.Name]; features == nil {
				if x != nil {
					t.Errorf("%s: nodes of type %s have features", peer, n.Name)
				}
			} else if x == nil || !slices.Equal(x.F32, slices.Concat(features...)) {
				t.Errorf("%s: the features of type %s are %v, want %v", peer, n.Name, x, features)
			}
			if labels := want.Labels[n.Name]; labels != nil && !slices.Equal(d.Labels[starts[i]:starts[i+1]], labels) {
				t.Errorf("%s: the labels of type %s are %v, want %v", peer, n.Name, d.Labels[starts[i]:starts[i+1]], labels)
			}
		}
		for name, of := range want.Splits {
			var ids []int32
			for i, n := range s.Nodes {
				for _, v := range of[n.Name] {
					ids = append(ids, v+int32(starts[i]))
				}
			}
			if !slices.Equal(d.Splits[name], ids) {
				t.Errorf("%s: the split %s is %v, want %v", peer, name, d.Splits[name], ids)
			}
		}
	}
}
