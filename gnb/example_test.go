package gnb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// inScratch makes runs go to a temporary directory and returns the function that removes it.
func inScratch() func() {
	dir := gnb.Must(os.MkdirTemp("", "gnb-example-"))
	gnb.Check(os.Setenv("GNB_RUNS", dir))
	return func() {
		gnb.Check(os.Unsetenv("GNB_RUNS"))
		gnb.Check(os.RemoveAll(dir))
	}
}

func ExampleLoad() {
	ds := gnb.Must(gnb.Load(context.Background(), "planted?nodes=1000&classes=3"))
	fmt.Println(ds.Nodes(), ds.FeatureDim(), ds.Classes())
	// Output: 1000 50 3
}

func ExampleMust() {
	ds := gnb.Must(gnb.Load(context.Background(), "karate"))
	fmt.Println(ds.Nodes())
	// Output: 34
}

func ExampleCheck() {
	gnb.Check(os.MkdirAll(os.TempDir(), 0o755))
	fmt.Println("there")
	// Output: there
}

func ExampleTrain() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 20}, ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}}))
	fmt.Println(run.Result.State, run.Result.Epochs, run.ValAccuracy() > 0.5)
	// Output: done 20 true
}

// exampleNet is a user's own model, made of layers.
type exampleNet struct {
	Convs []*nn.SAGEConv `nn:"convs"`
}

func (m *exampleNet) NumLayers() int { return len(m.Convs) }

func (m *exampleNet) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = m.Convs[i].Forward(f, b, h)
	if i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.5)
	}
	return h
}

// Models and programs are package-level variables.
var (
	exampleModel = gnb.Model("example", func(s gnb.ModelConfig) *exampleNet { return &exampleNet{nn.Stack(s, nn.NewSAGE)} })

	exampleLoop = gnb.Program("example-loop", func(w *gnb.Worker, args exampleArgs) error {
		ds := w.Dataset()
		net := exampleModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: args.Hidden, Out: ds.Classes(), Layers: 2})
		opt := w.Adam(net, 0.01)
		for range w.Epochs(args.Epochs) {
			for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 5}, Batch: 8}) {
				w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			}
		}
		return nil
	})
)

type exampleArgs struct{ Hidden, Epochs int }

func ExampleModel() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	run := gnb.Must(gnb.Train(ctx, ds, exampleModel, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true}}))
	fmt.Println(run.Result.Model.Name, run.Result.Model.Parameters)
	// Output: example 1170
}

func ExampleModelByName() {
	m := gnb.Must(gnb.ModelByName("sage"))
	fmt.Println(m.Name())
	// Output: sage
}

func ExampleBuildModel() {
	m := gnb.Must(gnb.BuildModel("sage", gnb.ModelConfig{In: 34, Hidden: 16, Out: 2, Layers: 2}))
	params := gnb.Must(nn.Collect(m))
	fmt.Println(m.NumLayers(), params.Len())
	// Output: 2 1170
}

func ExampleProgram() {
	fmt.Println(exampleLoop.Name())
	// Output: example-loop
}

func ExampleLaunch() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	run := gnb.Must(gnb.Launch(ctx, exampleLoop, exampleArgs{Hidden: 16, Epochs: 3}, gnb.LaunchOptions{Data: ds, Workers: 2, Quiet: true}))
	fmt.Println(run.Result.State, run.Result.Epochs)
	// Output: done 3
}

func ExampleSampled() {
	how := gnb.Sampled([]int{15, 10}, 512, 100)
	fmt.Println(how.Fanouts, how.Batch, how.MaxBatches)
	// Output: [15 10] 512 100
}

func ExampleSample() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	one := gnb.Must(gnb.Sample(ctx, ds, gnb.SampleOptions{Fanouts: []int{3, 3}, Batch: 4, Workers: 1, Quiet: true}))
	two := gnb.Must(gnb.Sample(ctx, ds, gnb.SampleOptions{Fanouts: []int{3, 3}, Batch: 4, Workers: 2, Quiet: true}))
	fmt.Println(one.Batches == two.Batches, one.Digest == two.Digest)
	// Output: true true
}

func ExampleInfer() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Quiet: true}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}}))
	r := gnb.Must(gnb.Infer(ctx, run, ds, filepath.Join(runs.Dir(), "logits.npy"), gnb.InferOptions{Workers: 2, Quiet: true}))
	fmt.Println(r.Nodes, filepath.Base(r.Out))
	// Output: 34 logits.npy
}

func ExampleInferResult_Logits() {
	defer inScratch()()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Seed: 1, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 30}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}}))
	r := gnb.Must(gnb.Infer(ctx, run, ds, filepath.Join(runs.Dir(), "logits.npy"), gnb.InferOptions{Workers: 1, Quiet: true}))
	logits := gnb.Must(r.Logits())
	fmt.Println(logits.Rows, logits.Cols, "the instructor is of class", nn.Argmax(logits.Row(0)))
	// Output: 34 2 the instructor is of class 0
}

func ExampleSmall() {
	fmt.Println(gnb.Small("reddit", "planted?nodes=6000&classes=41")) // GNB_SMALL is not set
	// Output: reddit
}

func ExampleModelOf_Describe() {
	info := gnb.Must(gnb.SAGE.Describe(gnb.ModelConfig{In: 34, Hidden: 16, Out: 2, Layers: 2}))
	fmt.Println(info)
	// Output:
	// model sage: 2 layers, 34 features → 16 → 2 classes; 1170 weights
	// parameter             shape     weights
	// convs.0.lin_l.weight  [16, 34]  544
	// convs.0.lin_l.bias    [16]      16
	// convs.0.lin_r.weight  [16, 34]  544
	// convs.1.lin_l.weight  [2, 16]   32
	// convs.1.lin_l.bias    [2]       2
	// convs.1.lin_r.weight  [2, 16]   32
	// total                           1170
}

func ExampleDataset() {
	ds := gnb.Must(gnb.Load(context.Background(), "karate"))
	fmt.Println(ds)
	fmt.Println(ds.Graph)
	fmt.Println(ds.Graph.Slice(0, 10))
	// Output:
	// karate: 34 nodes, 156 edges, 34 features, 2 classes; train 6, val 8, test 20; 5.7 KiB in memory
	// graph: 34 nodes, 156 edges; 4.6 in-edges per node, at most 17
	// block: 10 destinations, 34 sources, 63 edges
}

func ExampleTrace() {
	fmt.Println(gnb.Trace(fmt.Errorf("no panic in a worker")) == "")
	// Output: true
}

// ExampleRecipeFor shows what the rules choose for a graph; gnb.TrainOptions{Recipe: "strong"} trains with it.
func ExampleRecipeFor() {
	ds := gnb.Must(gnb.Load(context.Background(), "karate"))
	r := gnb.Must(gnb.RecipeFor(ds, gnb.GCN, "strong"))
	fmt.Println(r.Model, r.Options.Arrangement, r.Options.FullGraph)
	// Output: gcn strong true
}
