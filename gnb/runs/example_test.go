package runs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
)

// inScratch makes an example's runs go to a temporary directory and returns the function that
// removes it.
func inScratch() func() {
	dir := gnb.Must(os.MkdirTemp("", "gnb-example-"))
	gnb.Check(os.Setenv("GNB_RUNS", dir))
	return func() {
		gnb.Check(os.Unsetenv("GNB_RUNS"))
		gnb.Check(os.RemoveAll(dir))
	}
}

// trainHidden trains a network with the given number of hidden columns for a moment.
func trainHidden(ctx context.Context, hidden int) *runs.Run {
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	return gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, ModelOptions: gnb.ModelOptions{Hidden: hidden, Dropout: 0.5}}))
}

// Runs are found by their settings and results, even from another process.
func Example() {
	defer inScratch()()
	ctx := context.Background()
	for _, hidden := range []int{8, 16} {
		trainHidden(ctx, hidden)
	}
	last := gnb.Must(runs.Last(ctx))
	fmt.Println(last.Config.Program, last.Result.State, last.Result.Epochs)
	for _, r := range gnb.Must(runs.List(ctx, runs.Options{Filter: "model=sage hidden<10"})) {
		losses := gnb.Must(r.Losses())
		fmt.Println(r.Fields()["args.Hidden"], int64(len(losses)) == r.Result.Steps)
	}
	// Output:
	// gnb.train done 2
	// 8 true
}

func ExampleLast() {
	defer inScratch()()
	ctx := context.Background()
	trainHidden(ctx, 8)
	run := gnb.Must(runs.Last(ctx)) // works in another cell, or after the kernel has restarted
	losses := gnb.Must(run.Losses())
	fmt.Println(run.Result.State, int64(len(losses)) == run.Result.Steps)
	// Output: done true
}

func ExampleList() {
	defer inScratch()()
	ctx := context.Background()
	for _, hidden := range []int{8, 32, 16} {
		trainHidden(ctx, hidden)
	}
	table := gnb.Must(runs.List(ctx, runs.Options{Filter: "model=sage hidden>8", Sort: "-hidden"}))
	fmt.Print(gnb.Must(table.Text("model", "hidden", "state")))
	// Output:
	// model  Hidden  state
	// sage   32      done
	// sage   16      done
}

func ExampleOpen() {
	_, err := runs.Open("no/such/run")
	fmt.Println(err)
	// Output: runs: no/such/run is not a run's directory: open no/such/run/config.json: no such file or directory
}

func ExampleDir() {
	fmt.Println(runs.Dir())
	// Output: runs
}

func ExampleCompare() {
	defer inScratch()()
	ctx := context.Background()
	for _, row := range runs.Compare(trainHidden(ctx, 8), trainHidden(ctx, 16)).Settings {
		fmt.Println(row.Name, row.Values)
	}
	// Output: args.Hidden [8 16]
}

func ExampleCompareLive() {
	defer inScratch()()
	ctx := context.Background()
	c := gnb.Must(runs.CompareLive(ctx, trainHidden(ctx, 8))) // returns at once: the run has ended
	fmt.Println(c.Runs[0].Result.State)
	// Output: done
}

func ExampleExport() {
	defer inScratch()()
	ctx := context.Background()
	run := trainHidden(ctx, 8)
	gnb.Check(runs.Export(ctx, run, runs.ExportOptions{TensorBoard: filepath.Join(run.Dir, "tb")}))
	fmt.Println(len(gnb.Must(filepath.Glob(filepath.Join(run.Dir, "tb", "*", "events.out.tfevents.*")))))
	// Output: 1
}
