package nn

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/parallel"
)

func nan() float64 { return math.NaN() }

// Full-graph training on the karate club, from six labelled members.
func TestTrainKarate(t *testing.T) {
	t.Parallel()
	ds := dataset.Karate()
	n := ds.Nodes()
	train, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	labels := make([]int32, n)
	for v := range labels {
		labels[v] = -1
	}
	for _, v := range train {
		labels[v] = ds.Labels[v]
	}
	m := NewSAGEModel(ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: ds.Classes(), Layers: 2, Dropout: 0.2})
	p := mustCollect(t, m)
	p.Init(1)
	adam := optim.NewAdam(optim.AdamOptions{LR: 0.02, WeightDecay: 5e-3})
	blocks := FullGraph(ds.Graph, 2)
	f := NewFwd(Config{})
	var first, last float64
	for step := range 100 {
		f.Reset(Config{Train: true, Seed: 1, Step: step})
		l := CrossEntropy(Forward(m, f, blocks, f.Input(n, n, ds.Features.F32, &Space{})), labels)
		p.ZeroGrad()
		l.Backward()
		adam.Step(p.Flat(), p.Grad(), 1/float32(l.Weight))
		last = l.Mean()
		if step == 0 {
			first = last
		}
	}
	if !(last < first/2) {
		t.Errorf("the loss goes from %v to %v", first, last)
	}
	logits, cols, err := LayerWise(m, f, ds.Graph, ds.Features.F32, ds.FeatureDim())
	if err != nil {
		t.Fatal(err)
	}
	if correct, count := accuracy(logits, cols, labels); correct != count || count != int64(len(train)) {
		t.Errorf("%d of %d training nodes are right", correct, count)
	}
	// The split of the club follows its friendships, so most members without a label are predicted
	// correctly.
	if correct, count := accuracy(logits, cols, ds.Labels); float64(correct) < 0.8*float64(count) {
		t.Errorf("%d of all %d members are right", correct, count)
	}
}

// Twenty steps on sampled batches with dropout, momentum and clipping give the same weights on any
// number of threads. GOMAXPROCS applies to the whole process, so this test is not parallel.
func TestTrainThreads(t *testing.T) {
	const n, in, classes, size = 700, 24, 5, 64
	g := planted(t, n)
	x := expect.Normal(n*in, 1)
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	defer parallel.ShareFrom(parallel.ShareFrom(1)) // small loops use several threads too
	run := func(threads int, o SAGEOptions) []float32 {
		runtime.GOMAXPROCS(threads)
		m := NewSAGEModelWith(ModelConfig{In: in, Hidden: 128, Out: classes, Layers: 3, Dropout: 0.5}, o)
		p := mustCollect(t, m)
		if p.Len() <= 1<<15 {
			t.Fatalf("%d weights fill only one chunk of the optimiser", p.Len())
		}
		p.Init(1)
		s, err := sample.New(g, sample.Config{Picker: sample.Fanouts{5, 4, 3}, Seed: 1, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		adam := optim.NewAdam(optim.AdamOptions{LR: 0.01})
		f := NewFwd(Config{})
		for step := range 20 {
			seeds, labels := make([]int32, size), make([]int32, size)
			for i := range seeds {
				seeds[i] = int32((step*size + i*3) % n)
				labels[i] = seeds[i]%(classes+1) - 1
			}
			b, err := s.Sample(0, step, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			f.Reset(Config{Train: true, Seed: 1, Step: step, Threads: threads})
			ids := b.InputIDs()
			h := f.Input(len(ids), in, gather(x, in, ids), tensor.SrcSpace(b.Blocks[0]))
			l := CrossEntropy(Forward(m, f, b.Blocks, h), labels)
			p.ZeroGrad()
			l.Backward()
			scale, _ := optim.ClipScale(p.Grad(), 1/float32(l.Weight), 0.5)
			adam.Step(p.Flat(), p.Grad(), scale)
		}
		return p.Flat()
	}
	for _, o := range []SAGEOptions{{}, {Aggr: Max, Normalize: true}} {
		want := run(1, o)
		for _, threads := range []int{2, 3} {
			expect.SameBits(t, fmt.Sprintf("weights on %d threads", threads), want, run(threads, o))
		}
		if math.IsNaN(float64(want[0])) {
			t.Error("the weights are NaN")
		}
	}
}

// accuracy counts the labelled rows, and those whose largest logit is the label's.
func accuracy(logits []float32, cols int, labels []int32) (correct, count int64) {
	for r, y := range labels {
		if y < 0 {
			continue
		}
		count++
		if Argmax(logits[r*cols:(r+1)*cols]) == int(y) {
			correct++
		}
	}
	return correct, count
}
