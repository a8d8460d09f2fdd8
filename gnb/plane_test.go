package gnb_test

import (
	"bytes"
	"cmp"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Workers that have only their own parts' features get the other rows from each other. Their
// samples, weights and outputs are, to the bit, those of workers that read files, for any cache,
// prefetch and topology, and for cooperative batches.
func TestTrainByExchange(t *testing.T) {
	testneed.Raced(t, "it trains a dozen times")
	ds := load(t, "planted?nodes=1500&features=12&classes=4&seed=2")
	parts, bare := divideWell(t, ds, 8, divided.Options{}), divideWell(t, ds, 8, divided.Options{NoTopology: true})
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}}
	train := func(ds *gnb.Dataset, o gnb.TrainOptions) partsRun { return tradivideWell(t, ds, o) }
	o.Workers = 2
	want := train(parts, o)
	o.Cooperative = true
	together := train(parts, o)
	type exchangeCase struct {
		name        string
		workers     int
		cache       string
		prefetch    int
		topology    string
		ds          *gnb.Dataset
		cooperative bool
		eval        string
	}
	cases := []exchangeCase{
		{"2 workers, cache", 2, "20%", 8, "", parts, false, ""},
		{"2 workers, divided topology", 2, "0.2", 2, "divided", parts, false, ""},
		{"4 workers, no graph", 4, "", 3, "", bare, false, ""},
		{"2 workers together", 2, "0.2", 2, "", parts, true, ""},
		{"1 worker", 1, "0.2", 2, "", parts, false, ""},
		{"2 workers", 2, "", 1, "", parts, false, ""},
		{"4 workers", 4, "2KB", 0, "", parts, false, ""},
		{"4 workers, sampled evaluation", 4, "0.1", 3, "", bare, false, "sampled"},
	}
	if testneed.UnderRace() {
		cases = cases[:4] // the others run the same goroutines
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o.Workers, o.Cache, o.Prefetch, o.Topology, o.Cooperative, o.Eval = c.workers, c.cache, c.prefetch, c.topology, c.cooperative, c.eval
			got, want := train(c.ds, o), want
			if c.cooperative {
				want = together
			}
			if a, b := got.run.Result.Text["digest"], want.run.Result.Text["digest"]; a != b || a == "" {
				t.Errorf("the digest is %q, want %q", a, b)
			}
			if !bytes.Equal(got.weights, want.weights) {
				t.Error("the weights differ from those with files")
			}
			if !bytes.Equal(got.logits, want.logits) {
				t.Error("the outputs differ from those with files")
			}
		})
	}
}

// Sparse features of other workers' parts come as dense ones do: samples, weights and outputs have the bits of workers that
// read files, with values and without, with any cache and topology, and in cooperative batches.
func TestTrainSparseByExchange(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := *load(t, "planted?nodes=800&features=12&classes=4&seed=2")
	ds.Features, ds.SparseFeatures = nil, &dataset.Sparse{Rows: ds.Nodes(), Cols: 30, Indptr: []int64{0}, Values: []float32{}}
	x := ds.SparseFeatures
	for v := range ds.Nodes() {
		for c := v % 5; c < 30 && v%7 > 0; c += 2 + v%11 { // some rows are empty, and the others differ in length
			x.Indices, x.Values = append(x.Indices, int32(c)), append(x.Values, float32(1+(c+v)%5)/4)
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	ones := ds
	ones.SparseFeatures = &dataset.Sparse{Rows: x.Rows, Cols: x.Cols, Indptr: x.Indptr, Indices: x.Indices}
	for name, ds := range map[string]*gnb.Dataset{"values": &ds, "ones": &ones} {
		parts, bare := divideWell(t, ds, 4, divided.Options{}), divideWell(t, ds, 4, divided.Options{NoTopology: true})
		o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Workers: 2}}
		want := tradivideWell(t, parts, o)
		if want.run.Result.Rows != nil {
			t.Error("workers that read files get rows from each other")
		}
		o.Cooperative = true
		together := tradivideWell(t, parts, o)
		for _, c := range []struct {
			name    string
			workers int
			cache   string
			policy  string
			ds      *gnb.Dataset
			want    partsRun
			coop    bool
		}{
			{"window", 2, "", "", parts, want, false},
			{"cache", 2, "20%", "", bare, want, false},
			{"cache of Belady's", 4, "20%", "belady", parts, want, false},
			{"cooperative", 2, "20%", "", parts, together, true},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				if name == "ones" || c.workers > 2 {
					testneed.NotShort(t, "further runs")
				}
				o.Workers, o.Cache, o.CachePolicy, o.Prefetch, o.Cooperative = c.workers, c.cache, c.policy, 2, c.coop
				got := tradivideWell(t, c.ds, o)
				if a, b := got.run.Result.Text["digest"], c.want.run.Result.Text["digest"]; a != b || a == "" {
					t.Errorf("the digest is %q, want %q", a, b)
				}
				if !bytes.Equal(got.weights, c.want.weights) || !bytes.Equal(got.logits, c.want.logits) {
					t.Error("weights or outputs differ from those with files")
				}
				if r := got.run.Result.Rows; r == nil || r.Remote == 0 || r.Own == 0 {
					t.Errorf("the rows by source are %+v; some must come from other workers", r)
				} else if longest := map[string]int64{"values": 4 + 8*15, "ones": 4 + 4*15}[name]; c.cache == "" && (r.Bytes < 4*r.Remote || 2*r.Bytes > longest*r.Remote) {
					t.Errorf("%d rows took %d bytes on their way, and the longest one takes %d", r.Remote, r.Bytes, longest)
				}
			})
		}
	}
}

type loopsArgs struct{ Within bool }

// loops leaves its loops over batches early, at the same step on all ranks, and sums the features
// of their batches. Within evaluates by samples in each iteration too; the first time, before any step.
var loops = gnb.Program("test.plane.loops", func(w *gnb.Worker, a loopsArgs) error {
	net := w.Network("sage", gnb.ModelConfig{In: 12, Hidden: 8, Out: 4, Layers: 2})
	opt := w.Adam(net, 0.01)
	sum := []float64{0}
	var within []float64
	for epoch := range w.Epochs(4) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 64}) {
			for _, x := range b.Features() {
				sum[0] += float64(x)
			}
			if a.Within {
				m := w.Evaluate(net, gnb.Sampled([]int{3, 3}, 100, 1+b.Step%3), "val", "test")
				within = append(within, m.Of("val"), m.Of("test"))
			}
			w.Step(b.Loss(net.Forward(b)), opt)
			if b.EndsStep && b.Step%16 == 1+epoch {
				break
			}
		}
		w.Evaluate(net, gnb.Sampled([]int{3, 3}, 100, 2), "val")
		w.Evaluate(net, gnb.FullNeighbors, "val")
	}
	w.AllReduce(sum)
	w.Result("sum", sum[0])
	if a.Within {
		total := 0.0
		for i, x := range within {
			total += x * float64(1+i)
		}
		w.Result("first", within[0]+2*within[1])
		w.Result("within", total)
	}
	return nil
})

// A loop that all ranks leave early has no effect on the next loop, for any kind of sampling.
func TestLeaveLoopByExchange(t *testing.T) {
	testneed.Raced(t, "it trains several times")
	ds := load(t, "planted?nodes=1500&features=12&classes=4&seed=2")
	parts := divideWell(t, ds, 4, divided.Options{})
	launch := func(o gnb.LaunchOptions) (*runs.Run, error) {
		o.Data, o.Workers, o.Threads, o.Quiet, o.RunDir, o.Device = parts, 2, 1, true, t.TempDir(), "cpu"
		return gnb.Launch(t.Context(), loops, loopsArgs{}, o)
	}
	var want []byte
	sum := 0.0
	options := []gnb.LaunchOptions{{}, {PlaneOptions: gnb.PlaneOptions{Cache: "0.1"}}, {PlaneOptions: gnb.PlaneOptions{Prefetch: 9}}, {PlaneOptions: gnb.PlaneOptions{Prefetch: 3, Topology: "divided"}}, {PlaneOptions: gnb.PlaneOptions{Cache: "0.1", Topology: "divided"}}, {PlaneOptions: gnb.PlaneOptions{Cache: "0.1", CachePolicy: "belady"}}, {PlaneOptions: gnb.PlaneOptions{Cache: "0.1", CachePolicy: "belady", Prefetch: 2, Topology: "divided"}}}
	if testneed.UnderRace() {
		options = []gnb.LaunchOptions{options[0], options[2], options[6]} // in which each option runs at least once
	}
	for _, o := range options {
		run, err := launch(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		got := weights(t, run)
		if want == nil {
			want, sum = got, run.Value("sum")
		}
		if !bytes.Equal(got, want) || run.Value("sum") != sum || sum == 0 {
			t.Errorf("cache %q %s, prefetch %d, topology %q: the weights or features differ (sum %v, want %v)", o.Cache, o.CachePolicy, o.Prefetch, o.Topology, run.Value("sum"), sum)
		}
		if rows := run.Result.Rows; (o.Cache != "" || o.Prefetch > 0) != (rows != nil && rows.Remote > 0) {
			t.Errorf("%+v: the rows of features are %v", o, rows)
		}
	}
}

// A sampled evaluation within a loop over batches whose workers get rows or edges from each other has the metrics that it
// has where workers map all files, and those of the undivided dataset before the first step. It changes no batch of the loop.
func TestEvaluateWithinByExchange(t *testing.T) {
	ds := load(t, "planted?nodes=900&features=12&classes=4&seed=2")
	parts, bare := divideWell(t, ds, 4, divided.Options{}), divideWell(t, ds, 4, divided.Options{NoTopology: true})
	launch := func(data *gnb.Dataset, within bool, o gnb.LaunchOptions) (*runs.Run, []byte) {
		t.Helper()
		o.Data, o.Workers, o.Threads, o.Seed, o.Quiet, o.RunDir, o.Device = data, cmp.Or(o.Workers, 2), 1, 4, true, filepath.Join(t.TempDir(), "run"), "cpu"
		run, err := gnb.Launch(t.Context(), loops, loopsArgs{within}, o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		return run, weights(t, run)
	}
	whole, _ := launch(ds, true, gnb.LaunchOptions{})
	mapped, want := launch(parts, true, gnb.LaunchOptions{})
	if plain, without := launch(parts, false, gnb.LaunchOptions{}); !bytes.Equal(without, want) || plain.Value("sum") != mapped.Value("sum") {
		t.Error("an evaluation within a loop changes the loop")
	}
	type ways struct {
		ds *gnb.Dataset
		o  gnb.LaunchOptions
	}
	cases := []ways{
		{bare, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 3}}},
		{parts, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 3}, Workers: 4}},
		{parts, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "0.1"}, Workers: 1}},
		{parts, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}},
		{parts, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "0.1", Topology: "divided"}, Workers: 4}},
		{parts, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "0.1", CachePolicy: "belady"}}},
		{bare, gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "0.1", CachePolicy: "belady", Prefetch: 2}, Workers: 4}},
	}
	if testneed.UnderRace() {
		cases = []ways{cases[4], cases[6]} // in which each option runs once
	}
	for i, c := range cases {
		if i > 1 {
			testneed.Raced(t, "further options")
		}
		run, got := launch(c.ds, true, c.o)
		same := c.o.Workers == 2 || c.o.Workers == 0 // else shares of other parts, and other bits
		for _, value := range []string{"first", "within", "sum"} {
			if a, b := run.Value(value), mapped.Value(value); (same || value == "first") && a != b {
				t.Errorf("%+v: the evaluations' or features' sum %q is %v, want %v", c.o, value, a, b)
			}
		}
		if first := run.Value("first"); first != whole.Value("first") || first == 0 || same && !bytes.Equal(got, want) {
			t.Errorf("%+v: the first evaluation within the loop is %v, and %v of the undivided dataset; or the weights differ", c.o, first, whole.Value("first"))
		}
	}
}
