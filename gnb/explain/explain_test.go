package explain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/datasets"
)

func load(t *testing.T, name string) *gnb.Dataset {
	t.Helper()
	ds, err := datasets.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// options train for a moment in this process.
func options() (o gnb.TrainOptions) {
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Seed, o.Quiet = 1, 1, 16, 2, 40, 3, true
	return o
}

func train(t *testing.T, ds *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions) *runs.Run {
	t.Helper()
	o.RunDir = filepath.Join(t.TempDir(), "run")
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func open(t *testing.T, run *runs.Run, ds *gnb.Dataset) *predict.Predictor {
	t.Helper()
	p, err := predict.Open(t.Context(), run, ds, predict.Options{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func node(t *testing.T, p *predict.Predictor, id string, o explain.Options) *explain.Explanation {
	t.Helper()
	e, err := explain.With(context.Background(), p, id, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Scores of integrated gradients add up to the difference that the features make: of all features to the logit less that of features
// that are all 0. Those of a linear network are those of the gradient times the input. Explanations have equal bits on any number of threads.
func TestScoresAddUp(t *testing.T) {
	ds := load(t, "planted?nodes=400&classes=3&features=6&degree=5")
	for name, model := range map[string]gnb.AnyModel{"sage": gnb.SAGE, "gcn": gnb.GCN, "gat": gnb.GAT, "gin": gnb.GIN} {
		p := open(t, train(t, ds, model, options()), ds)
		e := node(t, p, "7", explain.Options{Steps: 200})
		columns, nodes := 0.0, 0.0
		for _, c := range e.Columns {
			columns += c.All
		}
		for _, n := range e.Nodes {
			nodes += n.Score
		}
		if len(e.Columns) != 6 || math.Abs(columns-nodes) > 1e-9*math.Abs(columns)+1e-9 {
			t.Errorf("%s: the scores of columns add up to %v and those of nodes to %v", name, columns, nodes)
		}
		var full, none float64
		err := p.Neighbourhood(t.Context(), "7", func(n *predict.Neighbourhood) error {
			full = logit(t, n, n.X, e.Output)
			none = logit(t, n, make([]float32, len(n.X)), e.Output)
			return nil
		})
		if err != nil || math.Abs(columns-(full-none)) > 0.02*math.Abs(full-none)+5e-3 {
			t.Errorf("%s: the scores add up to %v, and the features change the logit by %v (%v)", name, columns, full-none, err)
		}
		again, err := explain.Node(t.Context(), runOf(t, p), ds, "7", explain.Options{Steps: 200})
		if err == nil && fmt.Sprint(again) != fmt.Sprint(e) {
			t.Errorf("%s: explained again, it is\n%v\nand was\n%v", name, again, e)
		}
	}
}

func runOf(t *testing.T, p *predict.Predictor) *runs.Run {
	t.Helper()
	run, err := runs.Open(filepath.Dir(p.Weights()))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// logit computes an output of the network for features x of the neighbourhood.
func logit(t *testing.T, n *predict.Neighbourhood, x []float32, output string) float64 {
	t.Helper()
	y, err := forward(n, x)
	if err != nil {
		t.Fatal(err)
	}
	return float64(y[slices.Index(n.Columns, output)])
}

// On BA-Shapes the edges of its house tell the class of a node. Masks give them higher scores than other edges, the scores of other
// methods are larger for them, and the fidelity says that the explanation is better than a random one.
func TestHousesAreFound(t *testing.T) {
	const base = 300
	ds := load(t, "houses?seed=1")
	o := options()
	o.Layers, o.Hidden, o.Epochs, o.LR, o.Fanouts, o.Batch, o.WeightDecay = 3, 20, 2000, 0.01, []int{-1, -1, -1}, 560, 0.0005
	run := train(t, ds, gnb.GCN, o)
	if run.TestAccuracy() < 0.9 {
		t.Fatalf("the network classifies %v", run.TestAccuracy())
	}
	p := open(t, run, ds)
	for method, least := range map[explain.Method]float64{explain.Mask: 0.9, explain.Gradients: 0.93, explain.LeaveOut: 0.8} {
		var scores []float64
		var truth []bool
		says := 0
		for v := 400; v < ds.Nodes(); v += 15 { // the first nodes of houses, as others compare methods on
			e := node(t, p, fmt.Sprint(v), explain.Options{Method: method, Epochs: 300, Seed: 2})
			for _, x := range e.Edges {
				scores, truth = append(scores, math.Abs(x.Score)), append(truth, datasets.InHouse(number(t, x.Src), number(t, x.Dst), base))
			}
			if e.Fidelity.Says() {
				says++
			}
		}
		if a := auc(scores, truth); a < least || says < 15 {
			t.Errorf("%s: AUC of edges %.3f, want %v; %d of 20 explanations are better than random ones", method, a, least, says)
		}
	}
}

func number(t *testing.T, id string) int32 {
	t.Helper()
	var v int32
	if _, err := fmt.Sscan(id, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// auc is the area under the ROC curve, from ranks.
func auc(scores []float64, truth []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if scores[a] < scores[b] {
			return -1
		}
		return 1
	})
	sum, yes := 0.0, 0.0
	for lo := 0; lo < len(order); {
		hi := lo
		for hi < len(order) && scores[order[hi]] == scores[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			if truth[i] {
				sum += float64(lo+hi+1) / 2
				yes++
			}
		}
		lo = hi
	}
	return (sum - yes*(yes+1)/2) / (yes * (float64(len(truth)) - yes))
}

// What cannot be explained is said in a sentence, of a kind that a program can ask for.
func TestWhatCannotBeExplained(t *testing.T) {
	ds := load(t, "karate")
	run := train(t, ds, gnb.SAGE, options())
	p := open(t, run, ds)
	for _, c := range []struct {
		id   string
		o    explain.Options
		kind error
		want string
	}{
		{"99", explain.Options{}, predict.ErrUnknownNode, "99"},
		{"1", explain.Options{Output: "blue"}, predict.ErrRequest, `Options.Output is "blue", and the outputs are`},
		{"1", explain.Options{Method: "magic"}, nil, "there is no method"},
		{"1", explain.Options{Steps: 1000}, nil, "Options.Steps is 1000"},
		{"1", explain.Options{LR: math.NaN()}, nil, "Options.LR is NaN"},
	} {
		_, err := explain.With(t.Context(), p, c.id, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("node %s, %+v: %v, want %q", c.id, c.o, err, c.want)
		}
	}
	hidden, err := predict.Open(t.Context(), run, ds, predict.Options{Layer: 1, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := explain.With(t.Context(), hidden, "1", explain.Options{}); !errors.Is(err, predict.ErrRequest) {
		t.Errorf("an embedding is explained: %v", err)
	}
	small, err := predict.Open(t.Context(), run, ds, predict.Options{MaxEdges: 3, Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	var limit *predict.LimitError
	if _, err := explain.With(t.Context(), small, "33", explain.Options{}); !errors.As(err, &limit) {
		t.Errorf("a neighbourhood above the limit is explained: %v", err)
	}
}

// An explanation prints its tables, draws a picture and has a JSON form.
func TestExplanationIsShown(t *testing.T) {
	ds := load(t, "karate")
	p := open(t, train(t, ds, gnb.SAGE, options()), ds)
	e := node(t, p, "33", explain.Options{Output: "0"})
	for _, want := range []string{"node 33 of karate", "column", "hops away", "edge", "with them alone"} {
		if text := e.String(); !strings.Contains(text, want) {
			t.Errorf("it prints\n%s\nwithout %q", text, want)
		}
	}
	if _, err := e.Figure().PNG(); err != nil {
		t.Error(err)
	}
	var back map[string]any
	encoded, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(encoded, &back)
	}
	if err != nil || back["node"] != "33" || len(back["edges"].([]any)) != len(e.Edges) {
		t.Errorf("the JSON form is %s: %v", encoded, err)
	}
}

// The explained network is the one that answers: also with rows of sparse features that it scales, and in a graph with types, whose
// columns belong to the types of their nodes.
func TestTheAnswerIsExplained(t *testing.T) {
	ds := load(t, "planted?nodes=200&classes=3&features=6")
	sparse := *ds
	m := &graphops.Sparse{Rows: 200, Cols: 6, Indptr: make([]int64, 1, 201)}
	for v := range 200 {
		for c, x := range ds.Features.Row(v) {
			if x > 0.2 {
				m.Indices, m.Values = append(m.Indices, int32(c)), append(m.Values, 5*x)
			}
		}
		m.Indptr = append(m.Indptr, int64(len(m.Indices)))
	}
	sparse.Features, sparse.SparseFeatures = nil, m
	o := options()
	o.ScaleInput = true
	p := open(t, train(t, &sparse, gnb.GCN, o), &sparse)
	for _, id := range []string{"0", "9", "77"} {
		a, err := p.Nodes(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e := node(t, p, id, explain.Options{Method: explain.GradientInput})
		if class, probability := a.Class(0); e.Output != class || math.Abs(e.Value-probability) > 1e-4 {
			t.Errorf("node %s: %s %v is explained, and the answer is %s %v", id, e.Output, e.Value, class, probability)
		}
	}
}
