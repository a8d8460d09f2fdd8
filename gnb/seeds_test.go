package gnb_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// ownSeeds trains on pairs of nodes (i, i+1) as items, and counts each item.
var ownSeeds = gnb.Program("test.own-seeds", func(w *gnb.Worker, bad string) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	w.Digest()
	seen := make([]float64, ds.Nodes()/2)
	s := gnb.Seeds{Items: len(seen), Of: func(_, _ int, items []int32, lo, hi int) (seeds []int32, value any, err error) {
		for _, i := range items[lo:hi] {
			seeds = append(seeds, 2*i, 2*i+1)
		}
		if bad == "repeated" && len(seeds) > 0 {
			seeds = append(seeds, seeds[0])
		}
		if bad == "error" {
			return nil, nil, errors.New("no seeds today")
		}
		return seeds, hi - lo, nil
	}}
	l := gnb.Loader{Fanouts: []int{4, 3}, Batch: 50}
	switch bad {
	case "nothing":
		s.Of = nil
	case "negative":
		s.Items = -1
	case "cooperative":
		l.Cooperative = true
	}
	for range w.Epochs(2) {
		for b := range w.BatchesOf(s, l) {
			if b.Value.(int) != len(b.Items) || len(b.Seeds) != 2*len(b.Items) {
				return fmt.Errorf("a batch of %d items has %d seeds and the value %v", len(b.Items), len(b.Seeds), b.Value)
			}
			for k, i := range b.Items {
				if !slices.Equal(b.Seeds[2*k:2*k+2], []int32{2 * i, 2*i + 1}) {
					return fmt.Errorf("item %d has the seeds %v", i, b.Seeds[2*k:2*k+2])
				}
				seen[i]++
			}
			w.Step(b.Loss(net.Forward(b)), opt)
		}
	}
	w.AllReduce(seen)
	for i, n := range seen {
		if n != 2 {
			return fmt.Errorf("item %d was in %v batches of 2 epochs", i, n)
		}
	}
	return nil
})

// A program's own items are each in one batch of an epoch; digest and, with equal virtual ranks,
// weights do not depend on workers.
func TestBatchesOf(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=601&features=8&classes=3&seed=2")
	var digest, bits string
	for _, workers := range []int{1, 2, 4} {
		run, err := gnb.Launch(t.Context(), ownSeeds, "", gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Quiet: true, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		d, b := run.Result.Text["digest"], string(weights(t, run))
		if workers == 1 {
			digest, bits = d, b
		}
		if d != digest || d == "" || b != bits {
			t.Errorf("%d workers have the digest %q, and one %q; equal weights: %v", workers, d, digest, b == bits)
		}
	}
	for bad, want := range map[string]string{
		"nothing": `BatchesOf needs the seeds of items, Seeds\.Of`, "negative": `Seeds\.Items is -1`, "cooperative": "BatchesOf makes no cooperative batches",
		"repeated": "occurs twice", "error": "no seeds today",
	} {
		_, err := gnb.Launch(t.Context(), ownSeeds, bad, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		readable(t, err, want)
	}
}

// ownSampler trains on batches of a sampler of its own, without a loop over batches.
var ownSampler = gnb.Program("test.own-sampler", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 3, Layers: 2})
	opt := w.Adam(net, 0.01)
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{4, 3}})
	if err != nil {
		return err
	}
	for step := range 4 {
		b, err := s.Sample(0, step, []int32{int32(step), 20, 40})
		if err != nil {
			return err
		}
		w.Step(nn.CrossEntropy(net.Forward(&gnb.Batch{Batch: b}), []int32{0, 1, 2}), opt)
		b.Release()
	}
	return nil
})

// Batches of a program's own sampler train, also of a dataset without labels and splits.
func TestOwnSampler(t *testing.T) {
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	bare := &gnb.Dataset{Graph: ds.Graph, Features: ds.Features}
	bare.Meta.Name, bare.Meta.Undirected = "bare", true
	for _, d := range []*gnb.Dataset{ds, bare} {
		if _, err := gnb.Launch(t.Context(), ownSampler, 0, gnb.LaunchOptions{Data: d, Quiet: true, RunDir: t.TempDir()}); err != nil {
			t.Errorf("%s: %v", d.Name(), err)
		}
	}
}
