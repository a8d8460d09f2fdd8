package kg_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// steps are the relations of a ring: an entity and the one that many places behind it. The first and the
// last are the same, so a triple of one tells that of the other.
var steps = []int{1, 3, 1}

// rings is a knowledge graph that can be learned: entities on a ring of n, with relations to those behind
// them, each triple in a part by chance.
func rings(t *testing.T, n int) *dataset.Dataset {
	t.Helper()
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "entity", Count: n}}, Relations: []graphops.Relation{
		{Src: "entity", Name: "next", Dst: "entity"}, {Src: "entity", Name: "third", Dst: "entity"}, {Src: "entity", Name: "precedes", Dst: "entity"},
	}}
	var src, dst []int32
	var types []uint16
	for v := range n {
		for r, step := range steps {
			src, dst, types = append(src, int32(v)), append(dst, int32((v+step)%n)), append(types, uint16(r))
		}
	}
	g, err := graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(schema, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	draw, splits := rand.New(rand.NewPCG(1, 0)), map[string][]int64{}
	for e := range g.NumEdges() {
		part := "train"
		switch draw.IntN(10) {
		case 0:
			part = "val"
		case 1:
			part = "test"
		}
		splits[part] = append(splits[part], e)
	}
	return &dataset.Dataset{Graph: g, EdgeSplits: splits, Meta: dataset.Metadata{Name: "rings"}}
}

func options(t *testing.T, o kg.Options) kg.Options {
	o.Quiet, o.Threads, o.RunDir, o.Dim = true, 1, t.TempDir()+"/run", 8
	if o.Loss == "" || o.Loss == "kvsall" {
		o.Smoothing = max(o.Smoothing, 0.1)
	}
	return o
}

func weights(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(run.Weights())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

func TestTriples(t *testing.T) {
	ds := rings(t, 20)
	d, err := kg.Triples(ds)
	if err != nil {
		t.Fatal(err)
	}
	if d.Entities != 20 || d.Relations != 3 || d.Train.Len()+d.Val.Len()+d.Test.Len() != 60 || strings.Join(d.RelationNames, " ") != "next third precedes" {
		t.Errorf("the data are %+v", d)
	}
	for _, part := range []kge.Triples{d.Train, d.Val, d.Test} {
		for i, h := range part.Head {
			if want := (h + int32(steps[part.Rel[i]])) % 20; part.Tail[i] != want {
				t.Errorf("the triple (%d, %d, %d) is none of the graph's", h, part.Rel[i], part.Tail[i])
			}
		}
	}
	bare := rings(t, 20)
	bare.EdgeSplits = nil
	for want, ds := range map[string]*dataset.Dataset{"no dataset": nil, "has no relations": dataset.Karate(), "not divided into train": bare} {
		if _, err := kg.Triples(ds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Each decoder and loss trains; the run has the metrics and those of the relations.
func TestTrain(t *testing.T) {
	testneed.Raced(t, "it trains several times")
	ds := rings(t, 40)
	for _, c := range []struct{ decoder, loss string }{
		{"complex", "kvsall"}, {"complex", "1vsall"}, {"distmult", "softmax"}, {"transe", ""}, {"rotate", ""}, {"conve", ""},
	} {
		o := options(t, kg.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Batch: 16}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 1}, LaunchOptions: gnb.LaunchOptions{Workers: 2}, Decoder: c.decoder, Loss: c.loss})
		if c.decoder == "conve" {
			o.Of.Channels = 2
		}
		run, err := kg.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatalf("%s %s: %v", c.decoder, c.loss, err)
		}
		for _, name := range []string{"val_mrr", "test_mrr", "test_hits_1", "test_hits_3", "test_hits_10", "test_mean_rank", "best_epoch"} {
			if v := run.Value(name); v != v {
				t.Errorf("%s: the run has no %s", c.decoder, name)
			}
		}
		rows, err := kg.Relations(run)
		if err != nil || len(rows) != 3 || rows[0].Name != "next" || rows[1].Both.N == 0 {
			t.Errorf("%s: metrics of relations %+v, %v", c.decoder, rows, err)
		}
	}
}

// The rings are learned far above chance, and one worker with eight virtual ranks, two with four and four
// with two have the same weights and metrics to the bit.
func TestSameBits(t *testing.T) {
	testneed.Raced(t, "it trains nine times")
	ds := rings(t, 40)
	for _, loss := range []string{"kvsall", "1vsall", "bce"} {
		n3 := map[string]float64{"1vsall": 0.001}[loss]
		var bits []byte
		var mrr float64
		for _, workers := range []int{1, 2, 4} {
			run, err := kg.Train(t.Context(), ds, options(t, kg.Options{
				OptimizerOptions:  gnb.OptimizerOptions{Epochs: 100, Batch: 16, LR: 0.05},
				EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 20},
				LaunchOptions:     gnb.LaunchOptions{Workers: workers, VirtualRanks: 8 / workers},
				Decoder:           "complex",
				Loss:              loss,
				N3:                n3,
			}))
			if err != nil {
				t.Fatal(err)
			}
			if bits == nil {
				bits, mrr = weights(t, run), run.Value("test_mrr")
			}
			if !bytes.Equal(bits, weights(t, run)) || run.Value("test_mrr") != mrr {
				t.Errorf("%s: %d workers have other weights or another MRR, %v and not %v", loss, workers, run.Value("test_mrr"), mrr)
			}
		}
		if !(mrr > 0.3) { // chance is about 0.1
			t.Errorf("%s: the MRR is %v", loss, mrr)
		}
		t.Logf("%s: MRR %.3f", loss, mrr)
	}
}

// interrupted trains, interrupts the run after an epoch, and returns its directory.
func interrupted(t *testing.T, ds *dataset.Dataset, o kg.Options, epoch int) (dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Resume = gnb.Never
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch && e.Epoch >= epoch {
			cancel()
		}
	}
	if _, err := kg.Train(ctx, ds, o); !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	return o.RunDir
}

// An interrupted run ends with the bits of a run that was not interrupted.
func TestResume(t *testing.T) {
	testneed.Raced(t, "it trains three times")
	ds := rings(t, 40)
	o := func() kg.Options {
		return options(t, kg.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 40, Batch: 4, Accumulate: 2, LR: 0.02, Schedule: optim.Plateau(0, 0.5, 0).After(2), Optimizer: "adamw", WeightDecay: 0.01}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 5}, LaunchOptions: gnb.LaunchOptions{Workers: 2}})
	}
	want, err := kg.Train(t.Context(), ds, o())
	if err != nil {
		t.Fatal(err)
	}
	rates := map[float64]bool{}
	if steps, err := want.Steps(); err == nil {
		for _, s := range steps {
			rates[s.LR] = true
		}
	}
	if len(rates) < 4 {
		t.Errorf("a plateau after a warm-up has the rates %v", rates)
	}
	dir := interrupted(t, ds, o(), 11)
	again := o()
	again.RunDir, again.Resume = "", dir
	again.Workers, again.VirtualRanks = 1, 2 // each of two batches
	run, err := kg.Train(t.Context(), ds, again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, want)) || run.Value("test_mrr") != want.Value("test_mrr") {
		t.Error("the resumed run has other weights or metrics")
	}
}

// ownLoss is the binary cross-entropy with triples of three times the weight of a negative.
var ownLoss = kg.DeclareLoss("test.own", func(scores *nn.Tensor, perTriple int) *nn.Loss {
	return pairs.LossOptions{PosWeight: 3}.BCE(scores, perTriple)
})

// A weight of triples, smoothed labels and a loss of one's own train the same bits on one and two workers, each another
// model than without, and an interrupted run ends with the bits of a run that was not interrupted.
func TestTrainLoss(t *testing.T) {
	testneed.Raced(t, "it trains many times")
	ds := rings(t, 40)
	seen := map[string]string{}
	draw := rand.New(rand.NewPCG(5, 0))
	for name, o := range map[string]kg.Options{
		"1vsall": {Loss: "1vsall"}, "1vsall, smoothed": {Loss: "1vsall", LabelSmoothing: 0.1},
		"bce": {Loss: "bce"}, "bce, weighted": {Loss: "bce", PosWeight: 3}, "bce, smoothed": {Loss: "bce", PosWeight: 3, LabelSmoothing: 0.1},
		"softmax": {Loss: "softmax"}, "softmax, smoothed": {Loss: "softmax", LabelSmoothing: 0.1},
		"own": {OwnLoss: ownLoss},
	} {
		o.Epochs, o.Eval, o.Batch, o.Workers, o.Decoder = 20, "none", 16, 2, "distmult"
		run, err := kg.Train(t.Context(), ds, options(t, o))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		bits := string(weights(t, run))
		if had, err := kg.OptionsOf(run); err != nil || had.PosWeight != o.PosWeight || had.LabelSmoothing != o.LabelSmoothing || had.OwnLoss != o.OwnLoss {
			t.Errorf("%s: OptionsOf has %v, %v, %q, %v", name, had.PosWeight, had.LabelSmoothing, had.OwnLoss, err)
		}
		if other := seen[bits]; other != "" && name+other != "ownbce, weighted" && other+name != "ownbce, weighted" {
			t.Errorf("%s learns what %s does", name, other)
		}
		seen[bits] = name
		again := options(t, o)
		again.Resume, again.RunDir, again.Workers, again.VirtualRanks = interrupted(t, ds, options(t, o), 2+draw.IntN(8)), "", 1, 2
		if run, err = kg.Train(t.Context(), ds, again); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if string(weights(t, run)) != bits {
			t.Errorf("%s: the run that was interrupted and resumed on one worker has other weights", name)
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d different models, want 7: a loss of one's own with the weight 3 is PosWeight 3", len(seen))
	}
}

// A trained run completes rings with the right entities, and scores triples as it ranks them.
func TestComplete(t *testing.T) {
	testneed.Raced(t, "it trains")
	ds := rings(t, 40)
	run, err := kg.Train(t.Context(), ds, options(t, kg.Options{
		OptimizerOptions:  gnb.OptimizerOptions{Epochs: 60, Batch: 16, LR: 0.05},
		EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 20},
		LaunchOptions:     gnb.LaunchOptions{Workers: 2},
		Decoder:           "complex",
		Loss:              "1vsall",
	}))
	if err != nil {
		t.Fatal(err)
	}
	q := kge.Triples{Head: []int32{5, kg.Unknown, 39}, Rel: []int32{1, 1, 0}, Tail: []int32{kg.Unknown, 8, kg.Unknown}}
	want := []int32{8, 5, 0}
	for _, threads := range []int{1, 2} {
		rows, err := kg.Complete(t.Context(), run, ds, q, 2, kg.InferOptions{Known: true, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if len(row) != 2 || row[0].Entity != want[i] || row[0].Score < row[1].Score {
				t.Errorf("triple %d is completed by %+v, want %d first", i, row, want[i])
			}
		}
		scores, err := kg.Score(t.Context(), run, ds, kge.Triples{Head: []int32{5, 39}, Rel: []int32{1, 0}, Tail: []int32{8, 0}}, kg.InferOptions{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range []int{0, 2} {
			if d := scores[i] - rows[at][0].Score; len(scores) != 2 || d > 1e-4 || d < -1e-4 {
				t.Errorf("the score of triple %d is %v, and its completion has %v", i, scores, rows[at][0].Score)
			}
		}
	}
	rows, err := kg.Complete(t.Context(), run, ds, q, 40, kg.InferOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows { // each query has one answer, which is known
		if len(row) != 39 || slices.ContainsFunc(row, func(c kg.Completion) bool { return c.Entity == want[i] }) {
			t.Errorf("triple %d has %d completions that are not known, want 39 without %d", i, len(row), want[i])
		}
	}
	for wanted, c := range map[string]struct {
		t kge.Triples
		k int
	}{
		"exactly one of its head and tail": {kge.Triples{Head: []int32{1}, Rel: []int32{0}, Tail: []int32{2}}, 1},
		"entity 40":                        {kge.Triples{Head: []int32{40}, Rel: []int32{0}, Tail: []int32{kg.Unknown}}, 1},
		"relation 3":                       {kge.Triples{Head: []int32{kg.Unknown}, Rel: []int32{3}, Tail: []int32{0}}, 1},
		"at least 1":                       {q, 0},
		"are no triples":                   {kge.Triples{Head: []int32{1}, Rel: []int32{0}}, 1},
	} {
		if _, err := kg.Complete(t.Context(), run, ds, c.t, c.k, kg.InferOptions{}); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("got %v, want %q", err, wanted)
		}
	}
	if _, err := kg.Score(t.Context(), run, rings(t, 20), kge.Triples{}, kg.InferOptions{}); err == nil || !strings.Contains(err.Error(), "take the dataset of the run") {
		t.Errorf("another dataset gives %v", err)
	}
	had, err := kg.OptionsOf(run)
	if err != nil {
		t.Fatal(err)
	}
	had.RunDir, had.Quiet, had.Threads, had.CheckpointEvery = t.TempDir()+"/again", true, 1, -1
	again, err := kg.Train(t.Context(), ds, had)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, again)) || string(run.Config.Args) != string(again.Config.Args) {
		t.Errorf("a run with the options of a run differs from it: %s, and %s", run.Config.Args, again.Config.Args)
	}
}

func TestHostileOptions(t *testing.T) {
	ds := rings(t, 20)
	for want, o := range map[string]kg.Options{
		`Optimizer is "sgd"`:                       {OptimizerOptions: gnb.OptimizerOptions{Optimizer: "sgd"}},
		"Accumulate is -1":                         {OptimizerOptions: gnb.OptimizerOptions{Accumulate: -1}},
		"kvsall has Smoothing":                     {LabelSmoothing: 0.1},
		"max-margin has no probabilities":          {LabelSmoothing: 0.1, Loss: "max-margin"},
		"the smoothing of labels is -1":            {LabelSmoothing: -1, Loss: "1vsall"},
		"PosWeight is for the loss bce":            {PosWeight: 2},
		"the weight of edges is -2":                {PosWeight: -2, Loss: "bce"},
		`OwnLoss is "none", which is not declared`: {OwnLoss: "none"},
		"are of the library's losses":              {OwnLoss: ownLoss, Loss: "bce"},
		"Train computes on the CPU":                {LaunchOptions: gnb.LaunchOptions{Device: "cuda"}},
		`Eval is "sampled"`:                        {EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}},
		`there is no decoder "cosine"`:             {Decoder: "cosine"},
		`Loss is "l2"`:                             {Loss: "l2"},
		`there is no metric "auc"`:                 {EvaluationOptions: gnb.EvaluationOptions{Metric: "auc"}},
		"Smoothing is 1":                           {Smoothing: 1},
		"N3 is -1":                                 {N3: -1, Loss: "1vsall"},
		"N3 is for the loss 1vsall":                {N3: 0.1},
		"Dim and Negatives":                        {Negatives: -1},
		"take the loss kvsall or 1vsall":           {Decoder: "conve", Loss: "bce"},
	} {
		o := options(t, o)
		if strings.HasPrefix(want, "take the loss") {
			o.Of.Channels = 2
		}
		if _, err := kg.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	run, err := kg.Train(t.Context(), ds, options(t, kg.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kg.Relations(run); err == nil || !strings.Contains(err.Error(), "no metrics of relations") {
		t.Errorf("relations of a run without evaluation: %v", err)
	}
}

// converted is the dataset of a knowledge graph of the real data.
func converted(t *testing.T, name string) *dataset.Dataset {
	t.Helper()
	file := testneed.RealData(t, "kg/"+name+"/train.txt")
	dir := t.TempDir() + "/" + name
	if _, err := convert.Convert(t.Context(), filepath.Dir(file), dir, convert.Options{Readers: convert.TypedReaders()}); err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ds.Close() })
	return ds
}

// UMLS (C. Kemp et al., "Learning systems of concepts with an infinite relational model", AAAI 2006): T.
// Dettmers et al. report an MRR of 0.94 for ConvE after a longer training.
func TestUMLS(t *testing.T) {
	testneed.NotShort(t, "it trains on UMLS")
	ds := converted(t, "umls")
	if names, err := kg.Names(ds); err != nil || len(names) != 135 || names[0] != "acquired_abnormality" {
		t.Errorf("the names are %q, %v", names, err)
	}
	o := options(t, kg.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 40, LR: 0.01}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 20}, LaunchOptions: gnb.LaunchOptions{Workers: 2}})
	o.Dim = 64
	run, err := kg.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if mrr := run.Value("test_mrr"); !(mrr > 0.8) {
		t.Errorf("the MRR is %v", mrr)
	} else {
		t.Logf("MRR %.3f, Hits@10 %.3f", mrr, run.Value("test_hits_10"))
	}
}

// Hits@K where most queries have fewer than K wrong answers chooses no epoch and is in no result.
func TestHitsAmongFew(t *testing.T) {
	ds := rings(t, 8)
	o := options(t, kg.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1, Batch: 16}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 1, Metric: "hits_10"}, LaunchOptions: gnb.LaunchOptions{Workers: 1}})
	few := (*kg.FewEntities)(nil)
	if _, err := kg.Train(t.Context(), ds, o); !errors.As(err, &few) {
		t.Errorf("hits_10 of 8 entities gives %v", err)
	}
	o.Metric = "hits_3"
	run, err := kg.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if x, y := run.Value("test_hits_10"), run.Value("test_hits_3"); x == x || !(y >= 0) {
		t.Errorf("test_hits_10 is %v, and test_hits_3 %v", x, y)
	}
}
