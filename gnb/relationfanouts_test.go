package gnb_test

import (
	"bytes"
	"testing"

	"github.com/graphnb/graphnb/gnb"
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
