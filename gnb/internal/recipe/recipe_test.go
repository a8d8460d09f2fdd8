package recipe_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/recipe"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// The rules choose by facts: a table of graphs that differ in one of them.
func TestRules(t *testing.T) {
	t.Parallel()
	base := recipe.Facts{Nodes: 20_000, Edges: 600_000, Features: 500, Classes: 10, Train: 12_000, Homophily: 0.7}
	with := func(change func(f *recipe.Facts)) recipe.Facts {
		f := base
		change(&f)
		return f
	}
	for _, c := range []struct {
		name string
		f    recipe.Facts
		want []string
		not  []string
	}{
		{"many labels, high degrees", base, []string{"layer norm", "2 layers", "whole graph"}, []string{"residual"}},
		{"low degrees", with(func(f *recipe.Facts) { f.Edges = 100_000 }), []string{"layer norm", "residual", "2 layers"}, nil},
		{"few labels", with(func(f *recipe.Facts) { f.Train = 200 }), []string{"no norm", "dropout 0.7"}, []string{"residual"}},
		{"other classes", with(func(f *recipe.Facts) { f.Homophily = 0.1 }), []string{"batch norm", "residual", "4 layers"}, nil},
		{"other classes, low degrees", with(func(f *recipe.Facts) { f.Homophily, f.Edges = 0.1, 100_000 }), []string{"batch norm", "residual", "9 layers"}, nil},
		{"other classes, few features", with(func(f *recipe.Facts) { f.Homophily, f.Features = 0.1, 10 }), []string{"64 columns", "dropout 0.2"}, nil},
		{"other classes, few features, low degrees", with(func(f *recipe.Facts) { f.Homophily, f.Features, f.Edges = 0.1, 10, 100_000 }), []string{"12 layers of 64 columns"}, nil},
		{"more nodes, narrower", with(func(f *recipe.Facts) { f.Nodes, f.Edges, f.Train = 90_000, 3_000_000, 50_000 }), []string{"128 columns"}, nil},
		{"other classes, small", with(func(f *recipe.Facts) { f.Homophily, f.Nodes, f.Edges, f.Train = 0.1, 900, 18_000, 500 }), []string{"no norm", "5 layers", "weight decay 0.001"}, []string{"residual"}},
		{"homophily unknown", with(func(f *recipe.Facts) { f.Homophily = math.NaN() }), []string{"layer norm", "2 layers"}, nil},
		{"large", with(func(f *recipe.Facts) { f.Nodes, f.Edges, f.Train = 2_000_000, 60_000_000, 200_000 }), []string{"10 epochs", "layer norm"}, []string{"whole graph"}},
		{"in parts", with(func(f *recipe.Facts) { f.Parts = true }), nil, []string{"whole graph"}},
		{"few labels, large", with(func(f *recipe.Facts) { f.Nodes, f.Train = 1_000_000, 200 }), []string{"100 epochs", "3 layers"}, []string{"whole graph"}},
	} {
		s := recipe.Rules(c.f, "", false)
		text := s.String()
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q lacks %q", c.name, text, w)
			}
		}
		for _, w := range c.not {
			if strings.Contains(text, w) {
				t.Errorf("%s: %q has %q", c.name, text, w)
			}
		}
		if s.Model != "gcn" || len(s.Why) == 0 || s.Epochs < 1 || s.LR <= 0 || s.Hidden < 64 {
			t.Errorf("%s: %+v", c.name, s)
		}
		if sampled := recipe.Rules(c.f, "gat", true); sampled.FullGraph || sampled.Layers > 3 || sampled.Epochs > 100 || sampled.Model != "gat" {
			t.Errorf("%s, with sampled batches: %+v", c.name, sampled)
		}
	}
	base.Typed = true
	if s := recipe.Rules(base, "", false); s.Model != "rgcn" {
		t.Errorf("a graph with types is for %s", s.Model)
	}
}

// The published settings: the best model of a set without a model, another one by its name, and errors that list what there is.
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, model, want string }{
		{"amazon_cs", "", "layer norm, 2 layers of 64 columns, dropout 0.5, learning rate 0.001, weight decay 5e-05, 1000 epochs"},
		{"amazon_cs", "gcn", "layer norm, 3 layers of 512 columns"},
		{"coauthor_phy", "", "layer norm, residual, 2 layers of 64 columns, dropout 0.3, learning rate 0.001, weight decay 0.0005, 1500 epochs"},
		{"cora", "", "no norm, 3 layers of 512 columns, dropout 0.7"},
		{"chameleon_filtered", "gat", "batch norm, residual, 2 layers of 256 columns, dropout 0.7, learning rate 0.01, weight decay 0.001, 200 epochs"},
		{"roman-empire", "sage", "batch norm, a linear layer first, 9 layers of 256 columns"},
	} {
		s, err := recipe.Named(&dataset.Dataset{}, c.name, c.model)
		if err != nil || !strings.Contains(s.String(), c.want) || !s.FullGraph || s.Patience != 0 || s.EvalEvery < 2 {
			t.Errorf("%s, %q: %v, %v", c.name, c.model, s, err)
		}
	}
	for _, name := range recipe.Names()[1:] {
		if s, err := recipe.Named(&dataset.Dataset{}, name, ""); err != nil || s.Model == "" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if _, err := recipe.Named(&dataset.Dataset{}, "nobody", ""); err == nil || !strings.Contains(err.Error(), "strong, amazon_cs") {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := recipe.Named(&dataset.Dataset{SparseFeatures: &dataset.Sparse{Values: []float32{.5}}}, "cora", "gin"); err == nil || !strings.Contains(err.Error(), "gcn, sage, gat") {
		t.Errorf("an unknown model: %v", err)
	}
}

// The facts count edges between known nodes alone: labels of the test split change nothing.
func TestFactsKnowNoTestLabel(t *testing.T) {
	t.Parallel()
	g, y := graphops.Karate()
	ds := &dataset.Dataset{
		Graph: g, Labels: slices.Clone(y), Features: &dataset.Matrix{Rows: 34, Cols: 1, F32: make([]float32, 34)},
		Splits: map[string][]int32{"train": {0, 1, 2, 33, 32}, "val": {3, 31, 30}, "test": {4, 5, 6, 7, 8}}, Meta: dataset.Metadata{Name: "karate", NumClasses: 2},
	}
	f, err := recipe.FactsOf(ds)
	if err != nil || f.Nodes != 34 || f.Edges != 156 || f.Train != 5 || f.Classes != 2 || !(f.Homophily > 0) {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, v := range ds.Splits["test"] {
		ds.Labels[v] = 1 - ds.Labels[v]
	}
	if other, err := recipe.FactsOf(ds); err != nil || other != f {
		t.Errorf("with other labels of the test split: %+v, %v; want %+v", other, err, f)
	}
	ds.Labels = nil
	if f, err = recipe.FactsOf(ds); err != nil || !math.IsNaN(f.Homophily) {
		t.Errorf("without labels: %+v, %v", f, err)
	}
}
