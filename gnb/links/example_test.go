package links_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
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
	run := gnb.Must(links.Train(ctx, ds, links.Options{Model: gnb.GCN, FullGraph: true, TrainOptions: gnb.TrainOptions{Epochs: 100, EvalEvery: 10, Quiet: true}}))
	fmt.Println("better than chance:", run.Value("test_auc") > 0.6)
	// Output: better than chance: true
}
