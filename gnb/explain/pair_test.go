package explain_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/explain"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

func trainLinks(t *testing.T, ds *gnb.Dataset, change func(o *links.Options)) *runs.Run {
	t.Helper()
	o := links.Options{Model: gnb.SAGE}
	o.Workers, o.Threads, o.Hidden, o.Epochs, o.Batch, o.Quiet, o.RunDir = 1, 1, 16, 4, 256, true, t.TempDir()
	if change != nil {
		change(&o)
	}
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// The score of a pair that is explained is that of the predictor, scores of features add up to the difference that they make, columns
// have the values of both ends, and the neighbourhood is that of both.
func TestPairIsExplained(t *testing.T) {
	ds := load(t, "planted?nodes=300&classes=3&features=5&degree=4")
	for _, decoder := range []string{"dot", "mlp", "structural"} {
		p := open(t, trainLinks(t, ds, func(o *links.Options) { o.Decoder = decoder }), ds)
		for _, pair := range []predict.Pair{{Source: "7", Target: "19"}, {Source: "7", Target: number2(ds.Graph.InNeighbors(7)[0])}, {Source: "5", Target: "5"}} {
			e, err := explain.PairWith(t.Context(), p, pair, explain.Options{Steps: 200})
			if err != nil {
				t.Fatal(err)
			}
			score, err := p.Score(t.Context(), []predict.Pair{pair}, predict.Additions{})
			if err != nil || math.Abs(e.Value-float64(score[0])) > 1e-5 || e.Pair == nil || *e.Pair != pair || e.Output != "score" {
				t.Errorf("%s: %v is %s %v, and the score is %v (%v)", decoder, pair, e.Output, e.Value, score, err)
			}
			full, none := pairScores(t, p, pair)
			sum := 0.0
			for _, c := range e.Columns {
				sum += c.All
				s, d := number(t, pair.Source), number(t, pair.Target)
				at := number(t, c.Name)
				if want := float64(ds.Features.Row(int(s))[at]); c.Value != want {
					t.Errorf("%v: column %s of the source is %v, want %v", pair, c.Name, c.Value, want)
				}
				if want := float64(ds.Features.Row(int(d))[at]); s != d && c.TargetValue != want {
					t.Errorf("%v: column %s of the target is %v, want %v", pair, c.Name, c.TargetValue, want)
				}
			}
			if math.Abs(sum-(full-none)) > 0.02*math.Abs(full-none)+5e-3 {
				t.Errorf("%s: %v: the scores add up to %v, and the features make %v", decoder, pair, sum, full-none)
			}
			zero := 0
			for _, n := range e.Nodes {
				if n.Hop == 0 {
					zero++
				}
			}
			if want := map[bool]int{true: 1, false: 2}[pair.Source == pair.Target]; zero != want {
				t.Errorf("%v: %d nodes are ends", pair, zero)
			}
			text := e.String()
			a, b := number(t, pair.Source), number(t, pair.Target)
			joined := a != b && (slices.Contains(ds.Graph.InNeighbors(a), b) || slices.Contains(ds.Graph.InNeighbors(b), a))
			if strings.Contains(text, "has an edge between the two nodes") != joined || strings.Contains(text, "in common") != (decoder == "structural") {
				t.Errorf("%s: joined %v, and it says\n%s", decoder, joined, text)
			}
			if _, err := e.Figure().SVG(); err != nil {
				t.Error(err)
			}
		}
	}
}

func number2(v int32) string { return strconv.Itoa(int(v)) }

// pairScores are the scores with the features and with zeros.
func pairScores(t *testing.T, p *predict.Predictor, pair predict.Pair) (full, none float64) {
	t.Helper()
	err := p.PairNeighbourhood(t.Context(), pair, func(n *predict.Neighbourhood) error {
		for i, x := range [][]float32{n.X, make([]float32, len(n.X))} {
			f := nn.NewFwd(nn.Config{Threads: 1})
			y, err := n.Forward(f, f.Input(len(n.Nodes), n.Cols, x, n.Space))
			if err != nil {
				return err
			}
			*[]*float64{&full, &none}[i] = float64(y.Data()[0])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return full, none
}

// A pair of two types has the columns of both; what cannot be explained is said in a sentence.
func TestPairOfTypesAndWhatHasNone(t *testing.T) {
	src, dst := []int32{}, []int32{}
	types := []uint16{}
	for u := range int32(30) {
		for k := range int32(3) {
			src, dst = append(src, u, 30+(u*3+k*k)%20), append(dst, 30+(u*3+k*k)%20, u)
			types = append(types, 0, 1)
		}
	}
	s := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: 30}, {Name: "item", Count: 20}},
		Relations: []graphops.Relation{{Src: "user", Name: "buys", Dst: "item"}, {Src: "item", Name: "rev_buys", Dst: "user"}},
	}
	g, err := graphops.FromEdgesWith(50, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{Graph: g, NodeFeatures: []dataset.NodeFeatures{{Dense: wave(30, 3)}, {Dense: wave(20, 2)}}, Meta: dataset.Metadata{Name: "shop"}}
	ds.Meta.NodeTypes = []dataset.NodeType{{Name: "user", FeatureNames: []string{"age", "spent", "visits"}}, {Name: "item", FeatureNames: []string{"price", "weight"}}}
	ds.Describe()
	run := trainLinks(t, ds, func(o *links.Options) { o.Model, o.Relation = gnb.RGCN, "buys" })
	p := open(t, run, ds)
	e, err := explain.PairWith(t.Context(), p, predict.Pair{Source: "4", Target: "6"}, explain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range e.Columns {
		seen[c.Type+":"+c.Name] = true
		if user := c.Type == "user"; user && c.TargetValue != 0 || !user && c.Value != 0 {
			t.Errorf("%s of a %s: %v and %v", c.Name, c.Type, c.Value, c.TargetValue)
		}
	}
	if !seen["user:age"] || !seen["item:price"] || len(seen) != 5 {
		t.Errorf("the columns are %v", seen)
	}
	relations := map[string]bool{}
	for _, x := range e.Edges {
		relations[x.Relation] = true
	}
	if !relations["buys"] || !relations["rev_buys"] || !strings.Contains(e.String(), "user:4 → item") && !strings.Contains(e.String(), "→ user:4") {
		t.Errorf("the relations are %v:\n%s", relations, e)
	}
	nodes := open(t, train(t, load(t, "karate"), gnb.SAGE, options()), load(t, "karate"))
	for _, c := range []struct {
		err  error
		kind error
		want string
	}{
		{second(explain.PairWith(t.Context(), nodes, predict.Pair{Source: "1", Target: "2"}, explain.Options{})), predict.ErrRequest, "does not predict links"},
		{second(explain.PairWith(t.Context(), p, predict.Pair{Source: "4", Target: "99"}, explain.Options{})), predict.ErrUnknownNode, "the target of the pair"},
		{second(explain.PairWith(t.Context(), p, predict.Pair{Source: "34", Target: "1"}, explain.Options{})), predict.ErrUnknownNode, "the source of the pair"},
		{second(explain.With(t.Context(), p, "1", explain.Options{})), predict.ErrRequest, "explain.Pair, --pair"},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// wave is a matrix without a pattern.
func wave(rows, cols int) *dataset.Matrix {
	m := &dataset.Matrix{Rows: rows, Cols: cols}
	for i := range rows * cols {
		m.F32 = append(m.F32, float32(math.Sin(float64(3*i+1))))
	}
	return m
}
