package graphs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
)

// ErrUnknownGraph is wrapped by the error for an id that no graph has.
var ErrUnknownGraph = errors.New("there is no such graph")

// OpenOptions configure [Open].
type OpenOptions struct {
	Final   bool // use the final weights even if the run has those of a best epoch
	Threads int  // 0 means GOMAXPROCS
	Quiet   bool // print nothing about features that are matched by their names
}

// Network is the network of a run of [Train] in the calling process, for single graphs: package explain asks it why it answers as it
// does. It is safe for concurrent use; calls compute one after another.
type Network struct {
	run   string
	ds    *gnb.Dataset // with its features in the order of the run's
	given *gnb.Dataset
	of    *gnb.Dataset // the graphs
	a     Answers
	model *Model
	scale bool
	o     OpenOptions

	mu      sync.Mutex
	sampler *sample.Induced

	once  sync.Once // reads the ids
	names []string  // of the graphs, nil without
	nodes []string  // of the nodes, nil without
	err   error
}

// Input is what the network reads to answer for one graph. It belongs to the function that [Network.Graph] calls.
type Input struct {
	ID      string
	Nodes   []int32 // of the dataset, by row of X
	Names   []string
	Blocks  []*graphops.Block // of the layers in their order
	X       []float32         // features of the nodes [nodes, Cols]
	Cols    int
	Space   *tensor.Space // of X
	Own     []float32     // features of the graph; nil if graphs have none
	n       *Network
	members *union
}

// Open loads the weights of a run of [Train] and prepares answers for single graphs of a dataset, which need not be that of the run.
// The caller keeps the dataset open. Errors are those of [Infer].
func Open(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o OpenOptions) (*Network, error) {
	entry.Enter()
	had, err := task.OptionsOf(run)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graphs: %w", err)
	case ds == nil:
		return nil, errors.New("graphs: Open needs a dataset; get one from gnb.Load")
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return nil, err
	}
	n := &Network{run: run.Config.ID, given: ds, a: Answers{o: had}, o: o}
	if n.ds, err = n.a.asTrained(ctx, run, ds, InferOptions{gnb.InferOptions{Quiet: o.Quiet}}); err != nil {
		return nil, err
	}
	if n.ds.Graph == nil {
		return nil, fmt.Errorf("graphs: %s; a network of single graphs needs them in this process", n.ds.WhyNoGraph())
	}
	if n.of, err = graphsOf(n.ds); err != nil {
		return nil, err
	}
	if err := n.load(run); err != nil {
		return nil, err
	}
	n.sampler, err = sample.NewInduced(n.ds.Graph, sample.Config{Hops: n.model.NumLayers(), Threads: o.Threads})
	return n, err
}

// load builds the network and reads its weights.
func (n *Network) load(run *runs.Run) error {
	file, info, err := run.WeightsFile(n.o.Final)
	if err != nil {
		return err
	}
	if run.Result.Model != nil {
		info = run.Result.Model
	}
	if info == nil {
		return fmt.Errorf("graphs: run %s has not recorded its model; it is %s", n.run, run.Result.State)
	}
	sizes, err := info.Config.On(n.ds.Schema())
	if err != nil {
		return fmt.Errorf("graphs: run %s and %s: %w", n.run, n.ds.Name(), err)
	}
	n.scale = sizes.ScaleInput
	if n.model, err = Build(run, sizes); err != nil {
		return fmt.Errorf("graphs: the network of run %s: %w", n.run, err)
	}
	ts, _, err := safetensors.ReadFile(file)
	var params *nn.Params
	if err == nil {
		params, err = nn.Collect(n.model)
	}
	if err == nil {
		err = saving.Load(params, ts)
	}
	if err != nil {
		return fmt.Errorf("graphs: the weights of run %s, %s: %w", n.run, file, err)
	}
	for _, e := range params.List() {
		e.G = nil // explanations take gradients of the input alone
	}
	return nil
}

// Run is the id of the run, and Dataset the dataset as it was given.
func (n *Network) Run() string           { return n.run }
func (n *Network) Dataset() *gnb.Dataset { return n.given } //nolint:revive // described above

// Answers describes the outputs: [Answers] without rows.
func (n *Network) Answers() *Answers { return &n.a }

// Columns are the names of the outputs' columns, FeatureNames those of the columns of X, and OwnNames those of the features of graphs: numbers
// if they have no names.
func (n *Network) Columns() []string {
	a := n.a
	a.Rows = &dataset.Matrix{Cols: n.a.o.Out}
	return a.Columns()
}

// FeatureNames names the columns of [Input].X.
func (n *Network) FeatureNames() []string { return numbered(n.ds.Meta.FeatureNames, n.ds.FeatureDim()) }

// OwnNames names the features of graphs.
func (n *Network) OwnNames() []string { return numbered(n.of.Meta.FeatureNames, n.of.FeatureDim()) }

func numbered(names []string, count int) []string {
	if len(names) == count {
		return names
	}
	names = nil
	for c := range count {
		names = append(names, strconv.Itoa(c))
	}
	return names
}

// Threads is the number of threads of a call, 0 for all.
func (n *Network) Threads() int { return n.o.Threads }

// Number returns the number in the unit of its target that x, in output column k, stands for; x if the outputs are no numbers.
func (n *Network) Number(k int, x float32) float64 {
	if !n.a.Numeric() {
		return float64(x)
	}
	row := slices.Repeat([]float32{x}, n.a.o.Out)
	n.a.o.Undo(row, row)
	return float64(row[k])
}

// read reads the original ids.
func (n *Network) read() error {
	n.once.Do(func() {
		for _, of := range []struct {
			to   *[]string
			read func() ([]string, error)
		}{{&n.names, n.given.GraphIDs}, {&n.nodes, n.given.IDs}} {
			names, err := of.read()
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				n.err = fmt.Errorf("graphs: %w", err)
				return
			}
			*of.to = names
		}
	})
	return n.err
}

// find returns the number of a graph by its id.
func (n *Network) find(id string) (int32, error) {
	if err := n.read(); err != nil {
		return 0, err
	}
	count := n.given.NumGraphs()
	if n.names != nil {
		if g := slices.Index(n.names, id); g >= 0 {
			return int32(g), nil
		}
		return 0, fmt.Errorf("graphs: %q is the id of no graph of %s: %w", id, n.given.Name(), ErrUnknownGraph)
	}
	g, err := strconv.Atoi(id)
	if err != nil || g < 0 || g >= count {
		return 0, fmt.Errorf("graphs: %q is no graph of %s, whose graphs are the numbers 0 to %d: %w", id, n.given.Name(), count-1, ErrUnknownGraph)
	}
	return int32(g), nil
}

// Graph calls use with what the network reads to answer for a graph, by its id in the tables that the dataset was made of, else by its
// number from 0. An unknown id is an error of kind [ErrUnknownGraph].
func (n *Network) Graph(ctx context.Context, id string, use func(in *Input) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := n.find(id)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return mapped.Guard(func() error {
		nodes, u := unionOf(n.ds, []int32{g})
		if len(nodes) == 0 {
			return fmt.Errorf("graphs: graph %s of %s has no nodes", id, n.given.Name())
		}
		b, err := n.sampler.Sample(0, 0, sample.Seeds{IDs: nodes})
		if err != nil {
			return fmt.Errorf("graphs: %w", err)
		}
		defer b.Release()
		cols := n.ds.FeatureDim()
		in := &Input{
			ID: id, Nodes: nodes, Blocks: b.Blocks, X: make([]float32, len(nodes)*cols), Cols: cols, Space: tensor.SrcSpace(b.Blocks[0]),
			Own: gather(n.of, u.graphs), n: n, members: u,
		}
		for i, v := range nodes {
			feed.InputRow(n.ds, v, n.scale, in.X[i*cols:(i+1)*cols])
			name := strconv.Itoa(i)
			if n.nodes != nil {
				name = n.nodes[v]
			}
			in.Names = append(in.Names, name)
		}
		return use(in)
	})
}

// Forward computes the outputs [1, columns] from features x [nodes, Cols] of the nodes and own [1, features] of the graph, nil if graphs
// have none.
func (in *Input) Forward(f *nn.Fwd, x, own *nn.Tensor) (y *nn.Tensor, err error) {
	m := in.n.model
	m.at = in.members
	h, err := nn.TryForward(m, f, in.Blocks, x)
	if err != nil {
		return nil, err
	}
	err = nn.Try(func() { y = m.answer(m.pooledWith(h, in.members, own)) })
	return y, err
}
