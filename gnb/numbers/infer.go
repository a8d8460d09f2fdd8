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
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Predictions are the numbers that a network predicts for the nodes of a dataset, in the unit of the targets.
type Predictions struct {
	// Names are those of the columns: of each target, in turn, its name or number; with Quantiles, a column for each of them,
	// such as "price_q0.9".
	Names []string
	// Rows [nodes, Names] are the predictions.
	Rows *dataset.Matrix
	// IDs are the original ids of the nodes if the dataset was made of tables, else nil.
	IDs []string
	InferResult
}

// InferResult says what [Infer] did.
type InferResult struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // to compute the predictions, without the start of the workers
	// Values are measures over all nodes with known targets, such as "all_mae"; nil if the dataset has none.
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
	s := fmt.Sprintf("%s in %.2f s", phrase.Count(r.Nodes, "node"), r.Seconds)
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
// It returns an error for a dataset that does not fit the network, and [gnb.ErrNotFinite] for outputs that are not finite.
// The numbers do not depend on workers.
func Predict(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o gnb.InferOptions) (*Predictions, error) {
	dir, err := os.MkdirTemp("", "gnb-numbers-")
	if err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "numbers.npy")
	p := &Predictions{}
	if p.InferResult, p.Names, err = infer(ctx, run, ds, file, o); err != nil {
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

// Infer is [Predict] into a file: a NumPy array float32 [nodes, columns] if its name ends in .npy, or CSV with a header, the
// ids of the nodes and a column for each of [Predictions].Names if it ends in .csv. The file appears completely or not at all.
func Infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, out string, o gnb.InferOptions) (InferResult, error) {
	switch filepath.Ext(out) {
	case ".npy":
		write, deliver, err := runfile.Output(runfile.Absolute(out), gnb.ErrInterrupted)
		if err != nil {
			return InferResult{}, err
		}
		r, _, err := infer(ctx, run, ds, write, o)
		r.Out = runfile.Absolute(out)
		return r, deliver(ctx, err)
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
}

// infer makes the workers write predictions, and returns the names of the columns.
func infer(ctx context.Context, run *runs.Run, ds *gnb.Dataset, out string, o gnb.InferOptions) (r InferResult, names []string, err error) {
	switch {
	case run == nil || ds == nil:
		return r, nil, errors.New("numbers: predictions need a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	case o.Layer != 0:
		return r, nil, fmt.Errorf("numbers: InferOptions.Layer is %d, and numbers are those of the last layer; leave Layer out, or take gnb.Infer", o.Layer)
	}
	had, err := recordedIn(run)
	if err != nil {
		return r, nil, err
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return r, nil, err
	}
	r.said = &notice.List{}
	if ds, err = feed.AsTrained(ctx, "numbers", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, r.said); err != nil {
		return r, nil, err
	}
	file, info, err := run.WeightsFile(o.Final)
	if err != nil {
		return r, nil, err
	}
	switch c := run.Config; {
	case had.Embedding > 0 && c.Nodes != ds.Nodes():
		return r, nil, fmt.Errorf("numbers: run %s has learned a row for each of the %d nodes of %s, and %s has %d nodes; take the dataset of the run", c.ID, c.Nodes, c.Dataset, ds.Name(), ds.Nodes())
	case had.Embedding == 0 && info != nil && ds.FeatureDim() != info.Config.In:
		return r, nil, fmt.Errorf("numbers: %s has %s a node, and the network of run %s, of %s, takes %d; take the dataset of the run, or one with its features", ds.Name(), phrase.Count(ds.FeatureDim(), "feature"), c.ID, c.Dataset, info.Config.In)
	}
	had.LaunchOptions = gnb.LaunchOptions{}
	scratch, err := gnb.Launch(ctx, inferProgram, inferArgs{had, file, out}, gnb.LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, Seed: run.Config.Seed, Quiet: o.Quiet,
		PlaneOptions: gnb.PlaneOptions{Features: o.Features}, Title: "numbers of all of " + ds.Name(),
	})
	if err != nil {
		return r, nil, err
	}
	r.Nodes, r.Seconds, r.Weights = ds.Nodes(), scratch.Value("seconds"), file
	for name, x := range scratch.Result.Values {
		if strings.HasPrefix(name, "all_") {
			r.Values = append(r.Values, runs.NamedValue{Name: name, Value: x})
		}
	}
	slices.SortFunc(r.Values, func(a, b runs.NamedValue) int { return strings.Compare(a.Name, b.Name) })
	return r, had.ColumnNames(had.Options.Targets), nil
}

// inferProgram computes predictions, which rank 0 writes, and measures them if the dataset has the targets.
var inferProgram = gnb.Program("gnb.numbers.infer", func(w *gnb.Worker, a inferArgs) error {
	ds, net := w.Dataset(), network(w, a.Options)
	w.LoadWeights(net, a.Weights)
	w.Barrier()
	began := time.Now()
	return w.Outputs(net, nil, func(rows []float32, cols, _ int) error {
		if w.Rank() != 0 {
			return nil
		}
		w.Result("seconds", time.Since(began).Seconds())
		if err := a.Options.measureAll(w, rows, cols); err != nil {
			return err
		}
		out := make([]float32, ds.Nodes()*cols)
		for v := range ds.Nodes() {
			a.Options.Undo(out[v*cols:(v+1)*cols], rows[v*cols:(v+1)*cols])
		}
		return dataset.WriteNPY(a.Out, ds.Nodes(), cols, out)
	})
})

// measureAll reports the measures over all nodes, if the dataset has all targets of the run.
func (o *recorded) measureAll(w *gnb.Worker, rows []float32, cols int) error {
	ds := w.Dataset()
	if ds.Targets == nil {
		return nil
	}
	chosen, _, err := choose(ds, o.Options.Targets)
	if err != nil {
		return nil //nolint:nilerr // the dataset has other targets
	}
	return mapped.Guard(func() error {
		all, err := o.NewTally("mae")
		if err != nil {
			return err
		}
		targets := columnsOf(ds.Targets, chosen)
		for v := range ds.Nodes() {
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

// WriteCSV writes a header and a line for each node: its id and its predictions, each the shortest text that reads back as
// the number. The file appears completely or not at all.
func (p *Predictions) WriteCSV(path string) error {
	err := atomicfile.WriteWith(path, 0o666, func(w io.Writer) error {
		out := csv.NewWriter(w)
		line := append([]string{"id"}, p.Names...)
		if err := out.Write(line); err != nil {
			return err
		}
		for v := range p.Rows.Rows {
			line[0] = p.id(v)
			for c, x := range p.Rows.Row(v) {
				line[1+c] = strconv.FormatFloat(float64(x), 'g', -1, 32)
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

// Columns returns the predictions as columns, for tables.Write: id as a string, and float32 numbers.
func (p *Predictions) Columns() (names []string, batches iter.Seq[[]any]) {
	return append([]string{"id"}, p.Names...), func(yield func([]any) bool) {
		const most = 1 << 16
		for lo := 0; lo < p.Rows.Rows; lo += most {
			n := min(most, p.Rows.Rows-lo)
			ids, columns := make([]string, n), make([][]float32, p.Rows.Cols)
			for c := range columns {
				columns[c] = make([]float32, n)
			}
			for i := range n {
				ids[i] = p.id(lo + i)
				for c, x := range p.Rows.Row(lo + i) {
					columns[c][i] = x
				}
			}
			batch := []any{ids}
			for _, column := range columns {
				batch = append(batch, column)
			}
			if !yield(batch) {
				return
			}
		}
	}
}
