package kg_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Networks before the decoder learn the rings, with the same bits for any division of eight virtual ranks.
func TestEncoderSameBits(t *testing.T) {
	testneed.Raced(t, "it trains six times")
	ds := rings(t, 40)
	for _, c := range []struct {
		encoder, decoder, loss string
		least                  float64
	}{{"rgcn", "complex", "softmax", 0.2}, {"compgcn", "complex", "1vsall", 0.3}} {
		var bits []byte
		var mrr float64
		for _, workers := range []int{1, 2, 4} {
			o := options(t, kg.Options{
				OptimizerOptions:  gnb.OptimizerOptions{Epochs: 40, Batch: 32, LR: 0.02},
				EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 20},
				LaunchOptions:     gnb.LaunchOptions{Workers: workers, VirtualRanks: 8 / workers},
				Decoder:           c.decoder,
				Loss:              c.loss,
				Encoder:           kg.EncoderOptions{Name: c.encoder},
			})
			run, err := kg.Train(t.Context(), ds, o)
			if err != nil {
				t.Fatal(err)
			}
			if bits == nil {
				bits, mrr = weights(t, run), run.Value("test_mrr")
			}
			if !bytes.Equal(bits, weights(t, run)) || run.Value("test_mrr") != mrr {
				t.Errorf("%s: %d workers have other weights or another MRR, %v and not %v", c.encoder, workers, run.Value("test_mrr"), mrr)
			}
		}
		if !(mrr > c.least) { // chance is about 0.1
			t.Errorf("%+v: the MRR is %v", c, mrr)
		}
		t.Logf("%+v: MRR %.3f", c, mrr)
	}
}

// Networks of few columns need hundreds of epochs, and no dropout, to learn the rings: the rings' entities have no
// features, and neighbours differ only by the entities' random rows. After 40 epochs both cases are near chance.
func TestEncoderLearns(t *testing.T) {
	testneed.NotShort(t, "it trains twice, for hundreds of epochs")
	ds := rings(t, 40)
	for _, c := range []struct {
		encoder, decoder, loss string
		epochs                 int
		least                  float64
	}{{"rgcn", "distmult", "bce", 400, 0.3}, {"compgcn", "complex", "kvsall", 150, 0.8}} { // .41 and 1.0
		run, err := kg.Train(t.Context(), ds, options(t, kg.Options{
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: c.epochs, Batch: 32, LR: 0.02},
			EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 20},
			LaunchOptions:     gnb.LaunchOptions{Workers: 1},
			Decoder:           c.decoder,
			Loss:              c.loss,
			Encoder:           kg.EncoderOptions{Name: c.encoder},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if mrr := run.Value("test_mrr"); !(mrr > c.least) { // chance is about 0.1
			t.Errorf("%+v: the MRR is %v", c, mrr)
		} else {
			t.Logf("%+v: MRR %.3f", c, mrr)
		}
	}
}

// An interrupted run with an encoder ends with the bits of one that was not interrupted, and its model scores.
func TestEncoderResume(t *testing.T) {
	testneed.Raced(t, "it trains three times")
	ds := rings(t, 40)
	o := func() kg.Options {
		return options(t, kg.Options{
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: 30, Batch: 16, LR: 0.02},
			EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 5},
			LaunchOptions:     gnb.LaunchOptions{Workers: 2},
			Decoder:           "distmult",
			Loss:              "bce",
			Encoder:           kg.EncoderOptions{Name: "rgcn", Layers: 1, Blocks: 2},
		})
	}
	want, err := kg.Train(t.Context(), ds, o())
	if err != nil {
		t.Fatal(err)
	}
	dir := interrupted(t, ds, o(), 8)
	old, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := kg.OptionsOf(old)
	if err != nil {
		t.Fatal(err)
	}
	again.Quiet, again.Threads, again.Resume = true, 1, dir
	again.Workers, again.VirtualRanks = 1, 2
	run, err := kg.Train(t.Context(), ds, again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, want)) || run.Value("test_mrr") != want.Value("test_mrr") {
		t.Error("the resumed run has other weights or metrics")
	}
	data, err := kg.Triples(ds)
	if err != nil {
		t.Fatal(err)
	}
	// The test triples have the ranks of the run's evaluation.
	q := kge.Reciprocal(data.Test, data.Relations)
	var ranks []float64
	for i := range q.Len() {
		one := kge.Triples{Head: []int32{q.Head[i]}, Rel: []int32{q.Rel[i]}, Tail: []int32{kg.Unknown}}
		if int(q.Rel[i]) >= data.Relations {
			one = kge.Triples{Head: []int32{kg.Unknown}, Rel: []int32{q.Rel[i] - int32(data.Relations)}, Tail: []int32{q.Head[i]}}
		}
		rows, err := kg.Complete(t.Context(), run, ds, one, 40, kg.InferOptions{Known: true})
		if err != nil {
			t.Fatal(err)
		}
		scores := make([]float32, 40)
		for _, c := range rows[0] {
			scores[c.Entity] = c.Score
		}
		ranks = append(ranks, kge.Rank(scores, q.Tail[i], nil)) // a query of the rings has one answer
	}
	if got, want := kge.Measure(ranks).MRR, run.Value("test_mrr"); got < want-1e-6 || got > want+1e-6 {
		t.Errorf("the MRR of completions is %v, and the run's %v", got, want)
	}
}

// All encoders and decoders that fit train, and others are refused.
func TestEncoders(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := rings(t, 20)
	for _, c := range []struct{ decoder, composition string }{{"conve", "mult"}, {"transe", "sub"}, {"distmult", "corr"}} {
		o := options(t, kg.Options{
			OptimizerOptions: gnb.OptimizerOptions{Epochs: 1, Batch: 16},
			LaunchOptions:    gnb.LaunchOptions{Workers: 2},
			Decoder:          c.decoder,
			Encoder:          kg.EncoderOptions{Name: "compgcn", Layers: 2, Composition: c.composition},
		})
		o.Of.Channels = 2
		if run, err := kg.Train(t.Context(), ds, o); err != nil || !(run.Value("test_mrr") > 0) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for want, o := range map[string]kg.Options{
		`the encoder is "gat"`:        {Encoder: kg.EncoderOptions{Name: "gat"}},
		`the encoder is ""`:           {Encoder: kg.EncoderOptions{Layers: 2}},
		`Composition is "add"`:        {Encoder: kg.EncoderOptions{Name: "compgcn", Composition: "add"}},
		"which rotate does not take":  {Decoder: "rotate", Encoder: kg.EncoderOptions{Name: "rgcn"}},
		"the encoder's Dropout is 1":  {Encoder: kg.EncoderOptions{Name: "rgcn", Dropout: 1}},
		"the encoder's Messages is 2": {Encoder: kg.EncoderOptions{Name: "rgcn", Messages: 2}},
		"rgcn has 3 blocks and 0":     {Decoder: "distmult", Encoder: kg.EncoderOptions{Name: "rgcn", Blocks: 3}},
		"rgcn has 2 blocks and 2":     {Decoder: "distmult", Encoder: kg.EncoderOptions{Name: "rgcn", Blocks: 2, Bases: 2}},
		"compgcn has 2 blocks":        {Decoder: "distmult", Encoder: kg.EncoderOptions{Name: "compgcn", Blocks: 2}},
		"an encoder of -1 layers":     {Encoder: kg.EncoderOptions{Name: "rgcn", Layers: -1}},
	} {
		if _, err := kg.Train(t.Context(), ds, options(t, o)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
