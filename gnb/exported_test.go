package gnb_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// everyFunction returns, for each exported function of the package, a check that calls it once.
func everyFunction(dir string) map[string]func() error {
	ctx := context.Background()
	refused := func(err error) error {
		if err == nil || !strings.Contains(err.Error(), "a worker cannot start a run") {
			return fmt.Errorf("it did not refuse to start a run in a worker: %v", err)
		}
		return nil
	}
	fails := func(err error) error {
		if err == nil {
			return fmt.Errorf("it found a run where there is none")
		}
		return nil
	}
	return map[string]func() error{
		"Must":           func() error { gnb.Must(1, nil); return nil },
		"Check":          func() error { gnb.Check(nil); return nil },
		"Trace":          func() error { gnb.Trace(nil); return nil },
		"DeclareSampler": func() error { gnb.DeclareSampler("test.late.sampler", func() gnb.Fanouts { return nil }); return nil },
		"DeclareMetric":  func() error { gnb.DeclareMetric(gnb.Metric{Name: "test_late_metric"}); return nil },
		"DeclareLoss":    func() error { gnb.DeclareLoss("test.late.loss", (*gnb.Batch).Loss); return nil },
		"Model":          func() error { gnb.Model("test.late", nn.NewMLPModel); return nil },
		"Load":           func() error { _, err := gnb.Load(ctx, "karate"); return err },
		"runs.List":      func() error { _, err := runs.List(ctx); return err },
		"runs.Dir": func() error {
			if runs.Dir() == "" {
				return fmt.Errorf("no directory")
			}
			return nil
		},
		"BuildModel":  func() error { _, err := gnb.BuildModel("mlp", gnb.ModelConfig{In: 2, Out: 2, Layers: 1}); return err },
		"ModelByName": func() error { _, err := gnb.ModelByName("mlp"); return err },
		"Program": func() error {
			gnb.Program("test.late", func(*gnb.Worker, int) error { return nil })
			return nil
		},
		"Sampled": func() error {
			if gnb.Sampled([]int{3}, 10, 2).MaxBatches != 2 {
				return fmt.Errorf("other bound")
			}
			return nil
		},
		"runs.Compare": func() error { _ = runs.Compare(); return nil },
		"RecipeFor": func() error {
			ds, err := gnb.Load(ctx, "karate")
			if err != nil {
				return err
			}
			_, err = gnb.RecipeFor(ds, gnb.GCN, "strong")
			return err
		},
		"BalancedWeights": func() error {
			ds, err := gnb.Load(ctx, "karate")
			if err != nil {
				return err
			}
			_, err = gnb.BalancedWeights(ds)
			return err
		},
		"TaskOfNodes": func() error {
			of, err := gnb.TaskOfNodes(gnb.SAGE)
			if err != nil {
				return err
			}
			if _, err := of.TimeSteps(ctx, gnb.Must(gnb.Load(ctx, "karate")), gnb.TrainOptions{}, gnb.StepsSpec{}); refused(err) != nil {
				return fmt.Errorf("TimeSteps in a worker: %w", err)
			}
			_, err = gnb.TaskOfNodes(nil)
			return fails(err)
		},
		"OptionsOf":   func() error { _, _, err := gnb.OptionsOf(&runs.Run{}); return fails(err) },
		"runs.Open":   func() error { _, err := runs.Open(filepath.Join(dir, "none")); return fails(err) },
		"runs.OpenFS": func() error { _, err := runs.OpenFS(os.DirFS(dir), "none"); return fails(err) },
		"runs.Last":   func() error { _, err := runs.Last(ctx); return fails(err) },
		"Train": func() error {
			ds, err := gnb.Load(ctx, "karate")
			if err != nil {
				return err
			}
			_, err = gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{})
			return refused(err)
		},
		"Launch": func() error { _, err := gnb.Launch(ctx, loop, loopArgs{}, gnb.LaunchOptions{}); return refused(err) },
		"Sample": func() error {
			ds, err := gnb.Load(ctx, "karate")
			if err != nil {
				return err
			}
			_, err = gnb.Sample(ctx, ds, gnb.SampleOptions{})
			return refused(err)
		},
		"Attach": func() error {
			_, err := gnb.Attach(ctx, &runs.Run{Dir: dir})
			return refused(err)
		},
		"runs.CompareLive": func() error {
			_, err := runs.CompareLive(ctx)
			return refused(err)
		},
		"runs.Export": func() error { return fails(runs.Export(ctx, nil, runs.ExportOptions{})) },
		"Small": func() error {
			if got := gnb.Small("big", "small"); got != "big" {
				return fmt.Errorf("without GNB_SMALL it gives %s", got)
			}
			return nil
		},
		"Plan":     func() error { _, err := gnb.Plan(ctx, nil, nil, gnb.TrainOptions{}); return refused(err) },
		"Identify": func() error { _, err := gnb.Identify(ctx, gnb.Must(gnb.Load(ctx, "karate")), gnb.SAGE); return err },
		"DeclareTask": func() error {
			gnb.DeclareTask("test.late.task", gnb.TaskDef[gnb.TrainOptions]{Start: func(*gnb.Worker, gnb.TrainOptions) (gnb.Task, error) { return nil, nil }})
			return nil
		},
		"RecordAs": func() error {
			gnb.RecordAs(&gnb.TaskOf[gnb.TrainOptions]{}, func(_ *gnb.Dataset, o gnb.TrainOptions) gnb.TrainOptions { return o }, func(o gnb.TrainOptions) (gnb.TrainOptions, error) { return o, nil })
			return nil
		},
		"Infer": func() error { _, err := gnb.Infer(ctx, nil, nil, "", gnb.InferOptions{}); return refused(err) },
	}
}

func fail(w *gnb.Worker, err error) {
	if err != nil {
		w.Fail(err)
	}
}

// everyMethod returns, for each exported method of Worker, a function that calls it.
func everyMethod(w *gnb.Worker) map[string]func() {
	ds := w.Dataset()
	net := faultyModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 1e-3)
	kept := 3
	first := func() *gnb.Batch { return w.FullGraph("train") }
	path := filepath.Join(w.RunDir(), fmt.Sprintf("weights-%d.safetensors", w.Rank()))
	return map[string]func(){
		"Rank":    func() { w.Rank() },
		"World":   func() { w.World() },
		"Seed":    func() { w.Seed() },
		"RunDir":  func() { w.RunDir() },
		"Dataset": func() { w.Dataset() },
		"Network": func() {
			w.Network("mlp", gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2})
		},
		"Build": func() {
			w.Build("mlp", gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2})
		},
		"NetworkOf": func() {
			s := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2}
			w.NetworkOf("mlp of one's own", s, nn.NewMLPModel(s))
		},
		"OptimizerOf": func() { w.OptimizerOf(net, gnb.OptimizerOptions{LR: 0.01, Epochs: 1}, func() int { return 1 }) },
		"LoaderOf": func() {
			if l := w.LoaderOf(gnb.SamplerOptions{Fanouts: []int{3}}, gnb.OptimizerOptions{Batch: 7}); l.Batch != 7 || len(l.Fanouts) != 1 {
				w.Fail(fmt.Errorf("the loader is %+v", l))
			}
		},
		"StepsOf": func() {
			if n := w.StepsOf(10, gnb.Loader{Fanouts: []int{3}, Batch: 4}); n != 3 {
				w.Fail(fmt.Errorf("10 items in batches of 4 are %d steps", n))
			}
		},
		"FullGraphOf": func() {
			if b := w.FullGraphOf([]int32{3, 4}); w.Rank() == 0 && len(b.Seeds) != 2 {
				w.Fail(fmt.Errorf("the seeds are %v", b.Seeds))
			}
		},
		"Outputs": func() {
			fail(w, w.Outputs(net, nil, func(rows []float32, cols, _ int) error {
				if len(rows) < ds.Nodes()*cols {
					return fmt.Errorf("%d outputs of %d nodes", len(rows), ds.Nodes())
				}
				return nil
			}))
		},
		"OnHost":          func() { fail(w, w.OnHost(net, func(int) error { return nil })) },
		"Owners":          func() { w.Owners() },
		"Report":          func() { w.Report(runs.NamedValue{Name: "val_score", Value: 0.5}) },
		"ResultText":      func() { w.ResultText("text", "x") },
		"SingleSteps":     func() { w.SingleSteps([]int{3, 3}).Close() },
		"StageTimes":      func() { w.StageTimes() },
		"Moved":           func() { w.Moved() },
		"WithoutFeatures": func() { w.WithoutFeatures() },
		"Adam":            func() { w.Adam(net, 1e-3) },
		"SGD":             func() { w.SGD(net, 1e-3) },
		"Optimizer":       func() { w.Optimizer(net, optim.NewSGD(optim.SGDOptions{LR: 0.1})) },
		"Epochs": func() {
			n := 0
			for range w.Epochs(2) {
				n++
			}
			if n != 2 {
				w.Fail(fmt.Errorf("%d epochs, want 2", n))
			}
		},
		"BatchesOf": func() {
			for b := range w.BatchesOf(gnb.Items{Count: 4, Of: func(_, _ int, items []int32, lo, hi int) (gnb.Seeds, any, error) {
				return gnb.Seeds{IDs: slices.Clone(items[lo:hi])}, nil, nil
			}}, gnb.Loader{Fanouts: []int{3, 3}}) {
				_ = b.Items
			}
		},
		"Batches": func() {
			seeds := 0.0
			for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3}, BatchPerWorker: 5}) {
				seeds += float64(len(b.Seeds))
				w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			}
			sum := []float64{seeds}
			w.AllReduce(sum)
			ids, _ := ds.Split("train")
			if sum[0] != float64(len(ids)) {
				w.Fail(fmt.Errorf("%v seeds in all, want %d", sum[0], len(ids)))
			}
		},
		"FullGraph": func() { first() },
		"Step": func() {
			b := first()
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
		},
		"EpochLoss": func() { w.EpochLoss() },
		"Evaluate": func() {
			full := w.Evaluate(net, gnb.FullNeighbors, "test")
			all := w.Evaluate(net, gnb.Sampled([]int{-1, -1}, 7, 0), "test")
			if full.Splits[0].String() != all.Splits[0].String() {
				w.Fail(fmt.Errorf("with all neighbours sampled %v, layer by layer %v", all, full))
			}
			for _, warmup := range []int{2, 3} {
				t := w.Timer(warmup)
				w.Evaluate(net, gnb.Evaluation{Fanouts: []int{2, 2}, Batch: 7, MaxBatches: 3, Timer: t}, "test")
				if timed := t.Mean() > 0; timed != (warmup < 3) {
					w.Fail(fmt.Errorf("a timer of 3 batches with %d to warm up gives a mean of %v", warmup, t.Mean()))
				}
			}
		},
		"StepsPerEpoch": func() {
			ids, err := w.Dataset().Split("train")
			if n := w.StepsPerEpoch("train", gnb.Loader{Batch: 7}); err != nil || n != (len(ids)+6)/7 {
				w.Fail(fmt.Errorf("%d steps for %d seeds, %v", n, len(ids), err))
			}
		},
		"Barrier": func() { w.Barrier() },
		"AllReduce": func() {
			v := []float64{float64(w.Rank()), 1}
			w.AllReduce(v)
			if n := float64(w.World()); v[1] != n || v[0] != n*(n-1)/2 {
				w.Fail(fmt.Errorf("the sum over %v ranks is %v", n, v))
			}
		},
		"AllGather": func() {
			for rank, b := range w.AllGather([]byte{byte(w.Rank()), 7}) {
				if len(b) != 2 || int(b[0]) != rank || b[1] != 7 {
					w.Fail(fmt.Errorf("rank %d gave %v", rank, b))
				}
			}
		},
		"EvaluateOf": func() {
			rows := []float64{0}
			each := gnb.Items{Count: 9, Size: func(i int32) int64 { return int64(i) }, Of: func(_, _ int, items []int32, lo, hi int) (gnb.Seeds, any, error) {
				return gnb.Seeds{IDs: slices.Clone(items[lo:hi])}, nil, nil
			}}
			err := w.EvaluateOf(net, "nodes", each, gnb.Loader{Induced: true, Batch: 4}, func(b *gnb.Batch) error {
				out := net.Forward(b)
				rows[0] += float64(out.Rows())
				first := slices.Clone(out.Data())
				if !slices.EqualFunc(first, net.Forward(b).Data(), func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
					return errors.New("dropout in an evaluation")
				}
				return nil
			})
			if w.AllReduce(rows); err != nil || rows[0] != 9 {
				w.Fail(fmt.Errorf("%v rows of 9 items: %v", rows[0], err))
			}
		},
		"Log":      func() { w.Log("x", 1, "y", 2.5) },
		"Printf":   func() { w.Printf("hello from rank %d", w.Rank()) },
		"Result":   func() { w.Result("answer", 42) },
		"Progress": func() { w.Progress("working", 10)(10) },
		"Timer": func() {
			t := w.Timer(1)
			for range 3 {
				time.Sleep(time.Millisecond)
				t.Lap()
			}
			if t.Mean() < time.Millisecond {
				w.Fail(fmt.Errorf("a lap of a millisecond and more took %v", t.Mean()))
			}
		},
		"Keep": func() { w.Keep("kept", &kept) },
		"BestBy": func() {
			defer func() {
				if recover() == nil {
					w.Printf("BestBy did not refuse a call without a name")
				}
			}()
			w.BestBy(net, gnb.Best{})
		},
		"SaveBest": func() { w.SaveBest(net, 0.5) },
		"LoadBest": func() { w.SaveBest(net, 0.75); w.LoadBest(net) },
		"LoadWeights": func() {
			w.SaveBest(net, 0.8)
			w.Barrier()
			raw, err := os.ReadFile((&runs.Run{Dir: w.RunDir()}).BestWeights())
			if err == nil {
				err = os.WriteFile(path, raw, 0o600)
			}
			if err != nil {
				w.Fail(err)
			}
			w.LoadWeights(net, path)
		},
		"Digest": func() { w.Digest() },
		"Fail": func() {
			defer func() {
				if recover() == nil {
					w.Printf("Fail did not stop the rank")
				}
			}()
			w.Fail(nil)
		},
	}
}

type surfaceArgs struct{ Dir string }

var surface = gnb.Program("test.surface", func(w *gnb.Worker, a surfaceArgs) error {
	w.UseGraph(w.Dataset().Graph) // before any network
	w.Result("method.UseGraph", 1)
	methods := everyMethod(w)
	names := make([]string, 0, len(methods))
	for n := range methods {
		names = append(names, n)
	}
	slices.Sort(names) // all ranks call the methods in the same order
	for _, n := range names {
		methods[n]()
		w.Result("method."+n, 1)
	}
	w.Barrier()
	for n, f := range everyFunction(a.Dir) {
		if err := f(); err != nil {
			return fmt.Errorf("%s in a worker: %w", n, err)
		}
		w.Result("function."+n, 1)
	}
	return nil
})

// Every exported function and every method of Worker can be called in a worker.
func TestWholeSurfaceInWorkers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(dir, "empty"))
	run, err := gnb.Launch(t.Context(), surface, surfaceArgs{dir}, gnb.LaunchOptions{
		Data:    load(t, "karate"),
		Workers: 2,
		Threads: 1,
		Quiet:   true,
		RunDir:  filepath.Join(dir, "run"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range slices.Concat(exportedFunctions(t, "", "."), exportedFunctions(t, "runs.", "runs")) {
		if run.Result.Values["function."+n] != 1 {
			t.Errorf("%s was not called in a worker: add it to everyFunction", n)
		}
	}
	methods := reflect.TypeFor[*gnb.Worker]()
	for i := range methods.NumMethod() {
		if n := methods.Method(i).Name; run.Result.Values["method."+n] != 1 {
			t.Errorf("Worker.%s was not called in a worker: add it to everyMethod", n)
		}
	}
	if run.Value("answer") != 42 {
		t.Errorf("Worker.Result: the run's value is %v, want 42", run.Value("answer"))
	}
}

// exportedFunctions returns the exported functions of the package in dir, with the package's name
// as prefix.
func exportedFunctions(t *testing.T, room, dir string) []string {
	t.Helper()
	var names []string
	pkgs, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // one package, no build tags that matter
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, f := range p.Files {
			for _, d := range f.Decls {
				if fd, ok := d.(*ast.FuncDecl); ok && fd.Recv == nil && fd.Name.IsExported() {
					names = append(names, room+fd.Name.Name)
				}
			}
		}
	}
	if len(names) < 5 {
		t.Fatalf("only the functions %v were found", names)
	}
	return names
}
