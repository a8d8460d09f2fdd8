package links_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// nearness is a decoder of a program's own, with a parameter.
type nearness struct {
	Scale *nn.Param `nn:"scale"`
}

func (d *nearness) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	x := f.MatMul(h, f.Param(d.Scale))
	return f.RowDot(f.Gather(x, src), f.Gather(x, dst))
}

// Reset initialises the parameter.
func (d *nearness) Reset(init func(p *nn.Param, bound float64)) { init(d.Scale, 0.5) }

var near = links.DeclareDecoder("near", func(dim int) links.Decoder { return &nearness{nn.NewParam(dim, dim)} })

// trained is a run of a few epochs.
func trained(t *testing.T, ds *gnb.Dataset, change func(o *links.Options)) *links.Options {
	t.Helper()
	o := quick(t)
	o.Epochs = 3
	if change != nil {
		change(&o)
	}
	return &o
}

func infer(workers int) links.InferOptions {
	return links.InferOptions{InferOptions: gnb.InferOptions{Workers: workers, Threads: 1, Quiet: true}}
}

// Scores are those of the embeddings that Infer writes, and recommendations are the best of all scores,
// for any number of workers, for each decoder and one of the program's own.
func TestScoreAndRecommend(t *testing.T) {
	ds := load(t, planted)
	n := int32(ds.Nodes())
	var all links.Edges
	for u := range int32(6) {
		for v := range n {
			all = all.Append(u*60, v)
		}
	}
	for _, decoder := range []string{"dot", "bilinear", "mlp", "hadamard", "structural", near} {
		if decoder != near {
			testneed.NotShort(t, "it trains for each decoder")
		}
		o := trained(t, ds, func(o *links.Options) { o.Decoder = decoder })
		run, err := links.Train(t.Context(), ds, *o)
		if err != nil {
			t.Fatal(err)
		}
		one, err := links.Score(t.Context(), run, ds, all, infer(1))
		if err != nil {
			t.Fatal(err)
		}
		two, err := links.Score(t.Context(), run, ds, all, infer(2))
		if err != nil || !slices.Equal(one.Values, two.Values) {
			t.Errorf("%s: two workers have other scores than one (%v)", decoder, err)
		}
		if decoder == "dot" {
			out := filepath.Join(t.TempDir(), "h.npy")
			r, err := links.Infer(t.Context(), run, ds, out, infer(2))
			if err != nil || r.Nodes != int(n) {
				t.Fatal(r, err)
			}
			h, err := dataset.ReadNPY(out)
			if err != nil {
				t.Fatal(err)
			}
			for i := range all.Src {
				sum := float32(0)
				for c := range h.Cols {
					sum += h.F32[int(all.Src[i])*h.Cols+c] * h.F32[int(all.Dst[i])*h.Cols+c]
				}
				if math.Abs(float64(sum-one.Values[i])) > 1e-4*(1+math.Abs(float64(sum))) {
					t.Fatalf("the score of %d → %d is %v, by its embeddings %v", all.Src[i], all.Dst[i], one.Values[i], sum)
				}
			}
		}
		for _, exclude := range []bool{false, true} {
			var nodes []int32
			for u := range int32(6) {
				nodes = append(nodes, u*60)
			}
			ro := links.RecommendOptions{InferOptions: infer(1), ExcludeKnown: exclude}
			rec, err := links.Recommend(t.Context(), run, ds, nodes, 7, ro)
			if err != nil {
				t.Fatal(err)
			}
			ro.Workers = 2
			if again, err := links.Recommend(t.Context(), run, ds, nodes, 7, ro); err != nil || !slices.Equal(again.IDs, rec.IDs) || !slices.Equal(again.Scores, rec.Scores) {
				t.Errorf("%s: two workers recommend others than one (%v)", decoder, err)
			}
			for i, u := range nodes {
				ids, scores := rec.Of(i)
				row := one.Values[i*int(n) : (i+1)*int(n)]
				if len(ids) != 7 {
					t.Fatalf("%s: %d nodes are recommended to node %d", decoder, len(ids), u)
				}
				for j, v := range ids {
					if v == u || exclude && slices.Contains(ds.Graph.InNeighbors(v), u) {
						t.Errorf("%s: %d is recommended to %d", decoder, v, u)
					}
					if math.Abs(float64(scores[j]-row[v])) > 1e-4*(1+math.Abs(float64(row[v]))) {
						t.Errorf("%s: %d → %d has the score %v among recommendations, %v alone", decoder, u, v, scores[j], row[v])
					}
				}
				for v := range n { // none that is left out is better by more than rounding
					if v != u && !slices.Contains(ids, v) && !(exclude && slices.Contains(ds.Graph.InNeighbors(v), u)) && row[v] > scores[6]+1e-4*(1+float32(math.Abs(float64(scores[6])))) {
						t.Errorf("%s: %d is not recommended to %d, with a score of %v above %v", decoder, v, u, row[v], scores[6])
					}
				}
			}
		}
	}
}

// On the training edges alone, scores are those of the run's evaluation.
func TestScoreOnTrainingEdges(t *testing.T) {
	ds := load(t, planted)
	o := trained(t, ds, func(o *links.Options) { o.Metric, o.Seed = "recall_10", 5 })
	run, err := links.Train(t.Context(), ds, *o)
	if err != nil {
		t.Fatal(err)
	}
	split, err := links.RandomSplit(ds, links.SplitOptions{Seed: 5, Val: 0.05, Test: 0.1, Negatives: 1})
	if err != nil {
		t.Fatal(err)
	}
	io := infer(2)
	io.Training = true
	pos, err := links.Score(t.Context(), run, ds, split.Test.Edges, io)
	if err != nil {
		t.Fatal(err)
	}
	neg, err := links.Score(t.Context(), run, ds, split.Test.Neg, io)
	if err != nil {
		t.Fatal(err)
	}
	if auc := auc(pos.Values, neg.Values); math.Abs(auc-run.Value("test_auc")) > 1e-12 {
		t.Errorf("the AUC of the scores is %v, and the run's %v", auc, run.Value("test_auc"))
	}
	rec, err := links.Recommend(t.Context(), run, ds, nil, 10, links.RecommendOptions{InferOptions: io, ExcludeKnown: true})
	if err != nil {
		t.Fatal(err)
	}
	recall, users := 0., 0.
	for u := range int32(ds.Nodes()) {
		relevant := map[int32]bool{}
		for i, src := range split.Test.Src {
			if dst := split.Test.Dst[i]; src == u {
				relevant[dst] = true
			} else if dst == u {
				relevant[src] = true
			}
		}
		if len(relevant) == 0 {
			continue
		}
		hits := 0.
		ids, _ := rec.Of(int(u))
		for _, v := range ids {
			if relevant[v] {
				hits++
			}
		}
		recall, users = recall+hits/float64(len(relevant)), users+1
	}
	if math.Abs(recall/users-run.Value("test_recall_10")) > 1e-12 {
		t.Errorf("the recall of the recommendations is %v, and the run's %v", recall/users, run.Value("test_recall_10"))
	}
}

// auc counts pairs of an edge and a negative.
func auc(pos, neg []float32) float64 {
	sum := 0.
	for _, p := range pos {
		for _, n := range neg {
			if p > n {
				sum++
			} else if p == n {
				sum += 0.5
			}
		}
	}
	return sum / float64(len(pos)) / float64(len(neg))
}

// Candidates that are known are left out, and a row that has too few is shorter.
func TestRecommendCandidates(t *testing.T) {
	testneed.NotShort(t, "it trains")
	ds := load(t, "karate")
	o := trained(t, ds, func(o *links.Options) { o.Epochs = 1 })
	run, err := links.Train(t.Context(), ds, *o)
	if err != nil {
		t.Fatal(err)
	}
	ro := links.RecommendOptions{InferOptions: infer(2), ExcludeKnown: true, Candidates: []int32{0, 2, 3, 9, 33}}
	rec, err := links.Recommend(t.Context(), run, ds, []int32{0, 1, 33}, 4, ro)
	if err != nil {
		t.Fatal(err)
	}
	// Node 0 knows 2 and 3, node 1 knows 0, 2 and 3, and node 33 knows 9.
	for i, want := range [][]int32{{9, 33}, {9, 33}, {0, 2, 3}} {
		ids, _ := rec.Of(i)
		if got := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) {
			t.Errorf("node %d is recommended %v, want %v", rec.Nodes[i], got, want)
		}
	}
}

func TestInferErrors(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds, karate := load(t, planted), load(t, "karate")
	run, err := links.Train(t.Context(), ds, *trained(t, ds, nil))
	if err != nil {
		t.Fatal(err)
	}
	learned, err := links.Train(t.Context(), karate, *trained(t, karate, func(o *links.Options) { o.Embedding = 4 }))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	one := links.Edges{Src: []int32{0}, Dst: []int32{1}}
	other := load(t, "planted?nodes=300&features=16&classes=4&seed=5")
	for want, f := range map[string]func() error{
		"pair 1 is 3 → 400, but planted has the nodes 0 to 399": func() error {
			_, err := links.Score(t.Context(), run, ds, links.Edges{Src: []int32{0, 3}, Dst: []int32{1, 400}}, infer(1))
			return err
		},
		"1 sources and 2 destinations": func() error {
			_, err := links.Score(t.Context(), run, ds, links.Edges{Src: []int32{0}, Dst: []int32{1, 2}}, infer(1))
			return err
		},
		"K is 400; choose 1 to 399, the number of candidates": func() error {
			_, err := links.Recommend(t.Context(), run, ds, nil, 400, links.RecommendOptions{InferOptions: infer(1)})
			return err
		},
		"node 0 of the list is -1": func() error {
			_, err := links.Recommend(t.Context(), run, ds, []int32{-1}, 4, links.RecommendOptions{InferOptions: infer(1)})
			return err
		},
		"karate has 34 features a node, and the network of run": func() error {
			_, err := links.Score(t.Context(), run, karate, one, infer(1))
			return err
		},
		"has learned a row for each of the 34 nodes of karate, and planted has 400 nodes": func() error {
			_, err := links.Score(t.Context(), learned, ds, one, infer(1))
			return err
		},
		"Training asks for the split of run": func() error {
			o := infer(1)
			o.Training = true
			_, err := links.Score(t.Context(), run, other, one, o)
			return err
		},
		"which does not predict links": func() error {
			_, err := links.Score(t.Context(), nodes, ds, one, infer(1))
			return err
		},
		"predicts links; take links.Infer": func() error {
			_, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "x.npy"), gnb.InferOptions{Quiet: true})
			return err
		},
		`there is no decoder "cosine"`: func() error {
			o := infer(1)
			o.Decoder = "cosine"
			_, err := links.Score(t.Context(), run, ds, one, o)
			return err
		},
		"needs the name of a .npy file": func() error {
			_, err := links.Infer(t.Context(), run, ds, "", infer(1))
			return err
		},
		"links: Score needs a run": func() error {
			_, err := links.Score(t.Context(), nil, ds, one, infer(1))
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if s, err := links.Score(t.Context(), run, ds, links.Edges{}, infer(1)); err != nil || len(s.Values) != 0 {
		t.Errorf("no pairs give %v, %v", s, err)
	}
	if s, err := links.Score(t.Context(), learned, karate, one, infer(2)); err != nil || len(s.Values) != 1 || s.Values[0] != s.Values[0] {
		t.Errorf("learned rows give %v, %v", s, err)
	}
	// An untouched network computes on another graph with the same features.
	if s, err := links.Score(t.Context(), run, other, one, infer(1)); err != nil || len(s.Values) != 1 {
		t.Errorf("another graph gives %v, %v", s, err)
	}
	if _, err := os.Stat("best.safetensors"); err == nil {
		t.Error("weights were written to the working directory")
	}
}
