package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu"
)

// InferOptions configure [Infer].
type InferOptions struct {
	Workers int // 0 means one per GPU, else one
	Threads int // threads per worker; 0 means an even share of the CPUs
	Device  string
	// Features is the option of [LaunchOptions].
	Features string
	Final    bool // use the final weights even if best.safetensors exists
	// Layer is the layer whose output is written, counted from 1: the rows that the next layer reads, after the
	// activation. 0 means the last one, whose output is the logits.
	Layer int
	Quiet bool
}

// InferResult is the result of [Infer].
type InferResult struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"`
	// Metric is the name of the dataset's metric, as in [SplitMetric], and Value the metric over
	// all labelled nodes; NaN if there are none, and for a layer before the last.
	Metric  string  `json:"metric"`
	Value   float64 `json:"value"`
	Weights string  `json:"weights"` // the file that the weights were read from
	Out     string  `json:"out"`

	data *Dataset
	said *notice.List
}

// Notices say whether features were matched by their names because the dataset has them in another order.
func (r InferResult) Notices() notice.List {
	if r.said == nil {
		return nil
	}
	return *r.said
}

func (r InferResult) String() string {
	s := fmt.Sprintf("%d nodes in %.2f s", r.Nodes, r.Seconds)
	if r.Value == r.Value {
		s += fmt.Sprintf(", %s %.4f", strings.ReplaceAll(r.Metric, "_", " "), r.Value)
	}
	return phrase.Clean(s + fmt.Sprintf("\nby %s\ninto %s", r.Weights, r.Out))
}

type inferArgs struct {
	Model   string
	Sizes   ModelConfig
	Weights string
	Out     string
	Layer   int // 0 means the last one
}

// Infer computes a trained run's output for every node of a dataset, with all neighbours, shared
// among workers, and writes it to a NumPy file: float32 [nodes, classes], the logits, or a hidden
// layer's [nodes, columns]. It uses the run's weights at the best validation accuracy if the run has them, else the final ones. If a
// node's output is not finite nothing is written, and the error, [ErrNotFinite], names the first
// layer with such an output.
func Infer(ctx context.Context, run *runs.Run, ds *Dataset, out string, o InferOptions) (InferResult, error) {
	entry.Enter()
	var r InferResult
	if multigpu.InWorker() {
		return r, entry.ErrWorker
	}
	if run == nil || ds == nil {
		return r, errors.New("gnb: Infer needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	}
	if out == "" {
		return r, errors.New("gnb: Infer needs the name of a .npy file to write")
	}
	if end := filepath.Ext(out); end != ".npy" && end != "" {
		return r, fmt.Errorf("gnb: Infer writes a NumPy array, and the file is %s; name one that ends in .npy (the command gnb infer writes .csv, .json, .jsonl, .parquet and .arrow too)", out)
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return r, err
	}
	given, said := ds, &notice.List{}
	ds, err := feed.AsTrained(ctx, "gnb", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, said)
	if err != nil {
		return r, err
	}
	file, info, err := run.WeightsFile(o.Final)
	if err != nil {
		return r, err
	}
	if info = cmp.Or(run.Result.Model, info); info == nil {
		return r, fmt.Errorf("gnb: run %s has not recorded its model; it is %s", run.Config.ID, run.Result.State)
	}
	if run.Config.Program == "gnb.numbers" && o.Layer == 0 { // its outputs are standardised
		return r, fmt.Errorf("gnb: run %s predicts numbers; take numbers.Infer or numbers.Predict (gnb infer does), or a hidden layer (Layer)", run.Config.ID)
	}
	if strings.Contains(info.Name, " for links by ") {
		return r, fmt.Errorf("gnb: run %s predicts links; take links.Infer, links.Score or links.Recommend (gnb infer does)", run.Config.ID)
	}
	if ds.FeatureDim() != info.Config.In && !info.Config.Embedding {
		return r, fmt.Errorf("gnb: %s has %d features a node and the model of run %s takes %d", ds.Name(), ds.FeatureDim(), run.Config.ID, info.Config.In)
	}
	if o.Layer < 0 {
		return r, fmt.Errorf("gnb: InferOptions.Layer is %d; layers are counted from 1, and 0 means the last one", o.Layer)
	}
	sizes, err := info.Config.On(ds.Schema())
	if err != nil {
		return r, fmt.Errorf("gnb: run %s and %s: %w", run.Config.ID, ds.Name(), err)
	}
	a := inferArgs{Layer: o.Layer, Model: info.Name, Sizes: sizes, Out: runfile.Absolute(out), Weights: file}
	write, deliver, err := runfile.Output(a.Out, ErrInterrupted)
	if err != nil {
		return r, err
	}
	a.Out = write
	scratch, err := Launch(ctx, inferProgram, a, LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, PlaneOptions: PlaneOptions{Features: o.Features}, Quiet: o.Quiet, Title: info.Name + " on all of " + ds.Name(),
	})
	if err = deliver(ctx, err); err != nil {
		return r, err
	}
	return InferResult{
		Nodes: ds.Nodes(), Seconds: scratch.Value("seconds"), Metric: tally.Metric(ds).Name, Value: scratch.Value("metric"), Weights: a.Weights, Out: runfile.Absolute(out), data: given, said: said,
	}, nil
}

var inferProgram = Program("gnb.infer", func(w *Worker, a inferArgs) error {
	net := w.Network(a.Model, a.Sizes)
	w.LoadWeights(net, a.Weights)
	w.Barrier()
	w.stage(runfile.StageEvaluate)
	start := time.Now()
	t := tally.New(w.ds, w.book(), false)
	layers := net.network.model.NumLayers()
	if a.Layer > layers {
		w.Fail(fmt.Errorf("gnb: InferOptions.Layer is %d, and the model %q has the layers 1 to %d", a.Layer, a.Model, layers))
	}
	labelled := tally.CheckLabels(w.ds) == nil && (a.Layer == 0 || a.Layer == layers)
	net.network.eval.layers = a.Layer
	if w.feed.parts != nil {
		rows := w.partRows(net.network)
		w.Result("seconds", time.Since(start).Seconds())
		w.watchRows(net.network, !rows.Finite())
		if labelled {
			w.check(rows.Each(t.Add))
			w.Result("metric", w.joinTallies(t, "all").Value())
		}
		return rows.Write(w.comm, w.site("infer"), a.Out)
	}
	logits := w.layerwise(net.network)
	defer logits.Release()
	w.Result("seconds", time.Since(start).Seconds())
	all, cols := logits.Data(), logits.Cols()
	lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
	w.watchRows(net.network, !simd.Finite(all[lo*cols:hi*cols]))
	if w.Rank() != 0 {
		return nil
	}
	if labelled {
		for v := range w.ds.Nodes() {
			t.Add(int32(v), all[v*cols:(v+1)*cols])
		}
		w.Result("metric", t.Result().Value)
	}
	return dataset.WriteNPY(a.Out, w.ds.Nodes(), cols, all[:w.ds.Nodes()*cols])
})

// Logits reads the file that [Infer] wrote, [nodes, classes]: row v is node v's output, and its
// [nn.Argmax] the predicted class. The matrix has its own memory of 4·nodes·classes bytes.
func (r InferResult) Logits() (*dataset.Matrix, error) { return dataset.ReadNPY(r.Out) }

// IDs returns the original ids of the nodes, in the order of the rows of [InferResult.Logits], if the dataset was made of
// tables (package gnb/tables): see [dataset.Dataset.IDs].
func (r InferResult) IDs() ([]string, error) {
	if r.data == nil {
		return nil, errors.New("gnb: the result is not one of Infer, so its nodes have no ids")
	}
	return r.data.IDs()
}
