// Command graphs is a task of somebody who uses the library from a module of their own: it classifies whole graphs by the
// mean of their nodes' outputs, with exported names only. The tests of package gnb build and run it.
//
//	graphs train|resume|sweep|infer|plan|scaling DIR WORKERS
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"strconv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// size is the number of nodes of each graph: those of graph g are g·size to (g+1)·size-1.
const size = 6

// toy is a set of rings and stars; a graph's class is whether it is a star.
func toy(graphs int) *gnb.Dataset {
	var src, dst []int32
	x := make([]float32, graphs*size)
	for g := range graphs {
		for i := range size {
			from, to := int32(g*size+i), int32(g*size+(i+1)%size)
			if g%2 == 1 {
				to = int32(g * size)
			}
			if from != to {
				src, dst = append(src, from), append(dst, to)
			}
			x[int(from)] = float32((g*7+i*5)%11) / 11
		}
	}
	graph := gnb.Must(graphops.FromEdges(graphs*size, src, dst, graphops.BuildOptions{Undirected: true}))
	ds := &gnb.Dataset{Graph: graph, Features: &dataset.Matrix{Rows: graphs * size, Cols: 1, F32: x}}
	ds.Meta.Name = "toy"
	return ds
}

// Options are the task's options: the subjects that it has, and the hop of its own.
type Options struct {
	gnb.ModelOptions
	gnb.SamplerOptions
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
}

var classes = gnb.DeclareTask("toy.graphs", gnb.TaskDef[Options]{
	Defaults: func(*gnb.Dataset, *Options) gnb.Defaults { return gnb.Defaults{Batch: 16, Epochs: 30} },
	Start: func(w *gnb.Worker, o Options) (gnb.Task, error) {
		return &task{w, w.Network("sage", o.Config(w.Dataset(), 2)), w.LoaderOf(o.SamplerOptions, o.OptimizerOptions)}, nil
	},
})

type task struct {
	w      *gnb.Worker
	net    *gnb.Net[nn.Model]
	loader gnb.Loader
}

// The graphs are for training, validation and the test by turns.
func (t *task) graphs(split string) (ids []int32) {
	for g := range t.w.Dataset().Nodes() / size {
		if is := []string{"train", "train", "val", "test"}[g/2%4]; is == split {
			ids = append(ids, int32(g))
		}
	}
	return ids
}

func (t *task) Network() gnb.Network { return t.net }
func (t *task) Splits() []string     { return []string{"val", "test"} }
func (t *task) Chooses() gnb.Metric  { return gnb.Metric{Name: "accuracy"} }
func (t *task) Steps() int           { return t.w.StepsOf(len(t.graphs("train")), t.loader) }

func (t *task) Batches(int) iter.Seq[*gnb.Batch] {
	ids := t.graphs("train")
	return t.w.BatchesOf(gnb.Items{Name: "graphs", Count: len(ids), Of: func(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
		var labels []int32
		for _, i := range items[lo:hi] {
			for v := range int32(size) {
				seeds.IDs = append(seeds.IDs, ids[i]*size+v)
			}
			labels = append(labels, ids[i]%2)
		}
		return seeds, labels, nil
	}}, t.loader)
}

func (t *task) Loss(b *gnb.Batch) *nn.Loss {
	out, labels := t.net.Forward(b), b.Value.([]int32)
	mean := make([]float32, len(labels)*out.Rows())
	for v := range out.Rows() {
		mean[v/size*out.Rows()+v] = 1. / size
	}
	return nn.CrossEntropy(out.Fwd().MatMul(out.Fwd().Input(len(labels), out.Rows(), mean, nil), out), labels)
}

// answers calls use with the class of each graph.
func (t *task) answers(use func(class func(g int32) int32) error) error {
	return t.w.Outputs(t.net, nil, func(rows []float32, cols, _ int) error {
		return use(func(g int32) int32 {
			d := float32(0)
			for v := g * size; v < (g+1)*size; v++ {
				d += rows[int(v)*cols+1] - rows[int(v)*cols]
			}
			if d > 0 {
				return 1
			}
			return 0
		})
	})
}

func (t *task) Measure(splits ...string) (values []runs.NamedValue, err error) {
	return values, t.answers(func(class func(g int32) int32) error {
		for _, s := range splits {
			right, ids := 0., t.graphs(s)
			for _, g := range ids {
				if class(g) == g%2 {
					right++
				}
			}
			values = append(values, runs.NamedValue{Name: s + "_accuracy", Value: right / float64(len(ids))})
		}
		return nil
	})
}

func (t *task) Infer(file string) error {
	return t.answers(func(class func(g int32) int32) error {
		text := ""
		for g := range int32(t.w.Dataset().Nodes() / size) {
			text += fmt.Sprintln(g, class(g))
		}
		return os.WriteFile(file, []byte(text), 0o600)
	})
}

func main() {
	flag.Parse() // where workers begin
	ctx, dir, ds := context.Background(), flag.Arg(1), toy(160)
	var o Options
	o.Workers, o.VirtualRanks, o.Threads, o.Hidden, o.Seed = gnb.Must(strconv.Atoi(flag.Arg(2))), 1, 1, 8, 3
	o.VirtualRanks = 2 / o.Workers
	switch flag.Arg(0) {
	case "train":
		o.RunDir, o.CheckpointEvery = dir, 3
		fmt.Println(gnb.Must(classes.Train(ctx, ds, o)))
	case "resume":
		had := gnb.Must(classes.OptionsOf(gnb.Must(runs.Open(dir))))
		had.Resume, had.Threads = dir, 1
		fmt.Println(gnb.Must(classes.Train(ctx, ds, had)))
	case "sweep":
		fmt.Println(gnb.Must(sweep.RunTask(ctx, ds, classes, func(t *sweep.Trial) Options {
			o.LR = t.LogFloat("lr", 1e-3, 1e-1)
			return o
		}, sweep.Options{Trials: 3, Dir: dir, Metric: "val_accuracy"})))
	case "plan":
		fmt.Println(gnb.Must(classes.Plan(ctx, ds, o)))
	case "scaling":
		o.Workers, o.VirtualRanks = 0, 0
		fmt.Println(gnb.Must(scaling.MeasureTask(ctx, ds, classes, o, scaling.How{Repeats: 1, Steps: 3, WarmUp: 1}, []int{1, 2})))
	case "infer":
		run := gnb.Must(runs.Open(dir))
		gnb.Check(classes.Infer(ctx, run, ds, dir+"/answers.txt", gnb.InferOptions{Workers: o.Workers}))
	}
}
