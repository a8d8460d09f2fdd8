package numbers_test

import (
	"context"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// distances is a generated graph whose target is the sum of the two first features of a node.
func distances(ctx context.Context) *gnb.Dataset {
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=1000&features=8&classes=4"))
	ds.Labels, ds.Meta.NumClasses = nil, 0
	ds.Targets = &dataset.Matrix{Rows: ds.Nodes(), Cols: 1}
	for v := range ds.Nodes() {
		x := ds.Features.Row(v)
		ds.Targets.F32 = append(ds.Targets.F32, 10+3*(x[0]+x[1]))
	}
	ds.Meta.TargetNames = []string{"distance"}
	return ds
}

func ExampleTrain() {
	ctx := context.Background()
	ds := distances(ctx)
	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 20, Batch: 128}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	fmt.Println("better than the mean:", run.Value("test_mae") < run.Value("mean_mae"))
	// Output: better than the mean: true
}

func ExamplePredict() {
	ctx := context.Background()
	ds := distances(ctx)
	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, LossOptions: numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.1, 0.9}}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	p := gnb.Must(numbers.Predict(ctx, run, ds, gnb.InferOptions{Quiet: true}))
	fmt.Println(p.Names, len(p.Rows.Row(0)))
	// Output: [distance_q0.1 distance_q0.9] 2
}

func ExampleInfer() {
	ctx := context.Background()
	ds := distances(ctx)
	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	file := gnb.Must(os.CreateTemp("", "*.csv")).Name()
	defer os.Remove(file)
	r := gnb.Must(numbers.Infer(ctx, run, ds, file, gnb.InferOptions{Quiet: true}))
	fmt.Println(r.Nodes)
	// Output: 1000
}

func ExampleOptionsOf() {
	ctx := context.Background()
	run := gnb.Must(numbers.Train(ctx, distances(ctx), numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	o := gnb.Must(numbers.OptionsOf(run))
	fmt.Println(o.Metric, o.Targets, len(o.Scale.Mean))
	// Output: mae [distance] 1
}

func ExamplePredictEdges() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "ratings?users=200&items=64&degree=4")) // users are the nodes 0 to 199
	run := gnb.Must(numbers.Train(ctx, ds, numbers.Options{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	pairs := &numbers.Edges{Src: []int32{0, 7}, Dst: []int32{200, 263}}
	p := gnb.Must(numbers.PredictEdges(ctx, run, ds, pairs, numbers.PredictOptions{InferOptions: gnb.InferOptions{Quiet: true}}))
	fmt.Println(p.IDNames(), p.Names, p.RowIDs(1), p.Rows.Rows)
	// Output: [source target] [rating] [7 263] 2
}
