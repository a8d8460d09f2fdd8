package numbers_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

func ratings(t *testing.T, o datasets.RatingsOptions) *gnb.Dataset {
	t.Helper()
	ds, err := datasets.Ratings(o)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// roads is a random graph without types whose edges have a length as feature and a time to predict, length·(1 + slow(v)), where
// the feature of node v says how slow it is; one in ten times is unknown.
func roads(t *testing.T, nodes int) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(11, uint64(nodes)))
	const degree = 4
	var src, dst []int32
	for v := range int32(nodes) {
		for k := range int32(degree) {
			src, dst = append(src, (v+1+k*k)%int32(nodes)), append(dst, v)
		}
	}
	x, slow := &graphops.EdgeFeatures{Cols: 1, F32: make([]float32, len(src))}, make([]float32, nodes)
	for v := range slow {
		slow[v] = float32(r.IntN(2))
	}
	times := make([]float32, len(src))
	for i := range src {
		x.F32[i] = 1 + r.Float32()
		if times[i] = x.F32[i] * (1 + slow[dst[i]]); r.IntN(10) == 0 {
			times[i] = nan
		}
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Features: x}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: g, Features: &dataset.Matrix{Rows: nodes, Cols: 1, F32: slow}, Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "roads"}}
	at, err := ds.FindEdges(src, dst, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ds.SetEdgeTargets(at, &dataset.Matrix{Rows: len(at), Cols: 1, F32: times}, []string{"minutes"}); err != nil {
		t.Fatal(err)
	}
	if err := ds.SplitEdges(dataset.EdgeSplitOptions{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return ds
}

// Planted ratings are recovered nearly to their noise by a network that reads neighbours, and neither by one that reads the ends
// alone nor by the mean.
func TestPlantedRatings(t *testing.T) {
	ds := ratings(t, datasets.RatingsOptions{Users: 1000, Items: 320, Seed: 2})
	const noise = 0.25
	o := options(t)
	o.Batch, o.Epochs = 256, 15
	run := train(t, ds, o)
	if rmse, mean := run.Value("test_rmse"), run.Value("mean_rmse"); rmse > noise*1.25 || rmse < noise*0.85 || mean < 0.65 || mean > 0.85 {
		t.Errorf("the RMSE is %v with a noise of %v, and %v by the mean", rmse, noise, mean)
	}
	o = options(t)
	o.Batch, o.Epochs, o.Model = 256, 5, gnb.MLP
	if rmse := train(t, ds, o).Value("test_rmse"); rmse < noise*1.8 {
		t.Errorf("without messages the RMSE is %v", rmse)
	}
}

// The features of an edge count for its own number; EndsOnly leaves them out. Edges without a number are predicted, and pairs of
// nodes by a network without features of edges.
func TestEdgesWithFeatures(t *testing.T) {
	ds := roads(t, 400)
	o := options(t)
	o.Epochs = 25
	run := train(t, ds, o)
	if r2 := run.Value("test_r2"); r2 < 0.95 {
		t.Errorf("with the lengths R² is %v", r2)
	}
	p, err := numbers.PredictEdges(t.Context(), run, ds, nil, numbers.PredictOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	wrong, unknown := 0.0, 0
	for i, e := range p.At {
		if y := ds.EdgeAnswers.Targets.F32[i]; y != y {
			unknown++
			wrong += math.Abs(float64(p.Rows.Row(i)[0] - ds.Graph.EdgeFeatures.F32[e]*(1+ds.Features.F32[p.Pairs.Dst[i]])))
		}
	}
	if p.Rows.Rows != 1600 || p.InferResult.Edges != 1600 || p.Nodes != 0 || unknown < 100 || wrong/float64(unknown) > 0.15 {
		t.Errorf("%d rows; unknown times are wrong by %v on average of %d", p.Rows.Rows, wrong/float64(unknown), unknown)
	}
	if _, err := numbers.PredictEdges(t.Context(), run, ds, &numbers.Edges{Src: []int32{1}, Dst: []int32{5}}, numbers.PredictOptions{}); err == nil || !strings.Contains(err.Error(), "takes 1 features of an edge, which pairs of nodes do not have") {
		t.Errorf("a pair without a length: %v", err)
	}

	o = options(t)
	o.Epochs, o.EndsOnly, o.Loss, o.Quantiles, o.Bounded = 25, true, "quantile", []float64{0.1, 0.5, 0.9}, true
	run = train(t, ds, o)
	if r2, c := run.Value("test_r2"), run.Value("test_coverage"); r2 < 0.5 || r2 > 0.85 || c < 0.6 {
		t.Errorf("without the lengths R² is %v, coverage %v", r2, c)
	}
	// The edges of the dataset and the same as pairs have the same numbers, to the bit, for any number of workers.
	if p, err = numbers.Predict(t.Context(), run, ds, gnb.InferOptions{Quiet: true}); err != nil {
		t.Fatal(err)
	}
	as, err := numbers.PredictEdges(t.Context(), run, ds, p.Pairs, numbers.PredictOptions{InferOptions: gnb.InferOptions{Quiet: true, Workers: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range p.Rows.F32 {
		if math.Float32bits(x) != math.Float32bits(as.Rows.F32[i]) {
			t.Fatalf("element %d is %v for the edge and %v for the pair", i, x, as.Rows.F32[i])
		}
	}
	if got := strings.Join(p.Names, ","); got != "minutes_q0.1,minutes_q0.5,minutes_q0.9" {
		t.Errorf("the columns are %s", got)
	}
	file := filepath.Join(t.TempDir(), "p.csv")
	if _, err := numbers.Infer(t.Context(), run, ds, file, gnb.InferOptions{Quiet: true}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) != 1601 || strings.Join(lines[0], ",") != "source,target,minutes_q0.1,minutes_q0.5,minutes_q0.9" || lines[1][0] != fmt.Sprint(p.Pairs.Src[0]) || lines[1][1] != "0" {
		t.Errorf("%d lines, %v, %v, %v", len(lines), lines[0], lines[1], err)
	}
}

// An edge whose number stands in its own weight is not known to its prediction: with the default the weight says nothing, because
// the edge and its reverse are no messages, in training and in evaluation. With AllMessages it says everything.
func TestTheEdgeDoesNotLeak(t *testing.T) {
	// Each node has one in-edge, so its only message would be the edge that is predicted.
	const nodes = 1200
	r := rand.New(rand.NewPCG(5, 5))
	src, dst, x, y := make([]int32, nodes), make([]int32, nodes), make([]float32, nodes), make([]float32, nodes)
	for v := range int32(nodes) {
		src[v], dst[v], y[v] = (v+1)%nodes, v, float32(r.NormFloat64())
		x[v] = y[v]
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Features: &graphops.EdgeFeatures{Cols: 1, F32: x}}, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: g, Features: &dataset.Matrix{Rows: nodes, Cols: 1, F32: make([]float32, nodes)}, Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "ring", Undirected: true}}
	for v := range ds.Features.F32 {
		ds.Features.F32[v] = 1
	}
	at, err := ds.FindEdges(src, dst, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ds.SetEdgeTargets(at, &dataset.Matrix{Rows: nodes, Cols: 1, F32: y}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ds.SplitEdges(dataset.EdgeSplitOptions{Val: 0.2, Test: 0.2}); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Model, o.EndsOnly, o.Layers, o.Epochs = gnb.GINE, true, 1, 30
	if r2 := train(t, ds, o).Value("test_r2"); r2 > 0.1 {
		t.Errorf("R² is %v for noise that only the edge itself knows", r2)
	}
	o = options(t)
	o.Model, o.EndsOnly, o.Layers, o.Epochs, o.AllMessages = gnb.GINE, true, 1, 30, true
	if r2 := train(t, ds, o).Value("test_r2"); r2 < 0.3 {
		t.Errorf("R² is %v although all edges are messages; the test shows nothing then", r2)
	}
}

// Predictions with the messages of training are those that the run was measured by.
func TestPredictAsMeasured(t *testing.T) {
	ds := ratings(t, datasets.RatingsOptions{Users: 200, Items: 64, Degree: 4})
	o := options(t)
	o.Epochs = 2
	var said []string
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindPrint {
			said = append(said, e.Text)
		}
	}
	run := train(t, ds, o)
	if got := strings.Join(said, "\n"); !strings.Contains(got, "1280 of 1600 edges are messages in training: those of val and test are not, nor are their copies and reverses") || !strings.Contains(got, "for each edge of the split test") {
		t.Errorf("it said %q", got)
	}
	for training, same := range map[bool]bool{true: true, false: false} {
		p, err := numbers.PredictEdges(t.Context(), run, ds, nil, numbers.PredictOptions{InferOptions: gnb.InferOptions{Quiet: true}, Training: training})
		if err != nil {
			t.Fatal(err)
		}
		of, err := p.Answers(ds)
		if err != nil {
			t.Fatal(err)
		}
		off := 0.0
		for _, row := range of.Splits["test"] {
			off += math.Abs(float64(p.Rows.Row(int(row))[0]-of.Target(row)[0])) / float64(len(of.Splits["test"]))
		}
		if got := math.Abs(off-run.Value("test_mae")) < 1e-6; got != same {
			t.Errorf("Training %v: the MAE of the test is %v, and %v in the run", training, off, run.Value("test_mae"))
		}
	}
}

// Bad input for edges is one sentence that names what is wrong.
func TestBadEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	fill := func(ds *gnb.Dataset, split string, x float32) {
		for _, row := range ds.EdgeAnswers.Splits[split] {
			ds.EdgeAnswers.Targets.F32[row] = x
		}
	}
	for name, c := range map[string]struct {
		set  func(ds *gnb.Dataset, o *numbers.Options)
		want string
	}{
		"equal":    {func(ds *gnb.Dataset, _ *numbers.Options) { fill(ds, "train", 4) }, `target "rating" is 4 for all 160 training edges`},
		"unknown":  {func(ds *gnb.Dataset, _ *numbers.Options) { fill(ds, "train", nan) }, `target "rating" is unknown (NaN) for all 160 training edges`},
		"infinite": {func(ds *gnb.Dataset, _ *numbers.Options) { fill(ds, "val", inf) }, "is +Inf"},
		"no edge":  {func(ds *gnb.Dataset, _ *numbers.Options) { ds.EdgeRows[199] = 400 }, "the graph has the edges 0 to 399"},
		"both": {func(ds *gnb.Dataset, _ *numbers.Options) {
			ds.Targets = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1, F32: make([]float32, ds.Nodes())}
		}, `say which to predict (Of: "nodes" or "edges", --of)`},
		"of nodes":      {func(_ *gnb.Dataset, o *numbers.Options) { o.Of = "nodes" }, "the nodes and edges of ratings have no numbers to predict"},
		"of what":       {func(_ *gnb.Dataset, o *numbers.Options) { o.Of = "graphs" }, "it is nodes or edges"},
		"no targets":    {func(ds *gnb.Dataset, o *numbers.Options) { ds.EdgeRows, ds.EdgeAnswers, o.Of = nil, nil, "edges" }, "the edges of ratings have no numbers to predict"},
		"no splits":     {func(ds *gnb.Dataset, _ *numbers.Options) { ds.EdgeAnswers.Splits = nil }, "call Dataset.SplitEdges"},
		"relation":      {func(_ *gnb.Dataset, o *numbers.Options) { o.Relation = "buys" }, `no relation "buys"`},
		"another":       {func(_ *gnb.Dataset, o *numbers.Options) { o.Relation = "rev_rates" }, "is empty: there is nothing to train on"},
		"several":       {func(ds *gnb.Dataset, _ *numbers.Options) { ds.Graph.EdgeTypes[ds.EdgeRows[0]] = 1 }, "set Relation (--relation) to one of user:rates:item and item:rev_rates:user"},
		"divided":       {func(_ *gnb.Dataset, o *numbers.Options) { o.Topology = "divided" }, `Topology is "divided"`},
		"in parts":      {func(ds *gnb.Dataset, o *numbers.Options) { ds.Meta.Parts, o.Of = &dataset.Parts{Count: 2}, "edges" }, "divided into parts"},
		"a node's only": {func(_ *gnb.Dataset, o *numbers.Options) { o.Targets = []string{"stars"} }, `has "stars", and the targets of ratings are rating`},
	} {
		t.Run(name, func(t *testing.T) {
			ds, o := ratings(t, datasets.RatingsOptions{Users: 50, Items: 64, Degree: 4}), options(t)
			c.set(ds, &o)
			_, err := numbers.Train(t.Context(), ds, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want one line with %q", err, c.want)
			}
		})
	}
	o := options(t)
	o.Dim = 4
	if _, err := numbers.Train(t.Context(), planted(100, 0.1), o); err == nil || !strings.Contains(err.Error(), "are for numbers of edges") {
		t.Errorf("Dim for nodes: %v", err)
	}
	o = options(t)
	o.Epochs = 1
	ds := ratings(t, datasets.RatingsOptions{Users: 50, Items: 64, Degree: 4})
	run := train(t, ds, o)
	for name, c := range map[string]struct {
		ds   *gnb.Dataset
		e    *numbers.Edges
		o    numbers.PredictOptions
		want string
	}{
		"a pair of items": {ds, &numbers.Edges{Src: []int32{60}, Dst: []int32{61}}, numbers.PredictOptions{}, "leads from nodes 0 to 49 (user)"},
		"no pairs":        {ds, &numbers.Edges{}, numbers.PredictOptions{}, "there are no edges to predict"},
		"no types":        {planted(50, 0.1), nil, numbers.PredictOptions{}, "take the dataset of the run"},
		"another dataset": {ratings(t, datasets.RatingsOptions{Users: 60, Items: 64, Degree: 4}), nil, numbers.PredictOptions{Training: true}, "leave Training out"},
	} {
		if _, err := numbers.PredictEdges(t.Context(), run, c.ds, c.e, c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}
