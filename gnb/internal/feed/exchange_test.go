//go:build linux

package feed

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// apart is a Comm whose ranks do not share memory, like ranks on different machines.
type apart struct{ collective.Comm }

func (apart) NewMatrix(collective.Site, int, int) (collective.Matrix, error) {
	panic("rows are sent, not shared")
}

// ranks runs f for each of world ranks that share memory, each in its own goroutine.
func ranks(t *testing.T, world int, f func(c collective.Comm) error) []error {
	t.Helper()
	s, err := collective.NewShared(world)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	errs := make([]error, world)
	var wg sync.WaitGroup
	for r := range world {
		c, err := collective.Open(s.Control, s.Data, r, world)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if errs[r] = f(c); errs[r] != nil {
				c.Abort(errs[r].Error())
			}
		})
		defer c.Close()
	}
	wg.Wait()
	return errs
}

func teamOf(c collective.Comm, ds *dataset.Dataset) *Team {
	return NewTeam(TeamOptions{
		Comm: c, Threads: 2, Data: ds,
		Site:   func(kind string) collective.Site { return collective.Site{Kind: kind} },
		Waited: func(string, time.Duration) {},
	})
}

// result holds the loss and the gradient of some steps, added over the ranks.
type result struct {
	loss float64
	grad []float64
}

func (r *result) add(loss *nn.Loss, grad []float32) {
	r.loss += float64(loss.Sum.Data()[0])
	if r.grad == nil {
		r.grad = make([]float64, len(grad))
	}
	for i, g := range grad {
		r.grad[i] += float64(g)
	}
}

// differs compares two results relative to the largest element and describes the difference.
func (r result) differs(o result) string {
	if d := math.Abs(r.loss - o.loss); d > 1e-5*o.loss {
		return fmt.Sprintf("loss %v, want %v", r.loss, o.loss)
	}
	top := 0.0
	for _, g := range o.grad {
		top = math.Max(top, math.Abs(g))
	}
	for i, g := range o.grad {
		if d := math.Abs(g - r.grad[i]); !(d <= 1e-5*top) {
			return fmt.Sprintf("gradient %d is %v, want %v (the largest is %v)", i, r.grad[i], g, top)
		}
	}
	return ""
}

// maxModel is a model whose layer takes the maximum over the sources and the destination's own row
// twice.
type maxModel struct{ Lins []*nn.Linear }

func (m *maxModel) NumLayers() int { return len(m.Lins) }
func (m *maxModel) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	y := f.Add(f.Aggregate(b, h, nn.Max), f.Dst(b, h))
	return m.Lins[i].Forward(f, f.Add(y, f.Dst(b, h)))
}

// The reference of a cooperative step is one rank's step on the whole batch. For each model, the
// sums of the ranks' losses and gradients equal the reference, whether rows are read from shared
// memory or sent, with ranks that own no seeds, and with batches that grow.
func TestCooperativeStep(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 600, Features: 12, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	sizes := nn.ModelConfig{In: 12, Hidden: 8, Out: 4, Layers: 3, Dropout: 0.4, InputDropout: 0.2}
	with := func(f func(c *nn.ModelConfig)) nn.ModelConfig {
		c := sizes
		f(&c)
		return c
	}
	models := map[string]func() nn.Model{
		"sage": func() nn.Model { return nn.NewSAGEModel(sizes) },
		"residual": func() nn.Model {
			return nn.NewSAGEModel(with(func(c *nn.ModelConfig) { c.Residual, c.Norm = true, "layer" }))
		},
		"gcn":     func() nn.Model { return nn.NewGCNModel(sizes) },
		"degrees": func() nn.Model { return nn.NewGCNModel(with(func(c *nn.ModelConfig) { c.BatchDegrees = true })) },
		"gat":     func() nn.Model { return nn.NewGATModel(with(func(c *nn.ModelConfig) { c.Heads = 2 })) },
		"gin":     func() nn.Model { return nn.NewGINModel(sizes) },
		"mlp":     func() nn.Model { return nn.NewMLPModel(sizes) },
		"max": func() nn.Model {
			return &maxModel{nn.Stack(sizes, func(in, out int) *nn.Linear { return nn.NewLinear(in, out, true) })}
		},
	}
	order := sample.EpochOrder(3, 0, ds.Splits["train"])
	batches := [][]int32{order[:2], order[2:90], order[90:91]}
	c := sample.Config{Picker: sample.Fanouts{3, 4, 2}, Seed: 9, Transpose: true}
	// run adds up the losses and gradients of one rank's batches.
	run := func(m nn.Model, s sample.Batcher, x *Exchanger) (r result, err error) {
		params, err := nn.Collect(m)
		if err != nil {
			return r, err
		}
		grad := make([]float32, params.Len())
		params.SetGrad(grad)
		params.Init(4)
		var e tensor.Exchanger
		if x != nil {
			e = x
		}
		f := nn.NewFwd(nn.Config{})
		for step, seeds := range batches {
			b, err := s.Sample(0, step, sample.Seeds{IDs: seeds})
			if err != nil {
				return r, err
			}
			for twice := range 2 { // the second pass begins before the backward pass of the first
				if x != nil {
					x.Begin()
				}
				f.Reset(nn.Config{Train: true, Seed: 5, Step: step, Exchanger: e, Threads: 1 + step%2})
				in := f.SourceRows(ds.Features.F32, ds.Features.Cols, b.Blocks[0])
				labels := make([]int32, len(b.Seeds))
				for i, v := range b.Seeds {
					labels[i] = ds.Labels[v]
				}
				loss := nn.CrossEntropy(nn.Forward(m, f, b.Blocks, in), labels)
				if twice == 1 {
					clear(grad)
					if err := nn.Try(loss.Backward); err != nil {
						return r, err
					}
					r.add(loss, grad)
				}
			}
			b.Release()
		}
		return r, nil
	}
	for name, model := range models {
		t.Run(name, func(t *testing.T) {
			s, err := sample.New(ds.Graph, c)
			if err != nil {
				t.Fatal(err)
			}
			one, err := run(model(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, world := range []int{2, 3, 5} {
				var first []result
				for _, sent := range []bool{false, true, false} {
					parts := make([]result, world)
					for r, err := range ranks(t, world, func(c1 collective.Comm) error {
						if sent {
							c1 = apart{c1}
						}
						team := teamOf(c1, ds)
						s, err := team.Sampler(c, Key{InputHalo: name == "degrees"})
						if err == nil {
							err = nn.Try(func() { parts[c1.Rank()], err = run(model(), s, team.Exchanger()) })
						}
						if err == nil && team.Moved() == 0 {
							err = fmt.Errorf("nothing moved")
						}
						return err
					}) {
						if err != nil {
							t.Fatalf("%d ranks, rank %d: %v", world, r, err)
						}
					}
					all := result{grad: make([]float64, len(one.grad))}
					for _, p := range parts {
						all.loss += p.loss
						for i, g := range p.grad {
							all.grad[i] += g
						}
					}
					if d := all.differs(one); d != "" {
						t.Errorf("%d ranks, rows sent %v: %s", world, sent, d)
					}
					if first == nil {
						first = parts
					}
					for r := range parts {
						if parts[r].loss != first[r].loss || !slices.Equal(parts[r].grad, first[r].grad) {
							t.Errorf("%d ranks: the bits of rank %d differ; rows sent: %v", world, r, sent)
						}
					}
				}
			}
		})
	}
}

// A layer that exchanges rows of the first block says what it lacks.
func TestInputHaloIsAskedFor(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 600, Features: 12, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range ranks(t, 2, func(c collective.Comm) error {
		team := teamOf(c, ds)
		s, err := team.Sampler(sample.Config{Picker: sample.Fanouts{3, 3}, Seed: 9, Transpose: true}, Key{})
		if err != nil {
			return err
		}
		b, err := s.Sample(0, 0, sample.Seeds{IDs: ds.Splits["train"][:50]})
		if err != nil {
			return err
		}
		m := nn.NewGCNModel(nn.ModelConfig{In: 12, Hidden: 4, Out: 4, Layers: 2, BatchDegrees: true})
		f := nn.NewFwd(nn.Config{Train: true, Exchanger: team.Exchanger()})
		_, err = nn.TryForward(m, f, b.Blocks, f.SourceRows(ds.Features.F32, 12, b.Blocks[0]))
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "set the Loader's InputHalo") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// When a rank fails, the exchanges of the other ranks end with an error.
func TestExchangeEnds(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 600, Features: 12, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range ranks(t, 2, func(c collective.Comm) error {
		team := teamOf(c, ds)
		s, err := team.Sampler(sample.Config{Picker: sample.Fanouts{3, 3}, Seed: 9, Transpose: true}, Key{})
		if err != nil {
			return err
		}
		b, err := s.Sample(0, 0, sample.Seeds{IDs: ds.Splits["train"][:50]})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return fmt.Errorf("a failure")
		}
		m := nn.NewSAGEModel(nn.ModelConfig{In: 12, Hidden: 4, Out: 4, Layers: 2})
		f := nn.NewFwd(nn.Config{Train: true, Exchanger: team.Exchanger()})
		_, err = nn.TryForward(m, f, b.Blocks, f.SourceRows(ds.Features.F32, 12, b.Blocks[0]))
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "a failure") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// frontier is a FrontierPicker without any picks.
type frontier struct{ sample.FrontierPicker }

// Virtual ranks and samplers with a FrontierPicker are refused.
func TestCooperativeRefused(t *testing.T) {
	if err := CheckCooperative(2, nil); err == nil || !strings.Contains(err.Error(), "2 virtual ranks per worker") {
		t.Error(err)
	}
	if err := CheckCooperative(1, frontier{}); err == nil || !strings.Contains(err.Error(), "Frontier samples for a whole one") {
		t.Error(err)
	}
	if err := CheckCooperative(1, nil); err != nil {
		t.Error(err)
	}
}

// A rank that has nothing to read begins its next pass at once, but does not overwrite what the other rank
// still reads of the last one, also if each pass has one exchange and no backward pass.
func TestExchangeWaitsForReaders(t *testing.T) {
	const rows, cols, passes = 1 << 14, 16, 12
	all := make([]int32, rows)
	for i := range all {
		all[i] = int32(i)
	}
	// Rank 0 writes, and rank 1 reads: rank 0's sums for rank 1's rows, or rank 0's rows in rank 1's halo.
	none, some := [][]int32{nil, nil}, [][]int32{nil, all}
	adding := []*graphops.Halo{
		{From: some, To: none, At: []int{0, 0}, Most: rows},
		{Own: rows, From: none, To: [][]int32{all, nil}, At: []int{0, 0}, Most: rows},
	}
	filling := []*graphops.Halo{
		{Own: rows, From: none, To: some, At: []int{0, 0}, Most: rows},
		{From: [][]int32{all, nil}, To: none, At: []int{0, 0}, Most: rows},
	}
	for name, halos := range map[string][]*graphops.Halo{"add": adding, "fill": filling} {
		for r, err := range ranks(t, 2, func(c collective.Comm) error {
			x := teamOf(c, nil).Exchanger()
			data := make([]float32, rows*cols)
			for pass := range passes {
				for i := range data {
					data[i] = float32((pass + 1) * (1 - c.Rank())) // rank 1 has zeros
				}
				x.Begin()
				e, err := x.Exchange(halos[c.Rank()], cols)
				if err == nil && name == "add" {
					err = e.Add(data)
				} else if err == nil {
					err = e.Fill(data)
				}
				if err != nil {
					return err
				}
				for i, v := range data {
					if v != float32(pass+1) {
						return fmt.Errorf("%s, pass %d: element %d is %v, want %d", name, pass, i, v, pass+1)
					}
				}
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
}
