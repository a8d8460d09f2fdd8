package numbers

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Edges are pairs of nodes: pair i is Src[i] → Dst[i].
type Edges = links.Edges

// Predictions are the numbers that a network predicts for the nodes or the edges of a dataset, in the unit of the targets.
type Predictions struct {
	// Names are those of the columns: of each target, in turn, its name or number; with Quantiles, a column for each of them,
	// such as "price_q0.9".
	Names []string
	// Rows [nodes or edges, Names] are the predictions.
	Rows *dataset.Matrix
	// Pairs are the edges of the rows, by the numbers of their ends; nil for numbers of nodes. At are their positions in the graph
	// of the dataset, nil for pairs that were given.
	Pairs *Edges
	At    []int64
	// IDs are the original ids of the nodes if the dataset was made of tables, else nil.
	IDs []string
	InferResult
}

// InferResult says what [Infer] did.
type InferResult struct {
	Nodes   int     `json:"nodes,omitempty"`
	Edges   int     `json:"edges,omitempty"` // instead of nodes
	Seconds float64 `json:"seconds"`         // to compute the predictions, without the start of the workers
	// Values are measures over all rows with known targets, such as "all_mae"; nil if the dataset has none.
	Values  []runs.NamedValue `json:"values,omitempty"`
	Weights string            `json:"weights"` // the file that the weights were read from
	Out     string            `json:"out,omitempty"`

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
	s := phrase.Count(r.Nodes, "node")
	if r.Edges > 0 {
		s = phrase.Count(r.Edges, "edge")
	}
	s += fmt.Sprintf(" in %.2f s", r.Seconds)
	for _, v := range r.Values {
		if name := strings.TrimPrefix(v.Name, "all_"); name == "mae" || name == "r2" {
			s += fmt.Sprintf(", %s %.5g", name, v.Value)
		}
	}
	if s += "\nby " + r.Weights; r.Out != "" {
		s += "\ninto " + r.Out
	}
	return phrase.Clean(s)
}

// Predict returns the numbers that the network of a run of [Train] predicts for every node of a dataset, computed with all
// neighbours, shared among workers, by the weights of the best epoch if the run has them. The dataset needs no targets; if it has
// those of the run, by name, the predictions are measured. Memory is 4·nodes·columns bytes.
//
// For a run of numbers of edges it is [PredictEdges] without given pairs.
//
// It returns an error for a dataset that does not fit the network, and [gnb.ErrNotFinite] for outputs that are not finite.
// The numbers do not depend on workers.
func Predict(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o gnb.InferOptions) (*Predictions, error) {
	return predict(ctx, run, ds, nil, PredictOptions{InferOptions: o})
}

// PredictOptions configure [PredictEdges].
type PredictOptions struct {
	// InferOptions are the options of gnb.Infer: workers, threads, device, and which weights. Layer is refused.
	gnb.InferOptions
	// Training computes with the message edges of the run's training alone, as the run's own evaluation does, instead of all edges
	// of the dataset, which must be that of the run.
	Training bool
}

// PredictEdges returns the numbers that the network of a run of [Train] predicts for edges: for the pairs of nodes e, or if e is
// nil for the edges of the run's relation that have rows of targets in the dataset, also unknown ones; if none has, for all edges
// of the relation. An edge with an unknown target is thus predicted. Predictions of given pairs need a network that takes no
// features of edges (EdgeOptions.EndsOnly).
//
// Unless Training is set, all edges of the dataset are messages, so that known numbers are measured better than those of val and
// test were. Memory is 8 bytes for each edge and column, on each rank. The errors are those of [Predict], and one for a pair of nodes that the dataset or the relation does not have. The
// numbers do not depend on workers.
func PredictEdges(ctx context.Context, run *runs.Run, ds *gnb.Dataset, e *Edges, o PredictOptions) (*Predictions, error) {
	if had, err := recordedIn(run); err != nil {
		return nil, err
	} else if !had.edges() {
		return nil, fmt.Errorf("numbers: run %s predicts numbers of nodes; take numbers.Predict", run.Config.ID)
	}
	return predict(ctx, run, ds, e, o)
}

func predict(ctx context.Context, run *runs.Run, ds *gnb.Dataset, e *Edges, o PredictOptions) (*Predictions, error) {
	dir, err := os.MkdirTemp("", "gnb-numbers-")
	if err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "numbers.npy")
	p := &Predictions{}
	if err = p.infer(ctx, run, ds, e, file, o); err != nil {
		return nil, err
	}
	if p.Rows, err = dataset.ReadNPY(file); err != nil {
		return nil, err
	}
	if p.IDs, err = ds.IDs(); errors.Is(err, fs.ErrNotExist) {
		p.IDs, err = nil, nil
	}
	return p, err
}

// Infer is [Predict] into a file: a NumPy array float32 [rows, columns] if its name ends in .npy, or CSV with a header, the
// ids of the nodes, or of both ends of the edges, and a column for each of [Predictions].Names if it ends in .csv. The file appears completely or not at all.
func Infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, out string, o gnb.InferOptions) (InferResult, error) {
	switch filepath.Ext(out) {
	case ".npy":
		write, deliver, err := runfile.Output(runfile.Absolute(out), gnb.ErrInterrupted)
		if err != nil {
			return InferResult{}, err
		}
		p := &Predictions{}
		err = p.infer(ctx, run, ds, nil, write, PredictOptions{InferOptions: o})
		p.Out = runfile.Absolute(out)
		return p.InferResult, deliver(ctx, err)
	case ".csv":
		p, err := Predict(ctx, run, ds, o)
		if err != nil {
			return InferResult{}, err
		}
		p.Out = runfile.Absolute(out)
		return p.InferResult, p.WriteCSV(out)
	}
	return InferResult{}, fmt.Errorf("numbers: Infer writes a NumPy array or CSV, and the file is %q; name one that ends in .npy or .csv (the command gnb infer writes .json, .jsonl, .parquet and .arrow too)", out)
}

// inferArgs is the argument of inferProgram.
type inferArgs struct {
	Options      recorded
	Weights, Out string
	Src, Dst     []int32 `json:",omitempty"` // pairs of nodes to predict
	Pairs        bool    `json:",omitempty"` // there are pairs
	Training     bool    `json:",omitempty"`
}

// infer makes the workers write predictions into a file, and sets everything else of p.
func (p *Predictions) infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, e *Edges, out string, o PredictOptions) error {
	switch {
	case run == nil || ds == nil:
		return errors.New("numbers: predictions need a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	case o.Layer != 0:
		return fmt.Errorf("numbers: InferOptions.Layer is %d, and numbers are those of the last layer; leave Layer out, or take gnb.Infer", o.Layer)
	}
	had, err := recordedIn(run)
	if err != nil {
		return err
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return err
	}
	p.said = &notice.List{}
	if ds, err = feed.AsTrained(ctx, "numbers", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, p.said); err != nil {
		return err
	}
	file, info, err := run.WeightsFile(o.Final)
	if err != nil {
		return err
	}
	args := inferArgs{Options: had, Weights: file, Out: out, Training: o.Training, Pairs: e != nil}
	switch c := run.Config; {
	case had.Embedding > 0 && c.Nodes != ds.Nodes():
		return fmt.Errorf("numbers: run %s has learned a row for each of the %d nodes of %s, and %s has %d nodes; take the dataset of the run", c.ID, c.Nodes, c.Dataset, ds.Name(), ds.Nodes())
	case had.Embedding == 0 && info != nil && ds.FeatureDim() != info.Config.In:
		return fmt.Errorf("numbers: %s has %s a node, and the network of run %s, of %s, takes %d; take the dataset of the run, or one with its features", ds.Name(), phrase.Count(ds.FeatureDim(), "feature"), c.ID, c.Dataset, info.Config.In)
	}
	if had.edges() {
		if err := p.edgesOf(run, ds, e, &args); err != nil {
			return err
		}
	}
	args.Options.LaunchOptions = gnb.LaunchOptions{}
	scratch, err := gnb.Launch(ctx, inferProgram, args, gnb.LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, Seed: run.Config.Seed, Quiet: o.Quiet,
		PlaneOptions: gnb.PlaneOptions{Features: o.Features}, Title: "numbers of all of " + ds.Name(),
	})
	if err != nil {
		return err
	}
	p.Seconds, p.Weights, p.Names = scratch.Value("seconds"), file, had.ColumnNames(had.Options.Targets)
	if p.Pairs != nil {
		p.InferResult.Edges = p.Pairs.Len()
	} else {
		p.Nodes = ds.Nodes()
	}
	for name, x := range scratch.Result.Values {
		if strings.HasPrefix(name, "all_") {
			p.Values = append(p.Values, runs.NamedValue{Name: name, Value: x})
		}
	}
	slices.SortFunc(p.Values, func(a, b runs.NamedValue) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// inferProgram computes predictions, which rank 0 writes, and measures them if the dataset has the targets.
var inferProgram = gnb.Program("gnb.numbers.infer", func(w *gnb.Worker, a inferArgs) error {
	if a.Options.edges() {
		return inferEdges(w, a)
	}
	ds, net := w.Dataset(), network(w, a.Options)
	w.LoadWeights(net, a.Weights)
	w.Barrier()
	began := time.Now()
	return w.Outputs(net, nil, func(rows []float32, cols, _ int) error {
		if w.Rank() != 0 {
			return nil
		}
		w.Result("seconds", time.Since(began).Seconds())
		return a.Options.write(w, ds, rows[:ds.Nodes()*cols], cols, a.Out)
	})
})

// write measures the outputs for all rows and writes them in the unit of the targets: rank 0 does. of has the targets of the rows,
// if any.
func (o *recorded) write(w *gnb.Worker, of *gnb.Dataset, rows []float32, cols int, file string) error {
	if err := o.measureAll(w, of, rows, cols); err != nil {
		return err
	}
	out := make([]float32, len(rows))
	for at := 0; at < len(rows); at += cols {
		o.Undo(out[at:at+cols], rows[at:at+cols])
	}
	return dataset.WriteNPY(file, len(rows)/cols, cols, out)
}

// measureAll reports the measures over all rows, if the dataset has all targets of the run.
func (o *recorded) measureAll(w *gnb.Worker, of *gnb.Dataset, rows []float32, cols int) error {
	if of.Targets == nil {
		return nil
	}
	chosen, _, err := choose(of, o.Options.Targets)
	if err != nil {
		return nil //nolint:nilerr // the dataset has other targets
	}
	return mapped.Guard(func() error {
		all, err := o.NewTally("mae")
		if err != nil {
			return err
		}
		targets := columnsOf(of.Targets, chosen)
		for v := range targets.Rows {
			all.Add(rows[v*cols:(v+1)*cols], targets.Row(v))
		}
		for _, v := range all.Values("all", nil) {
			w.Result(v.Name, v.Value)
		}
		return nil
	})
}

// id is a node's id: its original one, or its number.
func (p *Predictions) id(v int) string {
	if p.IDs != nil {
		return p.IDs[v]
	}
	return strconv.Itoa(v)
}

// RowIDs returns what says which node or edge a row is: its id, or those of its source and its target. IDNames are their names.
func (p *Predictions) RowIDs(row int) []string {
	if p.Pairs == nil {
		return []string{p.id(row)}
	}
	return []string{p.id(int(p.Pairs.Src[row])), p.id(int(p.Pairs.Dst[row]))}
}

// Answers returns the dataset whose nodes are the rows of the predictions, with the targets and the splits that ds, for which they
// were made, has of them: ds itself for nodes. It returns an error for predictions of given pairs, and if there are no targets.
func (p *Predictions) Answers(ds *gnb.Dataset) (*gnb.Dataset, error) {
	switch {
	case p.Pairs == nil && ds.Targets == nil:
		return nil, fmt.Errorf("numbers: the nodes of %s have no targets to compare predictions with", ds.Name())
	case p.Pairs == nil:
		return ds, nil
	case p.At == nil:
		return nil, errors.New("numbers: predictions of given pairs have no targets to compare them with")
	case ds.EdgeAnswers == nil:
		return nil, fmt.Errorf("numbers: the edges of %s have no targets to compare predictions with", ds.Name())
	}
	of := &gnb.Dataset{Meta: ds.EdgeAnswers.Meta, Splits: map[string][]int32{}}
	err := mapped.Guard(func() error {
		of.Targets = answersAt(ds, p.At)
		for name, rows := range ds.EdgeAnswers.Splits {
			of.Splits[name] = []int32{}
			for _, row := range rows {
				if i, ok := slices.BinarySearch(p.At, ds.EdgeRows[row]); ok {
					of.Splits[name] = append(of.Splits[name], int32(i))
				}
			}
		}
		return nil
	})
	of.Meta.Name, of.Meta.NumNodes = ds.Name(), len(p.At)
	return of, err
}

// IDNames returns the names of the columns of [Predictions.RowIDs]: id, or source and target.
func (p *Predictions) IDNames() []string {
	if p.Pairs == nil {
		return []string{"id"}
	}
	return []string{"source", "target"}
}

// WriteCSV writes a header and a line for each row: its ids and its predictions, each the shortest text that reads back as
// the number. The file appears completely or not at all.
func (p *Predictions) WriteCSV(path string) error {
	err := atomicfile.WriteWith(path, 0o666, func(w io.Writer) error {
		out := csv.NewWriter(w)
		line := append(p.IDNames(), p.Names...)
		if err := out.Write(line); err != nil {
			return err
		}
		for row := range p.Rows.Rows {
			n := copy(line, p.RowIDs(row))
			for c, x := range p.Rows.Row(row) {
				line[n+c] = strconv.FormatFloat(float64(x), 'g', -1, 32)
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
	if err != nil {
		return fmt.Errorf("numbers: writing predictions: %w", err)
	}
	return nil
}

// Columns returns the predictions as columns, for tables.Write: the ids as strings, and float32 numbers.
func (p *Predictions) Columns() (names []string, batches iter.Seq[[]any]) {
	return append(p.IDNames(), p.Names...), func(yield func([]any) bool) {
		const most = 1 << 16
		for lo := 0; lo < p.Rows.Rows; lo += most {
			n := min(most, p.Rows.Rows-lo)
			ids, columns := make([][]string, len(p.IDNames())), make([][]float32, p.Rows.Cols)
			for c := range columns {
				columns[c] = make([]float32, n)
			}
			for i := range n {
				for c, id := range p.RowIDs(lo + i) {
					ids[c] = append(ids[c], id)
				}
				for c, x := range p.Rows.Row(lo + i) {
					columns[c][i] = x
				}
			}
			var batch []any
			for _, column := range ids {
				batch = append(batch, column)
			}
			for _, column := range columns {
				batch = append(batch, column)
			}
			if !yield(batch) {
				return
			}
		}
	}
}
