package nn_test

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// A pass on the dry backend requests the same memory as a pass on the CPU and counts the work of
// the CPU's pass, for each model and for batches of different sizes. The costs of the parts add up
// to the work.
func TestDryPassIsTheCPUs(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 3000, Features: 24, Classes: 5, Degree: 8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	ds.Graph = ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*len(ds.Graph.Indices))}, nil)
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{6, 4}, Transpose: true})
	if err != nil {
		t.Fatal(err)
	}
	var batches []*sample.Batch
	for i, n := range []int{300, 17, 520} {
		seeds := make([]int32, n)
		for j := range seeds {
			seeds[j] = int32(5*j + i)
		}
		b, err := s.Sample(0, i, sample.Seeds{IDs: seeds})
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	for name, build := range map[string]func(nn.ModelConfig) nn.Model{
		"sage":  func(c nn.ModelConfig) nn.Model { return nn.NewSAGEModel(c) },
		"max":   func(c nn.ModelConfig) nn.Model { return nn.NewSAGEModelWith(c, nn.SAGEOptions{Aggr: nn.Max}) },
		"gcn":   func(c nn.ModelConfig) nn.Model { return nn.NewGCNModel(c) },
		"gat":   func(c nn.ModelConfig) nn.Model { return nn.NewGATModel(c) },
		"gatv2": func(c nn.ModelConfig) nn.Model { return nn.NewGATv2Model(c) },
		"gatv2 edges": func(c nn.ModelConfig) nn.Model {
			c.EdgeDim = 3
			return nn.NewGATv2Model(c)
		},
		"gine":     func(c nn.ModelConfig) nn.Model { return nn.NewGINEModel(edgedPlus(c)) },
		"gatedgcn": func(c nn.ModelConfig) nn.Model { return nn.NewGatedGCNModel(edgedPlus(c)) },
		"pna":      func(c nn.ModelConfig) nn.Model { return nn.NewPNAModel(edgedPlus(c)) },
		"gin":      func(c nn.ModelConfig) nn.Model { return nn.NewGINModel(c) },
		"mlp":      func(c nn.ModelConfig) nn.Model { return nn.NewMLPModel(c) },
	} {
		for _, c := range []nn.ModelConfig{
			{Hidden: 32, Dropout: 0.5}, {Hidden: 16, Heads: 4, Norm: "batch", Residual: true}, {Hidden: 8, Norm: "layer", InputDropout: 0.2, Dropout: 0.3},
		} {
			c.In, c.Out, c.Layers = ds.FeatureDim(), 5, 2
			t.Run(fmt.Sprintf("%s/%+v", name, c), func(t *testing.T) {
				var real, dry tensor.Work
				want := trainedOn(t, build(c), tensor.Config{Train: true, Work: &real}, ds, batches)
				got := trainedOn(t, build(c), tensor.Config{Train: true, Backend: tensor.Dry(&dry, nil)}, ds, batches)
				if real != dry {
					t.Errorf("the work is %+v on the CPU and %+v on the dry backend", real, dry)
				}
				for i := range want {
					if want[i] != got[i] {
						t.Errorf("value %d (bytes that a batch keeps or leaves) is %d on the CPU and %d on the dry backend", i, want[i], got[i])
					}
				}
			})
		}
	}
}

// edgedPlus is a configuration with features of edges and feed-forward parts.
func edgedPlus(c nn.ModelConfig) nn.ModelConfig {
	c.EdgeDim, c.FeedForward = 3, true
	return c
}

// trainedOn runs a forward and a backward pass on each batch and returns the bytes held after each.
func trainedOn(t *testing.T, m nn.Model, c tensor.Config, ds *dataset.Dataset, batches []*sample.Batch) (held []int64) {
	t.Helper()
	p, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	p.SetGrad(make([]float32, p.Len()))
	f := tensor.NewFwd(c)
	for i, b := range batches {
		c.Step = i
		f.Reset(c)
		out, err := nn.TryForward(m, f, b.Blocks, f.SourceTable(tensor.Table{F32: ds.Features.F32}, ds.FeatureDim(), b.Blocks[0]))
		if err != nil {
			t.Fatal(err)
		}
		labels := make([]int32, len(b.Seeds))
		nn.CrossEntropy(out, labels).Backward()
		kept, left := f.Held()
		held = append(held, kept, left)
	}
	return held
}
