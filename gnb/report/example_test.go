package report_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
)

func ExampleOf() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted"))
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
	r := gnb.Must(report.Of(ctx, run, ds, report.Options{Mistakes: 3, Quiet: true}))
	fmt.Println(r.Nodes, "nodes of the split", r.Split)
	fmt.Println(len(r.Classes), "classes,", len(r.Mistakes), "mistakes listed")
	// Output:
	// 2000 nodes of the split test
	// 5 classes, 3 mistakes listed
}

func ExampleNew() {
	ds := dataset.Karate()
	always := &dataset.Matrix{Rows: 34, Cols: 2} // predicts class 0 for every node
	for range 34 {
		always.F32 = append(always.F32, 1, 0)
	}
	r, err := report.New(ds, always, report.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Accuracy, r.Confusion)
	// Output: 0.5 [[10 0] [10 0]]
}
