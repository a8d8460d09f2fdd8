package gnb_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// relationProgram trains R-GCN on batches with fanouts by relation, uniformly or by layer-neighbour sampling.
var relationProgram = gnb.Program("test.relationfanouts", func(w *gnb.Worker, labor bool) error {
	ds := w.Dataset()
	schema := ds.Schema()
	p, err := sample.NewRelationFanouts(schema, sample.Fanouts{3, 2}, map[string]sample.Fanouts{schema.Relations[0].String(): {5, -1}, schema.Relations[1].String(): {0, 1}})
	if err != nil {
		return err
	}
	if labor {
		p.Labor = &sample.Labor{}
	}
	n := gnb.RGCN.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Schema: schema})
	opt := w.Adam(n, 0.02)
	for range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Sampler: p, Batch: 48}) {
			w.Step(nn.CrossEntropy(n.Forward(b), b.Labels), opt)
		}
	}
	return nil
})

// Every division of 4 virtual ranks trains on batches with fanouts by relation to the same bits.
func TestRelationFanoutsInALoader(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 200, 150)
	x := &dataset.Matrix{Rows: ds.Nodes(), Cols: 4, F32: make([]float32, 4*ds.Nodes())}
	for i := range x.F32 {
		x.F32[i] = float32(i*i%13) / 13
	}
	ds.NodeFeatures, ds.Features = nil, x
	for _, labor := range []bool{false, true} {
		var want []byte
		for _, workers := range []int{1, 2, 4} {
			run, err := gnb.Launch(t.Context(), relationProgram, labor, gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Seed: 5, Quiet: true, RunDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if got := weights(t, run); want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("labor %v: %d workers × %d virtual ranks have other weights than 1 × 4", labor, workers, 4/workers)
			}
		}
	}
}

// The option RelationFanouts samples by relation in Train: the same batches on one and two workers, others than without
// it, also by layer-neighbour sampling and with a plan; unknown relations and other numbers of hops have a sentence.
func TestTrainWithRelationFanouts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 200, 150)
	seen := map[string]bool{}
	for _, sampler := range []string{"", "labor"} {
		o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 4}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}, Sampler: sampler, Digest: true}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, OptimizerOptions: gnb.OptimizerOptions{Batch: 48, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
		plain := trainTyped(t, ds, "rgcn", o)
		o.RelationFanouts = map[string][]int{"likes": {5, -1}, "user:dislikes:item": {0, 1}}
		one := trainTyped(t, ds, "rgcn", o)
		o.Workers = 2
		if two := trainTyped(t, ds, "rgcn", o); two.Result.Text["digest"] != one.Result.Text["digest"] {
			t.Errorf("sampler %q: two workers have another digest than one", sampler)
		}
		for _, run := range []*runs.Run{plain, one} {
			if digest := run.Result.Text["digest"]; seen[digest] || digest == "" {
				t.Errorf("sampler %q: the digest %q is that of another sampler", sampler, digest)
			} else {
				seen[digest] = true
			}
		}
		p, err := gnb.Plan(t.Context(), ds, gnb.RGCN, o)
		if err != nil || !strings.Contains(p.String(), "other fanouts of 2 relations") {
			t.Errorf("sampler %q: the plan is %v, %v", sampler, p, err)
		}
		r, err := gnb.Sample(t.Context(), ds, gnb.SampleOptions{Fanouts: o.Fanouts, RelationFanouts: o.RelationFanouts, Sampler: sampler, Batch: 48, Seed: 4, Quiet: true})
		if err != nil || r.Digest != one.Result.Text["digest"] {
			t.Errorf("sampler %q: Sample has the digest %s, %v, and training %s", sampler, r.Digest, err, one.Result.Text["digest"])
		}
	}
	for want, by := range map[string]map[string][]int{
		`no relation "buys"`:           {"buys": {1, 1}},
		"fanouts of 1 hops":            {"likes": {1}},
		"user:likes:item twice":        {"likes": {1, 1}, "user:likes:item": {1, 1}},
		"the fanout of hop 0 is -3":    {"likes": {-3, 1}},
		"datasets with types of edges": {"": {1, 1}},
	} {
		data := ds
		if by[""] != nil {
			data = load(t, "karate")
		}
		_, err := gnb.Train(t.Context(), data, gnb.RGCN, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}, RelationFanouts: by}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
		readable(t, err, want)
	}
}
