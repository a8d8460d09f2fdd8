//go:build cuda && linux && cgo

package backend

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A pass on tensor's backend without memory asks for the buffers of a pass on a GPU, for each model and for batches of
// different sizes: the bytes that are held after each batch, and the most in between, are equal.
func TestDryDeviceAsksForThisMemory(t *testing.T) {
	testneed.NotShort(t, "it trains eight models on the interpreter")
	t.Setenv("GNB_CUDA_EXACT", "1") // buffers have the sizes that were asked for
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 200, Features: 12, Classes: 5, Degree: 6, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	ds.Graph = ds.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*len(ds.Graph.Indices))}, nil)
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{3, 2}, Transpose: true})
	if err != nil {
		t.Fatal(err)
	}
	var batches []*sample.Batch
	for i, n := range []int{20, 3, 35} {
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
	base := nn.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 5, Layers: 2, Dropout: 0.5}
	with := func(set func(*nn.ModelConfig)) nn.ModelConfig {
		c := base
		set(&c)
		return c
	}
	for name, m := range map[string]nn.Model{
		"sage":      nn.NewSAGEModel(base),
		"layernorm": nn.NewSAGEModel(with(func(c *nn.ModelConfig) { c.Norm, c.Residual = "layer", true })),
		"batchnorm": nn.NewGCNModel(with(func(c *nn.ModelConfig) { c.Norm, c.InputDropout = "batch", 0.2 })),
		"max":       nn.NewSAGEModelWith(base, nn.SAGEOptions{Aggr: nn.Max}),
		"gcn":       nn.NewGCNModel(base),
		"gat":       nn.NewGATModel(with(func(c *nn.ModelConfig) { c.Heads = 2 })),
		"gatv2":     nn.NewGATv2Model(with(func(c *nn.ModelConfig) { c.Heads, c.EdgeDim = 2, 3 })),
		"gin":       nn.NewGINModel(base),
		"gine":      nn.NewGINEModel(with(func(c *nn.ModelConfig) { c.EdgeDim, c.FeedForward = 3, true })),
		"gatedgcn":  nn.NewGatedGCNModel(with(func(c *nn.ModelConfig) { c.EdgeDim, c.Norm = 3, "layer" })),
		"pna":       nn.NewPNAModel(with(func(c *nn.ModelConfig) { c.EdgeDim = 3 })),
	} {
		t.Run(name, func(t *testing.T) {
			be := open(t, fakegpu.Config{NoRaces: true})
			if _, err := be.Keep(ds.Features.F32); err != nil {
				t.Fatal(err)
			}
			params, err := nn.Collect(m)
			if err != nil {
				t.Fatal(err)
			}
			params.SetGrad(make([]float32, params.Len()))
			w, err := be.Weights(params)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			kept := map[*float32]bool{&ds.Features.F32[0]: true}
			for _, p := range params.List() {
				kept[&p.W[0]] = true
				if len(p.G) > 0 {
					kept[&p.G[0]] = true
				}
			}
			var now, most int64
			dry := tensor.DryDevice(func(host []float32) bool { return kept[&host[0]] }, func(n int64) {
				now += n
				most = max(most, now)
			}, func(*graphops.Block, tensor.BlockPart, tensor.BlockUse) {})
			real, planned := nn.NewFwd(tensor.Config{Train: true, Backend: be}), nn.NewFwd(tensor.Config{Train: true, Backend: dry})
			for i, b := range batches {
				pass(t, m, real, tensor.Config{Train: true, Step: i, Backend: be}, ds, b)
				pass(t, m, planned, tensor.Config{Train: true, Step: i, Backend: dry}, ds, b)
				if got := be.d.Memory(); got.Held[cuda.Activations] != now || got.Most[cuda.Activations] != most {
					t.Errorf("batch %d: the GPU holds %d bytes and held %d, the backend without memory says %d and %d", i, got.Held[cuda.Activations], got.Most[cuda.Activations], now, most)
				}
			}
			real.Close()
			for _, b := range batches {
				for _, block := range b.Blocks {
					block.Reset() // frees the copies on this device
				}
			}
		})
	}
}

// pass computes a forward and a backward pass.
func pass(t *testing.T, m nn.Model, f *nn.Fwd, c tensor.Config, ds *dataset.Dataset, b *sample.Batch) {
	t.Helper()
	f.Reset(c)
	out, err := nn.TryForward(m, f, b.Blocks, f.SourceTable(tensor.Table{F32: ds.Features.F32}, ds.FeatureDim(), b.Blocks[0]))
	if err != nil {
		t.Fatal(err)
	}
	nn.CrossEntropy(out, make([]int32, len(b.Seeds))).Backward()
}
