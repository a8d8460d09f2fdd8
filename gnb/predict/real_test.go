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

// On ogbn-arxiv, with features of a language model's predictions, 1000 known papers and the last 200 as new ones, which cite known papers
// and each other, have the bits of inference, with all neighbours and by a graph convolution, whose degrees change.
func TestArxiv(t *testing.T) {
	testneed.NotShort(t, "it converts ogbn-arxiv, and computes all of it")
	testneed.NotUnderRace(t, "it computes a graph of a million edges")
	src, csv := testneed.RealData(t, "ogbn_arxiv/graphsaint"), testneed.RealData(t, "ogbn_arxiv/gpt_preds/ogbn-arxiv.csv")
	dir := filepath.Join(t.TempDir(), "arxiv")
	if _, err := convert.Convert(t.Context(), src, dir, convert.Options{Undirected: true, Features: "one-hot:" + csv}); err != nil {
		t.Fatal(err)
	}
	all, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	const fresh, known = 200, 1000
	n := int32(all.Nodes()) - fresh
	var from, to []int32
	var weights []float32 // a citation in both directions has the weight 2
	var a predict.Additions
	name := func(v int32) string {
		if v < n {
			return strconv.Itoa(int(v))
		}
		return fmt.Sprint("paper", v)
	}
	for v := range int32(all.Nodes()) {
		for i, u := range all.Graph.InNeighbors(v) {
			weight := all.Graph.Weight(all.Graph.Indptr[v] + int64(i))
			switch {
			case u < n && v < n:
				from, to, weights = append(from, u), append(to, v), append(weights, weight)
			case u <= v:
				a.Edges = append(a.Edges, predict.Edge{Source: name(u), Target: name(v), Weight: &weight})
			}
		}
	}
	g, err := graphops.FromWeightedEdges(int(n), from, to, weights, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := all.SparseFeatures
	old := &gnb.Dataset{Graph: g, Labels: all.Labels[:n], Splits: map[string][]int32{}, Meta: all.Meta}
	old.SparseFeatures = &dataset.Sparse{Rows: int(n), Cols: x.Cols, Indptr: x.Indptr[:n+1], Indices: x.Indices[:x.Indptr[n]]}
	for name, ids := range all.Splits {
		for _, v := range ids {
			if v < n {
				old.Splits[name] = append(old.Splits[name], v)
			}
		}
	}
	var news, nodes []int32
	for v := n; v < n+fresh; v++ {
		row := make([]float32, x.Cols)
		columns, _ := x.Row(int(v))
		for _, c := range columns {
			row[c] = 1
		}
		news, a.Nodes = append(news, v), append(a.Nodes, predict.Node{ID: name(v), Features: row})
	}
	for i := range int32(known) {
		nodes = append(nodes, i*164)
	}
	for model, o := range map[string]gnb.TrainOptions{"sage": {ModelOptions: gnb.ModelOptions{Hidden: 32, Layers: 3}}, "gcn": {ModelOptions: gnb.ModelOptions{Hidden: 32, Layers: 2, Norm: "batch"}}} {
		t.Run(model, func(t *testing.T) {
			o.Quiet, o.Workers, o.Epochs, o.Batch, o.Eval, o.Seed, o.RunDir = true, 1, 1, 8192, "none", 3, t.TempDir()
			if o.Layers == 3 {
				o.Fanouts = []int{5, 5, 5}
			}
			m, err := gnb.ModelByName(model)
			if err != nil {
				t.Fatal(err)
			}
			run, err := gnb.Train(t.Context(), old, m, o)
			if err != nil {
				t.Fatal(err)
			}
			p := open(t, run, old, predict.Options{MaxEdges: 1 << 24})
			got, err := p.New(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "new papers", got, infer(t, run, all, 0), news)
			if got, err = p.Numbered(t.Context(), nodes...); err != nil {
				t.Fatal(err)
			}
			same(t, "known papers", got, infer(t, run, old, 0), nodes)
		})
	}
}
