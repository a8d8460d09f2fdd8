package graphs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/nn"
)

// InferOptions configure [Infer] and [Embed].
type InferOptions struct {
	// InferOptions are the options of gnb.Infer: workers, threads, device, and which weights. Layer is refused.
	gnb.InferOptions
}

// Answers are what a network says of the graphs of a dataset.
type Answers struct {
	// Rows [graphs, columns] are logits of classes or labels; numbers in the unit of the targets, for each target one or one for
	// each quantile; or, of [Embed], pooled rows.
	Rows *dataset.Matrix
	// Seconds is the time of the workers' computation, without their start.
	Seconds float64
	// Weights is the file that the weights were read from.
	Weights string
	// Notices say whether features were matched by their names because the dataset has them in another order.
	Notices notice.List

	o      recorded
	pooled bool
}

// Numeric reports whether the rows are numbers.
func (a *Answers) Numeric() bool { return a.o.numeric() }

// Several reports whether a graph can have several labels: then each column is the logit of one.
func (a *Answers) Several() bool { return a.o.Several }

// Pooled reports whether the rows are pooled rows, of [Embed].
func (a *Answers) Pooled() bool { return a.pooled }

// Quantiles returns the quantiles that each target has a column for; nil if it has one column.
func (a *Answers) Quantiles() []float64 { return a.o.Quantiles }

// Row returns the row of graph g, in the answers' own memory.
func (a *Answers) Row(g int) []float32 {
	return a.Rows.F32[g*a.Rows.Cols : (g+1)*a.Rows.Cols : (g+1)*a.Rows.Cols]
}

// Class returns the most probable class of graph g and its probability.
func (a *Answers) Class(g int) (class int, probability float64) {
	row := a.Row(g)
	class = nn.Argmax(row)
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - float64(row[class]))
	}
	return class, 1 / sum
}

// ClassName returns the name of a class, its number if the dataset of the run has no names.
func (a *Answers) ClassName(class int) string {
	if class < len(a.o.ClassNames) {
		return a.o.ClassNames[class]
	}
	return fmt.Sprint(class)
}

// Columns returns the names of the columns of Rows: those of classes, or of targets with their quantiles.
func (a *Answers) Columns() (names []string) {
	if !a.Numeric() {
		for c := range a.Rows.Cols {
			names = append(names, a.ClassName(c))
		}
		return names
	}
	targets := a.o.TargetNames
	for t := len(targets); t < a.o.Targets(); t++ {
		targets = append(targets, strconv.Itoa(t))
	}
	return a.o.ColumnNames(targets)
}

// Infer computes what the network of a run of [Train] says of each graph of a dataset, which need not be that of the run: new
// graphs need no labels, targets or splits. The workers divide the graphs. It uses the weights of the best epoch if the run has
// them, else the final ones (o.Final).
//
// It returns an error for a run of another program, for a dataset that is one graph, and for one whose nodes, edges or graphs
// have other features than those of the run. The answers for a graph do not depend on the other graphs or on workers.
func Infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o InferOptions) (*Answers, error) {
	return infer(ctx, run, ds, o, false)
}

// Embed computes the pooled row of each graph, from which the network's head makes the answer: an embedding that similar graphs
// have similar ones of. See [Infer].
func Embed(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o InferOptions) (*Answers, error) {
	return infer(ctx, run, ds, o, true)
}

// outputArgs are the argument of the program that computes outputs.
type outputArgs struct {
	Options      recorded
	Weights, Out string
	Pooled       bool
}

func infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o InferOptions, pooled bool) (*Answers, error) {
	had, err := task.OptionsOf(run)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graphs: %w", err)
	case ds == nil:
		return nil, errors.New("graphs: Infer needs a dataset; get one from gnb.Load")
	case o.Layer != 0:
		return nil, fmt.Errorf("graphs: InferOptions.Layer is %d, and graphs have no row of a single layer; leave it out, or take Embed", o.Layer)
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return nil, err
	}
	a := &Answers{o: had, pooled: pooled}
	if ds, err = a.asTrained(ctx, run, ds, o); err != nil {
		return nil, err
	}
	file, _, err := run.WeightsFile(o.Final)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gnb-graphs-")
	if err != nil {
		return nil, fmt.Errorf("graphs: %w", err)
	}
	defer os.RemoveAll(dir)
	had.LaunchOptions = gnb.LaunchOptions{}
	args := outputArgs{Options: had, Weights: file, Out: filepath.Join(dir, "rows.npy"), Pooled: pooled}
	scratch, err := gnb.Launch(ctx, outputs, args, gnb.LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, Seed: run.Config.Seed, Quiet: o.Quiet,
		PlaneOptions: gnb.PlaneOptions{Features: o.Features}, Title: had.Model + " on the graphs of " + ds.Name(),
	})
	if err != nil {
		return nil, err
	}
	if a.Rows, err = dataset.ReadNPY(args.Out); err != nil {
		return nil, fmt.Errorf("graphs: reading the result of the workers: %w", err)
	}
	a.Seconds, a.Weights = scratch.Value("seconds"), file
	return a, nil
}

// asTrained checks that a dataset has the features of a run's, and returns it with them in the run's order.
func (a *Answers) asTrained(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o InferOptions) (*gnb.Dataset, error) {
	ds, err := feed.AsTrained(ctx, "graphs", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, &a.Notices)
	if err != nil {
		return nil, err
	}
	g, err := graphsOf(ds)
	if err != nil {
		return nil, err
	}
	of := a.o.Shape
	for _, x := range []struct {
		what      string
		have, had int
	}{{"features a node", ds.FeatureDim(), of.Node}, {"features an edge", ds.EdgeFeatureDim(), of.Edge}, {"features a graph", g.FeatureDim(), of.Graph}} {
		if x.have != x.had {
			return nil, fmt.Errorf("graphs: %s has %d %s, and the network of run %s takes %d; take a dataset with the features of that of the run", ds.Name(), x.have, x.what, run.Config.ID, x.had)
		}
	}
	return ds, nil
}

var outputs = gnb.Program("gnb.graphs.rows", func(w *gnb.Worker, a outputArgs) error {
	made, err := start(w, a.Options)
	if err != nil {
		return err
	}
	t := made.(*graphTask)
	w.LoadWeights(t.net, a.Weights)
	return t.write(a.Out, a.Pooled)
})

// writeStep is the number of graphs whose rows the ranks gather at a time.
const writeStep = 1 << 17

// write writes the outputs for all graphs, or their pooled rows, to a NumPy file: rank 0 does. Collective.
func (t *graphTask) write(file string, pooled bool) error {
	began := time.Now()
	n := t.w.Dataset().NumGraphs()
	var all []float32
	cols := t.o.Out
	if pooled {
		cols = t.model.Head.Lins[0].Weight.Cols
	}
	if t.w.Rank() == 0 {
		all = make([]float32, n*cols)
	}
	for lo := 0; lo < n; lo += writeStep {
		var mine []byte // graphs and their rows
		ids := make([]int32, 0, writeStep)
		for i := lo; i < min(lo+writeStep, n); i++ {
			ids = append(ids, int32(i))
		}
		put := func(i int32, row []float32) {
			mine = binary.LittleEndian.AppendUint32(mine, uint32(i))
			for _, x := range row {
				mine = binary.LittleEndian.AppendUint32(mine, math.Float32bits(x))
			}
		}
		var err error
		if pooled {
			err = t.eachPooled("graphs", ids, put)
		} else {
			err = t.each("graphs", ids, func(i int32, row []float32) {
				if t.o.numeric() {
					t.o.Undo(row, row)
				}
				put(i, row)
			})
		}
		if err != nil {
			return err
		}
		for _, b := range t.w.AllGather(mine) {
			for ; t.w.Rank() == 0 && len(b) > 0; b = b[4*(1+cols):] {
				row := all[int(binary.LittleEndian.Uint32(b))*cols:][:cols]
				for c := range row {
					row[c] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*(1+c):]))
				}
			}
		}
	}
	if t.w.Rank() != 0 {
		return nil
	}
	if i := slices.IndexFunc(all, func(x float32) bool { return x-x != 0 }); i >= 0 {
		return fmt.Errorf("graphs: the outputs for graph %d: %w; its features, or the weights, are not finite or too large", i/cols, gnb.ErrNotFinite)
	}
	t.w.Result("seconds", time.Since(began).Seconds())
	return dataset.WriteNPY(file, n, cols, all)
}
