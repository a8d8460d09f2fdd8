package links_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/parts"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
)

var predictLinks = gnb.Program("example.links", func(w *gnb.Worker, epochs int) error {
	split, err := links.RandomSplit(w.Dataset(), links.SplitOptions{Seed: w.Seed()})
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{})
	net := links.New(w, gnb.SAGE, "dot", gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 32, Out: 16, Layers: 2})
	opt := w.Adam(net, 0.01)
	for range w.Epochs(epochs) {
		for b := range loader.Batches() {
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
		}
		loader.Log(loader.Evaluate(net, "val"))
	}
	w.Result("test_auc", loader.Evaluate(net, "test").AUC)
	return nil
})

// A training loop of one's own that predicts links.
func Example() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=1000&features=16&classes=4&homophily=0.9&noise=0.5"))
	run := gnb.Must(gnb.Launch(ctx, predictLinks, 5, gnb.LaunchOptions{Data: ds, Quiet: true}))
	fmt.Println("better than chance:", run.Value("test_auc") > 0.6)
	// Output: better than chance: true
}

// Train decides everything: split, negatives, evaluation, the best epoch, baselines.
func ExampleTrain() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=1000&features=16&classes=4&homophily=0.9&noise=0.5"))
	run := gnb.Must(links.Train(ctx, ds, links.Options{Model: gnb.GCN, FullGraph: true, OptimizerOptions: gnb.OptimizerOptions{Epochs: 20}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 10}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	fmt.Println("better than chance:", run.Value("test_auc") > 0.6)
	// Output: better than chance: true
}

// steep is a loss of one's own: the binary cross-entropy of scores that are twice as far apart.
var steep = links.DeclareLoss("example.steep", func(b *links.Batch, scores *nn.Tensor) *nn.Loss {
	return links.BCE(scores.Fwd().Scale(scores, 2), b.PerEdge)
})

// A loss of one's own trains in the place of the library's.
func ExampleDeclareLoss() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=1000&features=16&classes=4&homophily=0.9&noise=0.5"))
	run := gnb.Must(links.Train(ctx, ds, links.Options{OwnLoss: steep, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	fmt.Println("better than chance:", run.Value("test_auc") > 0.5)
	// Output: better than chance: true
}

var splitParts = gnb.Program("example.parts", func(w *gnb.Worker, seed uint64) error {
	split, err := links.RandomSplitOf(w, links.SplitOptions{Seed: seed})
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{5}, Batch: 10}})
	for range w.Epochs(1) {
		for b := range loader.Batches() {
			if err := loader.Verify(b); err != nil {
				return err
			}
		}
	}
	if w.Rank() == 0 {
		w.Result("train", float64(split.Predicted()))
	}
	return nil
})

// Each of two workers has the edges into the nodes of its part alone.
func ExampleRandomSplitOf() {
	ctx := context.Background()
	dir := gnb.Must(os.MkdirTemp("", "parts"))
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "karate-2")
	gnb.Must(parts.Divide(ctx, gnb.Must(gnb.Load(ctx, "karate")), 2, parts.Options{NoTopology: true, Out: out, Quiet: true}))
	run := gnb.Must(gnb.Launch(ctx, splitParts, 1, gnb.LaunchOptions{Data: gnb.Must(gnb.Load(ctx, out)), Workers: 2, Quiet: true}))
	fmt.Println("edges to predict in training:", run.Value("train"))
	// Output: edges to predict in training: 68
}

// Train predicts one relation of a dataset with types: which items a user likes. Recommendations are items.
func ExampleTrain_relation() {
	ctx := context.Background()
	ds := gnb.Must(linkstest.Shop())
	run := gnb.Must(links.Train(ctx, ds, links.Options{Relation: "likes", OptimizerOptions: gnb.OptimizerOptions{Epochs: 20, Batch: 128}, ModelOptions: gnb.ModelOptions{Hidden: 16}, EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 10}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	fmt.Println("better than chance:", run.Value("test_auc") > 0.6)
	best := gnb.Must(links.Recommend(ctx, run, ds, []int32{0}, 3, links.RecommendOptions{ExcludeKnown: true, InferOptions: links.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}}}))
	ids, _ := best.Of(0)
	for _, v := range ids {
		fmt.Println(ds.Schema().Nodes[ds.Schema().TypeOf(v)].Name)
	}
	// Output:
	// better than chance: true
	// item
	// item
	// item
}
