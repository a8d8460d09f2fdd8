package links_test

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Train learns, in mini-batches and on the whole graph, on any number of workers with the same bits.
func TestTrain(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	for _, full := range []bool{false, true} {
		var bits []byte
		var auc float64
		for _, workers := range []int{1, 2} {
			run, err := links.Train(t.Context(), ds, links.Options{
				OptimizerOptions:  gnb.OptimizerOptions{Epochs: 8, Batch: 256},
				EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 4},
				LaunchOptions: gnb.LaunchOptions{
					Workers:      workers,
					VirtualRanks: 2 / workers,
					Threads:      1,
					Quiet:        true,
					RunDir:       t.TempDir(),
				},
				ModelOptions:  gnb.ModelOptions{Hidden: 16},
				Model:         gnb.GCN,
				FullGraph:     full,
				EvalNegatives: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			if workers == 1 {
				bits, auc = weights(t, run), run.Value("test_auc")
			}
			if !bytes.Equal(bits, weights(t, run)) || auc != run.Value("test_auc") {
				t.Errorf("full graph %v: two workers have other weights or metrics than one with two virtual ranks", full)
			}
			for _, name := range []string{"val_auc", "test_auc", "test_ap", "test_mrr", "adamic_adar_auc", "best_epoch"} {
				if math.IsNaN(run.Value(name)) {
					t.Errorf("full graph %v: the run has no %s", full, name)
				}
			}
			if !(auc > 0.6) {
				t.Errorf("full graph %v: the AUC is %v, and 0.5 is chance", full, auc)
			}
		}
	}
}

// Training on links follows a schedule, whose times are epochs; two batches that one step adds up are two virtual ranks
// with a batch twice as large; and the options of the run make the same run.
func TestTrainOptimizing(t *testing.T) {
	ds := load(t, planted)
	o := links.Options{
		OptimizerOptions:  gnb.OptimizerOptions{Epochs: 4, Batch: 128, Accumulate: 2, LR: 0.02, Schedule: optim.Cosine(0).After(1), Optimizer: "adamw", WeightDecay: 0.01},
		LaunchOptions:     gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true},
		ModelOptions:      gnb.ModelOptions{Hidden: 8},
		EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 4},
		Model:             gnb.GCN,
	}
	run := func(o links.Options) *runs.Run {
		o.RunDir, o.Threads, o.Quiet, o.CheckpointEvery = t.TempDir(), 1, true, -1
		r, err := links.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	small := run(o)
	steps, err := small.Steps()
	if err != nil || len(steps) == 0 || len(steps)%4 != 0 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	in := o.Schedule.Steps(float64(len(steps) / 4))
	for i, s := range steps {
		if want := in.Rate(0.02, int64(i), int64(len(steps))); math.Abs(s.LR-want) > 1e-12 {
			t.Errorf("step %d has the rate %v, want %v", i, s.LR, want)
		}
	}
	had, err := links.OptionsOf(small)
	if err != nil || had.Accumulate != 2 || had.VirtualRanks != 1 || had.Schedule != o.Schedule || had.Optimizer != "adamw" {
		t.Errorf("OptionsOf has %+v, %v", had, err)
	}
	if again := run(had); string(again.Config.Args) != string(small.Config.Args) || !bytes.Equal(weights(t, again), weights(t, small)) {
		t.Errorf("the options of a run make another run: %s and %s", again.Config.Args, small.Config.Args)
	}
	o.Batch, o.Accumulate, o.VirtualRanks = 256, 0, 2
	if !bytes.Equal(weights(t, run(o)), weights(t, small)) {
		t.Error("two batches that one step adds up train other weights than two virtual ranks with the whole batch")
	}
	o.Schedule, o.Optimizer = optim.Schedule{}, ""
	if bytes.Equal(weights(t, run(o)), weights(t, small)) {
		t.Error("Schedule and Optimizer change no weight")
	}
}

// A weight of edges and smoothed labels change what is learned; a loss of one's own with the same weight learns the same
// bits, on one worker and on two; and the options of the run make the same run.
func TestTrainLoss(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	run := func(o links.Options) *runs.Run {
		o.RunDir, o.Threads, o.Quiet, o.CheckpointEvery, o.Epochs, o.Batch, o.Hidden, o.Eval, o.Model = t.TempDir(), 1, true, -1, 1, 256, 8, "none", gnb.GCN
		o.VirtualRanks = 2 / max(1, o.Workers)
		r, err := links.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	seen := map[string]string{}
	for name, o := range map[string]links.Options{
		"bce": {}, "weighted": {PosWeight: 2}, "smoothed": {LabelSmoothing: 0.2}, "both": {PosWeight: 2, LabelSmoothing: 0.2}, "softmax": {Loss: "softmax", Negatives: 2}, "smoothed softmax": {Loss: "softmax", Negatives: 2, LabelSmoothing: 0.2},
	} {
		r := run(o)
		bits := string(weights(t, r))
		if other := seen[bits]; other != "" {
			t.Errorf("%s learns what %s does", name, other)
		}
		seen[bits] = name
		had, err := links.OptionsOf(r)
		if err != nil || had.PosWeight != o.PosWeight || had.LabelSmoothing != o.LabelSmoothing {
			t.Errorf("%s: OptionsOf has PosWeight %v and LabelSmoothing %v, %v", name, had.PosWeight, had.LabelSmoothing, err)
		}
	}
	if seen[string(weights(t, run(links.Options{PosWeight: 1})))] != "bce" {
		t.Error("a weight of 1 is not the default")
	}
	for _, workers := range []int{1, 2} {
		own := run(links.Options{OwnLoss: halfLoss, LaunchOptions: gnb.LaunchOptions{Workers: workers}})
		if seen[string(weights(t, own))] != "weighted" {
			t.Errorf("%d workers with a loss of one's own, which is that of PosWeight 2, learn something else", workers)
		}
		if had, err := links.OptionsOf(own); err != nil || had.OwnLoss != halfLoss {
			t.Errorf("OptionsOf has the loss %q, %v", had.OwnLoss, err)
		}
	}
}

func TestTrainErrors(t *testing.T) {
	ds := load(t, planted)
	for want, o := range map[string]links.Options{
		"gnb: Layers is -3":                                                     {ModelOptions: gnb.ModelOptions{Layers: -3}},
		"this task measures with all neighbours":                                {EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}},
		"is longer than":                                                        {OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Schedule: optim.Cosine(0).After(3)}},
		"links: Accumulate divides batches of edges":                            {OptimizerOptions: gnb.OptimizerOptions{Accumulate: 2}, FullGraph: true},
		"links: LabelSmoothing is for the losses bce and softmax":               {LabelSmoothing: 0.1, Loss: "max-margin"},
		"links: PosWeight is for the loss bce, and Loss is softmax":             {PosWeight: 2, Loss: "softmax"},
		"links: PosWeight, LabelSmoothing: pairs: the weight of edges is -1":    {PosWeight: -1},
		"links: PosWeight, LabelSmoothing: pairs: the smoothing of labels is 1": {LabelSmoothing: 1},
		`links: OwnLoss is "none", which is not declared`:                       {OwnLoss: "none"},
		"links: Loss, PosWeight and LabelSmoothing are of the library's":        {OwnLoss: halfLoss, PosWeight: 2},
		"links: Dim, Negatives and EvalNegatives cannot be negative":            {Negatives: -1},
		`links: Loss is "l2"; it is bce, softmax or max-margin`:                 {Loss: "l2"},
		"links: Margin is NaN":                                                  {Margin: math.NaN()},
		`links: there is no metric "f1"; choose auc, ap, mrr, hits_K, `:         {EvaluationOptions: gnb.EvaluationOptions{Metric: "f1"}},
		"links: the metric recall_0 has no number above 0 after the _":          {EvaluationOptions: gnb.EvaluationOptions{Metric: "recall_0"}},
		"links: Metric is ndcg_400, but planted has only 399 nodes":             {EvaluationOptions: gnb.EvaluationOptions{Metric: "ndcg_400"}},
		`links: SplitBy is "year"; it is random, time or given`:                 {SplitBy: "year"},
		"links: SplitBy is random, but ValEdges or TestEdges":                   {SplitBy: "random", ValEdges: "x"},
		"links: SplitBy is given, but there are Times":                          {ValEdges: "x", Times: []int64{1, 2}},
		"links: a split by given edges needs the files":                         {SplitBy: "given"},
		"links: Times has 1 numbers":                                            {Times: []int64{1}},
		"pairs: the edges of the graph have no times":                           {SplitBy: "time"},
		"no such file or directory":                                             {ValEdges: "none.csv"},
		`pairs: there are no negatives "hard"`:                                  {NegativesFrom: "hard"},
		`links: there is no decoder "cosine"`:                                   {Decoder: "cosine"},
		"pairs: Val is 0.5 and Test 0.5 of the edges, which leaves none":        {Val: 0.5, Test: 0.5},
	} {
		o.Quiet, o.RunDir = true, t.TempDir()
		if _, err := links.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := links.Train(t.Context(), nil, links.Options{}); err == nil {
		t.Error("training on no dataset is no error")
	}
}

// The graph auto-encoder (T. N. Kipf, M. Welling, 2016, arXiv:1611.07308) on Cora: PyG's example
// reports a mean AUC of 91.0 and AP of 92.0. Without GNB_SOAK it trains with two seeds instead of ten.
func TestCora(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	file := testneed.RealData(t, "planetoid/ind.cora.graph")
	dir := t.TempDir()
	if _, err := convert.Convert(t.Context(), filepath.Dir(file), dir+"/cora", convert.Options{Name: "cora"}); err != nil {
		t.Fatal(err)
	}
	ds := load(t, dir+"/cora")
	seeds := uint64(2)
	if envknob.Soak.On() {
		seeds = 10
	}
	auc, ap, neighbours := 0.0, 0.0, 0.0
	for seed := range seeds {
		run, err := links.Train(t.Context(), ds, links.Options{
			ModelOptions:      gnb.ModelOptions{Hidden: 32, Dropout: 0.5},
			LaunchOptions:     gnb.LaunchOptions{Seed: seed, Quiet: true, RunDir: t.TempDir(), Resume: gnb.Never},
			EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 10},
			Dim:               16,
			Model:             gnb.GCN,
			FullGraph:         true,
		})
		if err != nil {
			t.Fatal(err)
		}
		n := float64(seeds)
		auc, ap, neighbours = auc+run.Value("test_auc")/n, ap+run.Value("test_ap")/n, neighbours+run.Value("adamic_adar_auc")/n
	}
	t.Logf("mean of %d seeds: AUC %.4f, AP %.4f; Adamic–Adar AUC %.4f", seeds, auc, ap, neighbours)
	if auc < 0.905 {
		t.Errorf("the mean AUC of %d seeds is %.4f, below 0.905", seeds, auc)
	}
}

// Hits@K among fewer than K negatives is in no result and chooses no epoch; MRR and Hits@K are computed among 100
// negatives if nothing else is asked for.
func TestHitsAmongFew(t *testing.T) {
	ds := load(t, planted)
	for name, c := range map[string]struct {
		metric  string
		eval    int
		refused bool
		has     []string
		lacks   []string
		used    int
	}{
		"default":     {"", 0, false, []string{"test_auc"}, []string{"test_mrr", "test_hits_10"}, 1},
		"five":        {"auc", 5, false, []string{"test_mrr"}, []string{"test_hits_10"}, 5},
		"ten":         {"hits_10", 10, false, []string{"test_mrr", "test_hits_10", "val_hits_10"}, nil, 10},
		"nine":        {"hits_10", 9, true, nil, nil, 0},
		"one":         {"hits_2", 1, true, nil, nil, 0},
		"hits of 20":  {"hits_20", 0, false, []string{"test_hits_20", "test_hits_10"}, nil, 100},
		"hits of 120": {"hits_120", 0, false, []string{"test_hits_120"}, nil, 120},
		"mrr":         {"mrr", 0, false, []string{"test_mrr", "val_mrr", "test_hits_10"}, nil, 100},
		"mrr of few":  {"mrr", 3, false, []string{"test_mrr"}, []string{"test_hits_10"}, 3},
		"all nodes":   {"recall_399", 0, true, nil, nil, 0},
	} {
		o := quick(t)
		o.Epochs, o.Metric, o.EvalNegatives = 1, c.metric, c.eval
		run, err := links.Train(t.Context(), ds, o)
		few := (*links.FewNegatives)(nil)
		if c.refused {
			if err == nil || strings.HasPrefix(c.metric, "hits") && !errors.As(err, &few) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, metric := range c.has {
			if x := run.Value(metric); !(x >= 0 && x <= 1) {
				t.Errorf("%s: %s is %v", name, metric, x)
			}
		}
		for _, metric := range c.lacks {
			if x := run.Value(metric); !math.IsNaN(x) {
				t.Errorf("%s: %s is %v, which says nothing", name, metric, x)
			}
		}
		if had, err := links.OptionsOf(run); err != nil || had.EvalNegatives != c.used {
			t.Errorf("%s: %d negatives, %v", name, had.EvalNegatives, err)
		}
	}
	m := links.Metrics{Pos: []float32{1, 2}, Neg: []float32{0, 3}, Ranks: []float64{1, 2}}
	if x := m.Hits(2); !math.IsNaN(x) || m.Hits(1) != 0.5 {
		t.Errorf("Hits@2 among one negative is %v, and Hits@1 %v", x, m.Hits(1))
	}
	if strings.Contains(m.String(), "MRR") {
		t.Errorf("among one negative the text is %v", m)
	}
}

// printed trains, and returns the run and what it printed.
func printed(t *testing.T, ds *gnb.Dataset, o links.Options) (*runs.Run, string) {
	t.Helper()
	var said []string
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindPrint {
			said = append(said, e.Text)
		}
	}
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return run, strings.Join(said, "\n")
}

// Large features lower the learning rate that nobody chose, so that the first step does not make all scores constant; and
// constant scores are named.
func TestLargeFeatures(t *testing.T) {
	ds := load(t, planted)
	scaled := func(by float32) *gnb.Dataset {
		c, x := *ds, *ds.Features
		x.F32 = slices.Clone(x.F32)
		for i := range x.F32 {
			x.F32[i] *= by
		}
		c.Features = &x
		return &c
	}
	for name, c := range map[string]struct {
		by, lr, want float64
		says         string
	}{
		"as they are":      {1, 0, 0.01, ""},
		"large":            {30, 0, 0.001, "the features of a node add up to"},
		"large, with rate": {30, 0.02, 0.02, ""},
		"nothing":          {0, 0, 0.01, "the network gives all pairs the same score"},
	} {
		o := quick(t)
		o.Epochs, o.LR, o.CheckpointEvery = 2, c.lr, 0
		run, said := printed(t, scaled(float32(c.by)), o)
		had, err := links.OptionsOf(run)
		if err != nil || had.LR != c.want {
			t.Errorf("%s: the rate is %v, %v; want %v", name, had.LR, err, c.want)
		}
		had.Resume, had.Quiet = run.Dir, true
		if _, err := links.Train(t.Context(), scaled(float32(c.by)), had); err != nil {
			t.Errorf("%s: with the run's own options it does not resume: %v", name, err)
		}
		for _, text := range []string{"the features of a node add up to", "the network gives all pairs the same score"} {
			if n := strings.Count(said, text); (n > 0) != (text == c.says) || n > 2 { // twice: of validation and test
				t.Errorf("%s: the run says %q", name, said)
			}
		}
	}
}
