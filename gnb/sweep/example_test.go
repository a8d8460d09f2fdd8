package sweep_test

import (
	"context"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/sweep"
)

// inScratch makes runs go to a temporary directory and returns the function that removes it.
func inScratch() func() {
	dir := gnb.Must(os.MkdirTemp("", "sweep-example"))
	old := os.Getenv("GNB_RUNS")
	gnb.Check(os.Setenv("GNB_RUNS", dir))
	return func() {
		gnb.Check(os.Setenv("GNB_RUNS", old))
		gnb.Check(os.RemoveAll(dir))
	}
}

func Example() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	study := gnb.Must(sweep.Run(ctx, ds, gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
		return gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: t.LogFloat("lr", 1e-4, 1e-1), Epochs: 5}, ModelOptions: gnb.ModelOptions{Hidden: sweep.Choice(t, "hidden", 8, 16), Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 1}}
	}, sweep.Options{Method: "sobol", Trials: 4, Quiet: true}))
	fmt.Println(study.State, len(study.Trials), study.Best() != nil)
	// Output: done 4 true
}

func ExampleChoice() {
	t := &sweep.Trial{} // a trial outside of a search has the lowest values
	fmt.Println(sweep.Choice(t, "fanouts", []int{10, 10}, []int{15, 10}), t.LogFloat("lr", 0.001, 0.1))
	// Output: [10 10] 0.001
}

func ExampleOpen() {
	_, err := sweep.Open("no/such/sweep")
	fmt.Println(err)
	// Output: sweep: no/such/sweep is not a sweep's directory: open no/such/sweep/sweep.json: no such file or directory
}

func ExampleList() {
	defer inScratch()()
	studies := gnb.Must(sweep.List(context.Background()))
	fmt.Println(len(studies))
	// Output: 0
}

func ExampleRepeat() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	r := gnb.Must(sweep.Repeat(ctx, 3, ds, gnb.GCN, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 5}, LaunchOptions: gnb.LaunchOptions{Workers: 1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, sweep.Options{Quiet: true}))
	accuracy := r.Of("test_accuracy")
	fmt.Println(r.Seeds, accuracy.N, accuracy.Mean > 0.3)
	// Output: [0 1 2] 3 true
}
