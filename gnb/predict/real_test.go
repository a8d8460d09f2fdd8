package predict_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/internal/testneed"
)

// heldOut is a dataset without the last nodes of each type, these as additions, and their numbers in the whole dataset, of
// which the features are in compressed rows of ones.
func heldOut(t *testing.T, all *dataset.Dataset, fresh int) (old *gnb.Dataset, a predict.Additions, news []int32) {
	t.Helper()
	s := all.Schema()
	starts, undirected := []int{0, all.Nodes()}, all.Meta.Undirected && s == nil
	if s != nil {
		starts = s.Starts()
	}
	typeOf := func(v int32) (typ, number int) {
		for typ = len(starts) - 2; int(v) < starts[typ]; typ-- {
		}
		return typ, int(v) - starts[typ]
	}
	// now returns the number of a node in the old dataset, and what an addition calls it.
	now := func(v int32) (old int32, name string, isNew bool) {
		typ, number := typeOf(v)
		if number >= starts[typ+1]-starts[typ]-fresh {
			return -1, fmt.Sprint("new", v), true
		}
		return v - int32(typ*fresh), strconv.Itoa(number), false
	}
	var src, dst []int32
	var d graphops.EdgeData
	for v := range int32(all.Nodes()) {
		to, target, isNew := now(v)
		for i, u := range all.Graph.InNeighbors(v) {
			at := all.Graph.Indptr[v] + int64(i)
			from, source, also := now(u)
			if !isNew && !also {
				src, dst = append(src, from), append(dst, to)
				if all.Graph.EdgeWeights != nil {
					d.Weights = append(d.Weights, all.Graph.EdgeWeights[at])
				}
				if s != nil {
					d.Types = append(d.Types, all.Graph.EdgeTypes[at])
				}
				continue
			}
			if undirected && u > v {
				continue // the other direction has it
			}
			e := predict.Edge{Source: source, Target: target}
			if all.Graph.EdgeWeights != nil {
				weight := all.Graph.EdgeWeights[at]
				e.Weight = &weight
			}
			if s != nil {
				e.Relation = s.Relations[all.Graph.EdgeTypes[at]].String()
			}
			a.Edges = append(a.Edges, e)
		}
	}
	n := all.Nodes() - fresh*(len(starts)-1)
	g, err := graphops.FromEdgesWith(n, src, dst, d, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old = &gnb.Dataset{Labels: make([]int32, n), Splits: map[string][]int32{}, Meta: all.Meta}
	old.Meta.EdgeSplits, old.Meta.Splits = nil, nil
	cut := func(x *dataset.Sparse, typ int) *dataset.Sparse {
		if x == nil {
			return nil
		}
		rows := x.Rows - fresh
		for i := rows; i < x.Rows; i++ {
			v := int32(starts[typ] + i)
			_, name, _ := now(v)
			row := make([]float32, x.Cols)
			columns, _ := x.Row(i)
			for _, c := range columns {
				row[c] = 1
			}
			node := predict.Node{ID: name, Features: row}
			if s != nil {
				node.Type = s.Nodes[typ].Name
			}
			a.Nodes, news = append(a.Nodes, node), append(news, v)
		}
		return &dataset.Sparse{Rows: rows, Cols: x.Cols, Indptr: x.Indptr[:rows+1], Indices: x.Indices[:x.Indptr[rows]]}
	}
	if s == nil {
		old.SparseFeatures = cut(all.SparseFeatures, 0)
	} else {
		schema := &graphops.Schema{Relations: s.Relations}
		old.Meta.NodeTypes = append([]dataset.NodeType(nil), all.Meta.NodeTypes...)
		for typ, k := range s.Nodes {
			schema.Nodes = append(schema.Nodes, graphops.NodeType{Name: k.Name, Count: k.Count - fresh})
			old.Meta.NodeTypes[typ].Count -= fresh
			x := all.FeaturesOf(typ)
			old.NodeFeatures = append(old.NodeFeatures, dataset.NodeFeatures{Sparse: cut(x.Sparse, typ)})
			if x.Sparse == nil {
				for v := starts[typ+1] - fresh; v < starts[typ+1]; v++ {
					_, name, _ := now(int32(v))
					a.Nodes, news = append(a.Nodes, predict.Node{ID: name, Type: k.Name}), append(news, int32(v))
				}
			}
		}
		if g, err = g.WithTypes(schema, g.EdgeTypes); err != nil {
			t.Fatal(err)
		}
	}
	old.Graph = g
	for v, y := range all.Labels {
		if to, _, isNew := now(int32(v)); !isNew {
			old.Labels[to] = y
		}
	}
	for name, ids := range all.Splits {
		for _, v := range ids {
			if to, _, isNew := now(v); !isNew {
				old.Splits[name] = append(old.Splits[name], to)
			}
		}
	}
	return old, a, news
}

// On real graphs, 1000 known nodes and 200 new ones of each type, which have edges to known nodes and to each other, have the bits of inference
// on the whole graph: papers of ogbn-arxiv with a language model's predictions as features, and the synsets and words of WordNet.
func TestRealGraphs(t *testing.T) {
	testneed.NotShort(t, "it converts real graphs, and computes all of them")
	testneed.NotUnderRace(t, "it computes graphs of a million edges")
	for name, c := range map[string]struct {
		source string
		o      func(t *testing.T) convert.Options
		models map[string]gnb.ModelOptions
	}{
		"arxiv": {"ogbn_arxiv/graphsaint", func(t *testing.T) convert.Options {
			return convert.Options{Undirected: true, Features: "one-hot:" + testneed.RealData(t, "ogbn_arxiv/gpt_preds/ogbn-arxiv.csv")}
		}, map[string]gnb.ModelOptions{"sage": {Hidden: 32, Layers: 3}, "gcn": {Hidden: 32, Norm: "batch"}}},
		"wordnet": {"hetero/wordnet", func(*testing.T) convert.Options { return convert.Options{Readers: convert.TypedReaders()} }, map[string]gnb.ModelOptions{"rgcn": {Hidden: 16, Bases: 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			if _, err := convert.Convert(t.Context(), testneed.RealData(t, c.source), dir, c.o(t)); err != nil {
				t.Fatal(err)
			}
			all, err := dataset.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer all.Close()
			old, a, news := heldOut(t, all, 200)
			var nodes []int32
			for i := range int32(1000) {
				nodes = append(nodes, i*int32(old.Nodes()/1000))
			}
			for model, m := range c.models {
				var o gnb.TrainOptions
				o.ModelOptions = m
				o.Quiet, o.Workers, o.Epochs, o.Batch, o.Eval, o.Seed, o.RunDir = true, 1, 1, 8192, "none", 3, t.TempDir()
				if o.Layers == 3 {
					o.Fanouts = []int{5, 5, 5}
				}
				of, err := gnb.ModelByName(model)
				if err != nil {
					t.Fatal(err)
				}
				run, err := gnb.Train(t.Context(), old, of, o)
				if err != nil {
					t.Fatal(err)
				}
				p := open(t, run, old, predict.Options{MaxEdges: 1 << 24})
				got, err := p.New(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				same(t, model+" of new nodes", got, infer(t, run, all, 0), news)
				if got, err = p.Numbered(t.Context(), nodes...); err != nil {
					t.Fatal(err)
				}
				same(t, model+" of known nodes", got, infer(t, run, old, 0), nodes)
			}
		})
	}
}
