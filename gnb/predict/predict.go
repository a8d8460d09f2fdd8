package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
)

// The kinds of errors that a caller can ask for. A neighbourhood that is too large is a [*LimitError], and an output that is
// not finite wraps [gnb.ErrNotFinite].
var (
	// ErrUnknownNode is wrapped by the error for an id that no node has.
	ErrUnknownNode = errors.New("there is no such node")
	// ErrRequest is wrapped by the error for a request that cannot be answered as it is: columns, features, edges.
	ErrRequest = errors.New("the request cannot be answered")
	// ErrClosed is wrapped by the error of a call after Close.
	ErrClosed = errors.New("the predictor is closed")
)

const (
	defaultMaxEdges = 1 << 22
	defaultMaxNew   = 4096
	// passSeeds is the largest number of nodes of one pass. No answer depends on it.
	passSeeds = 256
)

// Options configure [Open]. The zero value takes all neighbours.
type Options struct {
	// Final uses the final weights even if the run has those of a best epoch.
	Final bool
	// Layer is the layer whose output is the answer, counted from 1, as in [gnb.InferOptions]; 0 means the last one.
	Layer int
	// Fanouts are the in-edges that a node takes at most at each hop, from the asked node on: one number for each layer, -1 for all.
	// Nil means all in-edges at every hop.
	Fanouts []int
	// Seed is the key of the draws among more in-edges than Fanouts; 0 is one like any other.
	Seed uint64
	// MaxEdges is the largest number of edges of the neighbourhood of one node, over all hops; 0 means 2^22. It bounds the
	// memory of a call. A node with more is refused with a [*LimitError], and so are new edges to known nodes that have more
	// in-edges together.
	MaxEdges int
	// MaxNew is the largest number of new nodes of one type in a call; 0 means 4096.
	MaxNew int
	// Precompute is a layer, counted from 1, whose rows Open computes for all nodes: a call for known nodes then computes the layers after
	// it alone, with the same bits, and for the last layer nothing. [Predictor.Top] needs the last one. It takes 4 bytes for each
	// node and column, and while Open computes them the same for the layer before. 0 means none. It needs all neighbours (no Fanouts).
	Precompute int
	// Threads is the number of threads of one call; 0 means GOMAXPROCS. A server with many calls at the same time takes 1.
	// No answer depends on it.
	Threads int
	// Quiet prints nothing about features that are matched by their names.
	Quiet bool
}

// LimitError is the refusal of a node whose neighbourhood has more edges than [Options].MaxEdges.
type LimitError struct {
	Node   string // the node that was asked about
	Hub    string // the node of its neighbourhood with the most in-edges
	Degree int    // of the hub
	Limit  int
}

func (e *LimitError) Error() string {
	of := "node " + e.Hub + " of it"
	if e.Hub == e.Node {
		of = "the node itself"
	}
	return fmt.Sprintf("predict: the neighbourhood of node %s has more than %d edges; %s has %d in-edges: take some of the neighbours at each hop (Options.Fanouts, --fanout), or allow more edges (Options.MaxEdges, --max-edges)", e.Node, e.Limit, of, e.Degree)
}

// Kind is what the rows of [Answers] are.
type Kind string

// The kinds of answers.
const (
	Classes    Kind = "classes"    // logits of classes, of which a node has one
	Labels     Kind = "labels"     // logits of labels, of which a node can have several
	Numbers    Kind = "numbers"    // numbers in the unit of the targets
	Embeddings Kind = "embeddings" // of a run that predicts links, or of a hidden layer
	Outputs    Kind = "outputs"    // of a task of the program's own
	Scores     Kind = "scores"     // of pairs of nodes, by a run that predicts links: what [Predictor.PairNeighbourhood] is of
)

// Predictor answers for nodes. It is safe for concurrent use; each call takes working memory of its own, which later calls
// use again.
type Predictor struct {
	run     string
	ds      *dataset.Dataset // with its features in the order and the width of the run's
	in      *dataset.Dataset // as it was given: with the columns of its tables
	source  *source
	o       Options
	weights string
	sizes   nn.ModelConfig
	model   nn.Model // the first layers, as many as are computed
	full    bool     // all neighbours at each hop
	kind    Kind
	cols    int
	columns []string
	numbers *numbers.Options // of a run that predicts numbers
	decoder links.Decoder    // of a run that predicts links
	scored  string           // the relation whose edges it scores

	numbering
	base    *baseRows
	learned *learnedRows // nil if the input are features
	order   [][]int      // by type: the columns of given features in the run's order; nil: the same order
	tables  *tables.Encoder
	said    notice.List
	widths  []int // of the input and of each layer's rows

	adds     sync.Mutex      // one Add at a time, locked before mu
	reversed *graphops.Graph // the dataset's edges by source, made by the first Add that needs them, under adds

	mu     sync.RWMutex // read-locked by calls
	closed bool

	states  sync.RWMutex // of current and of its rows
	current *state

	sparing sync.Mutex
	passes  map[span]*spare
}

// Open loads the weights of a run and prepares answers on a dataset: that of the run, or another one with the same features.
// It uses the weights of the best epoch if the run has them. The caller keeps the dataset open until Close.
//
// It returns an error for a run or a dataset that package predict cannot answer with, in the words of [gnb.Infer].
//
// Cost: reading the weights. Beyond that nothing grows with the graph, with these exceptions: a dataset in a directory that
// was never checked is checked; edges of weight 0 are looked for; types with features of different widths get one width; a graph with
// types takes 4 bytes a node; edges of parts at servers are copied; and Options.Precompute. The original ids of the nodes are read by the first call that needs them.
func Open(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o Options) (*Predictor, error) {
	entry.Enter()
	if run == nil || ds == nil {
		return nil, errors.New("predict: Open needs a run (runs.Last, runs.Open) and a dataset (gnb.Load)")
	}
	p := &Predictor{run: run.Config.ID, in: ds, o: o, passes: map[span]*spare{}}
	if err := p.check(run); err != nil {
		return nil, err
	}
	var err error
	if p.ds, err = feed.AsTrained(ctx, "predict", p.run, run.Config.FeatureNames, ds, o.Quiet, &p.said); err != nil {
		return nil, err
	}
	if p.ds, _, err = p.ds.WithoutZeroWeights(); err != nil {
		return nil, err
	}
	if p.source, err = openSource(p.ds); err != nil {
		return nil, err
	}
	if err = p.open(ctx, run); err != nil {
		return nil, errors.Join(err, p.source.close())
	}
	return p, nil
}

// open prepares answers from p.source.
func (p *Predictor) open(ctx context.Context, run *runs.Run) error {
	if err := p.number(p.ds.Nodes(), p.ds.Schema(), cmp.Or(p.o.MaxNew, defaultMaxNew)); err != nil {
		return err
	}
	p.base = newBaseRows(p)
	if err := p.load(run); err != nil {
		return err
	}
	if err := p.outputs(run); err != nil {
		return err
	}
	p.order = orders(p.in, run.Config.FeatureNames, p.schema)
	var err error
	if p.tables, err = tables.NewEncoder(p.in); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.current = &state{p: p, over: p.plain(), ids: make([]map[string]int, p.types())}
	return p.precompute(ctx)
}

// check returns an error for a run that this package has no answers of, and for options that are out of range.
func (p *Predictor) check(run *runs.Run) error {
	id, o := p.run, &p.o
	switch {
	case graphs.Trained(run):
		return fmt.Errorf("predict: run %s predicts whole graphs, and answers here are of nodes; take graphs.Infer (gnb infer)", id)
	case numbers.TrainedEdges(run):
		return fmt.Errorf("predict: run %s predicts numbers of edges, and answers here are of nodes; take numbers.PredictEdges (gnb infer --pairs)", id)
	case o.Layer < 0:
		return fmt.Errorf("predict: Options.Layer is %d; layers are counted from 1, and 0 means the last one", o.Layer)
	case o.MaxEdges < 0 || o.MaxNew < 0 || o.Threads < 0:
		return fmt.Errorf("predict: Options.MaxEdges is %d, MaxNew %d and Threads %d; they cannot be negative", o.MaxEdges, o.MaxNew, o.Threads)
	case o.MaxNew > 1<<24:
		return fmt.Errorf("predict: Options.MaxNew is %d; at most %d new nodes fit in a call", o.MaxNew, 1<<24)
	}
	o.MaxEdges = cmp.Or(o.MaxEdges, defaultMaxEdges)
	return nil
}

// outputs finds out what the rows of the network are.
func (p *Predictor) outputs(run *runs.Run) (err error) {
	c, layers := run.Config, p.model.NumLayers()
	switch of := p.o.Fanouts; {
	case of == nil:
	case len(of) != layers:
		return fmt.Errorf("predict: Options.Fanouts are %d numbers, and the answers of run %s have %d hops; give one for each", len(of), p.run, layers)
	default:
		if err := sample.Fanouts(of).Check(); err != nil {
			return fmt.Errorf("predict: Options.Fanouts: %w", err)
		}
	}
	p.full = !slices.ContainsFunc(p.o.Fanouts, func(k int) bool { return k >= 0 })
	if err := p.findWidths(); err != nil {
		return err
	}
	switch n := p.o.Precompute; {
	case n < 0 || n > layers:
		return fmt.Errorf("predict: Options.Precompute is layer %d, and the answers of run %s have the layers 1 to %d; 0 means none", n, p.run, layers)
	case n > 0 && !p.full:
		return fmt.Errorf("predict: Options.Precompute is layer %d, and Options.Fanouts draws among neighbours; rows of all nodes are computed with all neighbours, so leave one of the two out", n)
	}
	switch {
	case p.o.Layer > 0 && p.o.Layer < p.sizes.Layers || links.Predicts(run):
		p.kind = Embeddings
	case numbers.Trained(run):
		o, err := numbers.OptionsOf(run)
		if err != nil {
			return err
		}
		p.kind, p.numbers, p.columns = Numbers, &o, o.ColumnNames(o.Targets)
	case c.Program != "gnb.train":
		p.kind = Outputs
	case p.ds.MultiLabels != nil || p.ds.Meta.MultiLabel:
		p.kind = Labels
	default:
		p.kind = Classes
	}
	if p.kind == Classes || p.kind == Labels {
		p.columns = p.classNames(-1)
	}
	if !links.Predicts(run) {
		return nil
	}
	if o, err := links.OptionsOf(run); err == nil {
		p.scored = o.Relation
	}
	return nil
}

// classNames returns the names of the classes of a node type, or of the dataset for -1; numbers if they have none. A network
// with one output has the logit of class 1 of two.
func (p *Predictor) classNames(typ int) []string {
	n := max(p.cols, 1)
	if p.kind == Classes && n == 1 {
		n = 2
	}
	m := &p.ds.Meta
	for _, names := range [][]string{p.namesOfType(typ), m.ClassNames} {
		if len(names) == n {
			return names
		}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	return names
}

func (p *Predictor) namesOfType(typ int) []string {
	if typ < 0 || typ >= len(p.ds.Meta.NodeTypes) {
		return nil
	}
	return p.ds.Meta.NodeTypes[typ].ClassNames
}

// Kind returns what the answers are.
func (p *Predictor) Kind() Kind { return p.kind }

// Columns returns the names of the answers' columns: classes, labels or targets; nil for embeddings and other outputs.
func (p *Predictor) Columns() []string { return slices.Clone(p.columns) }

// Weights returns the file that the weights were read from.
func (p *Predictor) Weights() string { return p.weights }

// Graph returns the name of the dataset, and its numbers of nodes and of edges, without those of [Predictor.Add].
func (p *Predictor) Graph() (name string, nodes int, edges int64) {
	return p.in.Name(), p.ds.Nodes(), p.ds.Edges()
}

// Notices say whether features were matched by their names because the dataset has them in another order.
func (p *Predictor) Notices() notice.List { return slices.Clone(p.said) }

// String says in one line what the predictor answers.
func (p *Predictor) String() string {
	return fmt.Sprintf("%s by run %s on %s, %d hops", p.kind, p.run, p.ds.Name(), p.model.NumLayers())
}

// Close waits for the calls in progress and frees the working memory. Later calls return an error that wraps [ErrClosed]. The dataset
// stays open.
func (p *Predictor) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.sparing.Lock()
	clear(p.passes)
	p.sparing.Unlock()
	p.current.rows = nil
	return p.source.close()
}

// enter begins a call; leave ends it.
func (p *Predictor) enter() (leave func(), err error) {
	p.mu.RLock()
	if p.closed {
		p.mu.RUnlock()
		return nil, fmt.Errorf("predict: %w", ErrClosed)
	}
	return p.mu.RUnlock, nil
}

// bad is an error of kind ErrRequest.
func bad(format string, args ...any) error {
	return kindError{fmt.Errorf("predict: "+format, args...), ErrRequest}
}

// unknown is an error of kind ErrUnknownNode.
func unknown(format string, args ...any) error {
	return kindError{fmt.Errorf("predict: "+format, args...), ErrUnknownNode}
}

// at says where an error of this package comes from, in front of its text.
func at(err error, format string, args ...any) error {
	return fmt.Errorf("predict: "+format+": %w", append(args, inside{err})...)
}

// inside is an error whose text stands inside another one of this package.
type inside struct{ error }

func (e inside) Error() string { return strings.TrimPrefix(e.error.Error(), "predict: ") }

func (e inside) Unwrap() error { return e.error }

// kindError is an error whose text does not repeat its kind.
type kindError struct {
	error
	kind error
}

func (e kindError) Unwrap() []error { return []error{e.error, e.kind} }

// orders returns, by type, the columns of features as they are given in the order of the run's names; nil for the same order.
func orders(ds *dataset.Dataset, want map[string][]string, s *graphops.Schema) [][]int {
	types := []string{""}
	if s != nil {
		types = types[:0]
		for _, t := range s.Nodes {
			types = append(types, t.Name)
		}
	}
	out, have := make([][]int, len(types)), ds.NamedFeatures()
	for t, name := range types {
		if ds.NodeFeatures == nil {
			name = ""
		}
		w, h := want[name], have[name]
		if len(w) == 0 || len(h) == 0 || slices.Equal(w, h) {
			continue
		}
		for _, column := range w {
			out[t] = append(out[t], slices.Index(h, column)) // AsTrained has found all of them
		}
	}
	return out
}

// typed shows a node's type in front of its id.
func typed(typ, id string) string {
	if typ == "" {
		return id
	}
	return typ + ":" + id
}
