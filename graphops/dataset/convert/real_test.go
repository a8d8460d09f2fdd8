package convert

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/tabular"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The sizes are from data/README.md and from the datasets' papers.
func TestRealGraphs(t *testing.T) {
	for _, tc := range []struct {
		name, path     string
		o              Options
		format, called string
		nodes          int
		edges          int64
		features       int
		classes        int
		splits         map[string]int
		sets           int
	}{
		{
			name: "arxiv", path: "ogbn_arxiv/graphsaint", o: Options{Undirected: true}, format: "graphsaint", called: "ogbn_arxiv",
			nodes: 169_343, edges: 2 * 1_157_799, classes: 40, splits: map[string]int{"train": 90_941, "val": 29_799, "test": 48_603}, sets: 1,
		},
		{name: "arxiv as cited", path: "ogbn_arxiv/graphsaint", format: "graphsaint", called: "ogbn_arxiv", nodes: 169_343, edges: 1_166_243, classes: 40, sets: 1},
		{name: "Epinions", path: "snap/soc-Epinions1.txt.gz", format: "edgelist", called: "soc-Epinions1", nodes: 75_888 /* 9 ids name no node */, edges: 508_837, sets: 1},
		{name: "ego-twitter", path: "snap", o: Options{Name: "ego-twitter-undirected"}, format: "jlg", called: "ego-twitter-undirected", nodes: 81_306, edges: 2*1_342_310 - 14 /* self-loops */, sets: 1},
		{
			name: "Cora", path: "planetoid", format: "planetoid", called: "cora",
			nodes: 2708, edges: 2 * 5278, features: 1433, classes: 7, splits: map[string]int{"train": 140, "val": 500, "test": 1000}, sets: 1,
		},
		{
			name: "Computers", path: "shchur", o: Options{Name: "amazon_cs"}, format: "npz", called: "amazon_cs",
			nodes: 13_752, edges: 2 * 245_861, features: 767, classes: 10, splits: map[string]int{"train": 200, "val": 300, "test": 13_252, "train@9": 200}, sets: 10,
		},
		{
			name: "Physics", path: "shchur/coauthor_phy.npz", format: "npz", called: "coauthor_phy",
			nodes: 34_493, edges: 2 * 247_962, features: 8415, classes: 5, splits: map[string]int{"train": 100, "val@4": 150}, sets: 10,
		},
		{name: "chameleon", path: "heterophilous", o: Options{Name: "chameleon_filtered"}, format: "npz", called: "chameleon_filtered", nodes: 890, edges: 2 * 8_854, features: 2325, classes: 5, sets: 10}, // compressed 140 times
		{name: "tolokers", path: "heterophilous", o: Options{Name: "tolokers"}, format: "npz", called: "tolokers", nodes: 11_758, edges: 2 * 519_000, features: 10, classes: 2, sets: 10},
		{name: "3elt", path: "walshaw/graphs/3elt.graph", format: "metis", called: "3elt", nodes: 4720, edges: 2 * 13_722, sets: 1},
		{name: "finan512", path: "walshaw/graphs", o: Options{Name: "finan512"}, format: "metis", called: "finan512", nodes: 74_752, edges: 2 * 261_120, sets: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.edges > 100_000 {
				testneed.NotShort(t, "it converts a graph of 200,000 edges or more")
			}
			d, stats := converted(t, realData(t, tc.path), tc.o)
			if stats.Format != tc.format || d.Name() != tc.called || d.Nodes() != tc.nodes || d.Edges() != tc.edges || d.FeatureDim() != tc.features || d.Classes() != tc.classes || d.SplitSets() != tc.sets {
				t.Errorf("%s (%s, %d split sets), want %s (%s): %d nodes, %d edges, %d features, %d classes, %d split sets",
					d, stats.Format, d.SplitSets(), tc.called, tc.format, tc.nodes, tc.edges, tc.features, tc.classes, tc.sets)
			}
			for name, n := range tc.splits {
				if len(d.Splits[name]) != n {
					t.Errorf("split %s has %d nodes, want %d", name, len(d.Splits[name]), n)
				}
			}
			t.Logf("%s in %.2f s", d, stats.Seconds)
		})
	}
}

// ogbn-arxiv with a language model's predictions as features: up to five classes per node.
func TestArxivPredictions(t *testing.T) {
	testneed.NotShort(t, "it reads and converts ogbn-arxiv")
	src, csv := realData(t, "ogbn_arxiv/graphsaint"), realData(t, "ogbn_arxiv/gpt_preds/ogbn-arxiv.csv")
	d, _ := converted(t, src, Options{Undirected: true, Features: "one-hot:" + csv})
	// The file begins with 24,4,10,16,23; 36 of its lines are empty, and the others name 9 + 2·78 +
	// 3·725 + 4·16712 + 5·151783 classes.
	if d.FeatureDim() != 200 || !slices.Equal(d.SparseFeatures.Indices[:5], []int32{24, 40 + 4, 80 + 10, 120 + 16, 160 + 23}) || len(d.SparseFeatures.Indices) != 828_103 {
		t.Errorf("%s: %d ones, of which the first are in the columns %v", d, len(d.SparseFeatures.Indices), d.SparseFeatures.Indices[:5])
	}
}

// The split in OGB's own files equals the split of GraphSAINT's roles.
func TestArxivSplitsAgree(t *testing.T) {
	testneed.NotUnderRace(t, "it reads large files, as other tests read small ones")
	saint, _ := converted(t, realData(t, "ogbn_arxiv/graphsaint"), Options{})
	s, err := newSource(realData(t, "ogbn_arxiv/ogbn_arxiv"), &tabular.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	for file, name := range map[string]string{"train": "train", "valid": "val", "test": "test"} {
		ids, err := ogbSplit(t.Context(), s, "split/time/"+file, saint.Nodes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		if want := slices.Sorted(slices.Values(saint.Splits[name])); !slices.Equal(ids, want) {
			t.Errorf("split %s: %d nodes by OGB, %d by GraphSAINT, or not the same ones", name, len(ids), len(want))
		}
	}
	f, err := s.csv("raw/node-label", "labels")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	y, err := tabular.ReadTable(t.Context(), f, true, MaxNodes, 0)
	if err != nil {
		t.Fatal(err)
	}
	for v, c := range saint.Labels {
		if float32(c) != y.Values[v] {
			t.Fatalf("node %d has the class %d by GraphSAINT and %v by OGB", v, c, y.Values[v])
		}
	}
	// The folder lacks the edges, and the error names the missing file.
	refused(t, s.Path, Options{}, filepath.Join("raw", "edge.csv.gz"), "is missing")
}

// PACE distributes the road networks compressed with xz.
func TestRoad(t *testing.T) {
	testneed.NotUnderRace(t, "it reads large files, as other tests read small ones")
	for name, want := range map[string]struct {
		nodes int
		edges int64
	}{"NY": {264346, 730100}, "NE": {1524453, 3868020}} {
		if name == "NE" && testing.Short() {
			continue
		}
		d, stats := converted(t, realData(t, "road/"+name+".gr.xz"), Options{})
		if stats.Format != "dimacs" || d.Name() != name || d.Nodes() != want.nodes || d.Edges() != want.edges {
			t.Errorf("%s is %s, by %s", name, d, stats.Format)
		}
		t.Log(d)
	}
}
