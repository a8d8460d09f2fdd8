package numbers

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// EdgeOptions are the options for numbers of edges. For numbers of nodes they must not be set.
type EdgeOptions struct {
	// Relation is the relation whose edges have the numbers, in a dataset with types: "user:rates:item", or its name alone. "" means
	// the only one with targets.
	Relation string `json:",omitempty" flag:"relation" help:"<relation> whose edges are predicted, such as user:rates:item"`
	// ReverseRelation is a relation with the same edges in the other direction; "" means those that are named rev_NAME or have the
	// reverse of each edge.
	ReverseRelation string `json:",omitempty" flag:"reverse-relation" help:"<relation> with the reverse edges of --relation"`
	// Dim is the number of columns of an embedding of a node; 0 means Hidden.
	Dim int `json:",omitempty" flag:"dim" help:"columns of an embedding (default --hidden)" least:"1"`
	// AllMessages makes each edge a message always, also those of val and test, and those that a step predicts. Without it, the
	// edges of val and test, their copies and their reverses are no messages, and a step takes the edges that it predicts out of
	// its own. Take it where all edges are known beforehand, as roads are, and only if neither weights nor features of edges tell
	// the number.
	AllMessages bool `json:",omitempty" flag:"all-messages" help:"edges to predict are messages too"`
	// EndsOnly predicts by both ends of an edge alone, without the edge's own features, so that new pairs of nodes can be predicted.
	EndsOnly bool `json:",omitempty" flag:"ends-only" help:"predict without the edges' own features"`
}

// edgeModel is between the name of the model and the rest in the name of a network of edges.
const edgeModel = " for numbers of edges"

// relationOf returns the number of the relation whose edges have the numbers; 0 without types.
func (o *recorded) relationOf(ds *gnb.Dataset) (int, error) {
	s := ds.Schema()
	switch {
	case s == nil && o.Relation != "":
		return 0, fmt.Errorf("numbers: Relation is %q, and %s has no types of edges; leave it out", o.Relation, ds.Name())
	case s == nil && o.ReverseRelation != "":
		return 0, fmt.Errorf("numbers: ReverseRelation is %q, and %s has no types of edges; leave it out", o.ReverseRelation, ds.Name())
	case s == nil:
		return 0, nil
	case o.Relation != "":
		r, err := s.Relation(o.Relation)
		if err != nil {
			return 0, fmt.Errorf("numbers: %w", err)
		}
		return r, nil
	}
	with := map[int]bool{}
	for _, e := range ds.EdgeRows {
		with[int(ds.Graph.EdgeTypes[e])] = true
	}
	found := slices.Sorted(maps.Keys(with))
	if len(found) != 1 {
		var names []string
		for _, r := range found {
			names = append(names, s.Relations[r].String())
		}
		return 0, fmt.Errorf("numbers: the edges of %d relations of %s have numbers to predict, and a run predicts those of one; set Relation (--relation) to one of %s", len(found), ds.Name(), listed(names))
	}
	return found[0], nil
}

// edgeRows returns the edges with numbers as a dataset whose nodes are they, with splits of the edges of the run's relation alone.
func (o *recorded) edgeRows(ds *gnb.Dataset) (rows *gnb.Dataset, err error) {
	err = mapped.Guard(func() error {
		for i, e := range ds.EdgeRows {
			if e < 0 || e >= ds.Edges() || i > 0 && e <= ds.EdgeRows[i-1] {
				return fmt.Errorf("numbers: entry %d of the edges with numbers of %s is %d; the graph has the edges 0 to %d, and they ascend; gnb data check finds what is wrong", i, ds.Name(), e, ds.Edges()-1)
			}
		}
		relation, err := o.relationOf(ds)
		if err != nil {
			return err
		}
		of := *ds.EdgeAnswers
		of.Meta.Name, of.Meta.NumNodes = ds.Name(), len(ds.EdgeRows)
		if ds.Schema() != nil {
			of.Splits = map[string][]int32{}
			for name, ids := range ds.EdgeAnswers.Splits {
				of.Splits[name] = slices.DeleteFunc(slices.Clone(ids), func(row int32) bool {
					return row < 0 || int(row) >= len(ds.EdgeRows) || int(ds.Graph.EdgeTypes[ds.EdgeRows[row]]) != relation
				})
			}
		}
		rows = &of
		return nil
	})
	return rows, err
}

// completeEdges checks the options for edges, and fills in their defaults.
func (o *recorded) completeEdges(ds, rows *gnb.Dataset) error {
	relation, err := o.relationOf(ds)
	switch {
	case err != nil:
		return err
	case o.Dim < 0:
		return errors.New("numbers: Dim cannot be negative")
	case o.Topology == "divided":
		return fmt.Errorf(`numbers: Topology is "divided", and numbers of edges need the whole graph of %s on each machine; leave Topology out`, ds.Name())
	case len(rows.Splits) == 0:
		return fmt.Errorf("numbers: the edges with numbers of %s are not divided into train, val and test; call Dataset.SplitEdges, or convert the data again, which divides them", ds.Name())
	}
	if s := ds.Schema(); s != nil {
		o.Relation = s.Relations[relation].String()
		if name := o.ReverseRelation; name != "" && name != pairs.NoReverse {
			q, err := s.Relation(name)
			if err != nil {
				return fmt.Errorf("numbers: the reverse relation: %w", err)
			}
			o.ReverseRelation = s.Relations[q].String()
		}
	}
	if o.Dim == 0 {
		o.Dim = o.Hidden
	}
	o.EdgeWidth = 0
	if !o.EndsOnly {
		o.EdgeWidth = ds.EdgeFeatureDimOf(relation)
	}
	return nil
}

// edgeHead makes the outputs for an edge u → v of the embeddings of its ends, [h_u, h_v, h_u·h_v], with the edge's own features
// beside them if it takes some.
type edgeHead struct {
	MLP   *nn.Perceptron `nn:"mlp"`
	width int            // of the features
}

func newEdgeHead(o *recorded) *edgeHead {
	h := &edgeHead{MLP: nn.NewPerceptron(3*o.Dim+o.EdgeWidth, o.Hidden, o.Columns(len(o.Options.Targets))), width: o.EdgeWidth}
	h.MLP.Dropout = o.Dropout
	return h
}

// forward returns the outputs [len(src), columns] for edges whose ends are the rows src and dst of embeddings h, and whose features
// are x [len(src), width]. ids say which edges they are.
func (m *edgeHead) forward(f *nn.Fwd, h *nn.Tensor, src, dst []int32, x []float32, ids []int32) *nn.Tensor {
	space := &nn.Space{IDs: ids}
	u, v := f.Gather(h, src), f.Gather(h, dst)
	in := f.Concat(f.Concat(u, v), f.Mul(u, v))
	if m.width > 0 {
		in = f.Concat(in, f.Input(len(src), m.width, x, nil))
	}
	return m.MLP.Forward(f, in.SetSpace(space))
}

// Score implements [links.Decoder] for [links.Model], of a head that takes no features.
func (m *edgeHead) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	return m.forward(f, h, src, dst, nil, src)
}

// edgeNetwork makes the network of a run's options.
func edgeNetwork(w *gnb.Worker, o *recorded) (*gnb.Net[nn.Model], *edgeHead) {
	if o.Embedding > 0 {
		w.WithoutFeatures()
	}
	sizes, head := o.Config(w.Dataset(), o.Dim), newEdgeHead(o)
	return w.NetworkOf(o.Model+edgeModel, sizes, &links.Model{Encoder: w.Build(o.Model, sizes), Decoder: head}), head
}

// edgeList is edges to predict: their ends and, if a head takes them, their features row by row.
type edgeList struct {
	src, dst []int32
	x        []float32
}

// edgesAt returns the edges of a graph at some positions, with features of the given width.
func edgesAt(g *graphops.Graph, at []int64, width int) (l edgeList) {
	l.src, l.dst, _ = g.EdgesAt(at)
	if width > 0 {
		l.x = make([]float32, len(at)*width)
		for i, e := range at {
			g.EdgeFeatures.CopyRow(l.x[i*width:(i+1)*width], e)
		}
	}
	return l
}

// scoreChunk is the number of edges that are predicted together.
const scoreChunk = 4096

// predictEdges calls use with the outputs of this rank's share of a list of edges, by embeddings of all nodes [nodes, cols].
func predictEdges(w *gnb.Worker, head *edgeHead, rows []float32, cols, threads int, l edgeList, use func(i int, out []float32)) error {
	f := nn.NewFwd(nn.Config{})
	lo, hi := sample.Share(len(l.src), w.Rank(), w.World())
	for ; lo < hi; lo += scoreChunk {
		end := min(hi, lo+scoreChunk)
		if err := nn.Try(func() {
			f.Reset(nn.Config{Threads: threads})
			h := f.Input(len(rows)/cols, cols, rows, nil)
			out := head.forward(f, h, l.src[lo:end], l.dst[lo:end], l.x[lo*head.width:end*head.width], l.src[lo:end])
			x, per := out.Data(), out.Cols()
			for i := range end - lo {
				use(lo+i, x[i*per:(i+1)*per])
			}
		}); err != nil {
			return fmt.Errorf("numbers: predicting edges: %w", err)
		}
	}
	return nil
}

// edgeNumbers are the numbers of edges, as rows of a task.
type edgeNumbers struct {
	w     *gnb.Worker
	o     *recorded
	ds    *gnb.Dataset // with the edges of val and test
	l     *links.Loader
	net   *gnb.Net[nn.Model]
	head  *edgeHead
	train []int32 // rows
}

var _ rowNumbers = (*edgeNumbers)(nil)

func startEdges(w *gnb.Worker, o *recorded, rows *gnb.Dataset) (*edgeNumbers, error) {
	t := &edgeNumbers{w: w, o: o, ds: w.Dataset(), train: rows.Splits["train"]}
	split, err := o.edgeSplit(t.ds, rows)
	if err != nil {
		return nil, err
	}
	loader := w.LoaderOf(o.SamplerOptions, o.OptimizerOptions)
	loader.InputHalo = o.BatchDegrees
	if o.AllMessages {
		split.Message, split.Training = t.ds.Graph, t.ds.Graph
		w.Printf("all edges are messages, also those that are predicted")
	} else {
		w.Printf("%d of %d edges are messages in training: those of val and test are not, nor are their copies and reverses, and each step leaves out the edges that it predicts", split.Message.NumEdges(), t.ds.Graph.NumEdges())
	}
	held, known := split.Val.Join(split.Test.Edges), sample.NewEdgeSet(split.Train.Src, split.Train.Dst, true)
	seen := 0
	for i, u := range held.Src {
		if known.Has(u, held.Dst[i]) {
			seen++
		}
	}
	if seen > 0 {
		w.Printf("%d of the %s of val and test are between two nodes that also have a training edge, in this direction or the other", seen, phrase.Count(held.Len(), "edge"))
	}
	t.l = links.NewLoader(w, split, links.LoaderOptions{Loader: loader, NoNegatives: true, KeepEdges: o.AllMessages})
	t.net, t.head = edgeNetwork(w, o)
	return t, nil
}

// edgeSplit returns the split of the edges with numbers, whose message graph a run computes on.
func (o *recorded) edgeSplit(ds, rows *gnb.Dataset) (s *links.Split, err error) {
	err = mapped.Guard(func() error {
		var parts [3][]int64
		for i, name := range []string{"train", "val", "test"} {
			for _, row := range rows.Splits[name] {
				parts[i] = append(parts[i], ds.EdgeRows[row])
			}
		}
		s, err = pairs.At(ds.Graph, parts[0], parts[1], parts[2], pairs.SplitOptions{Relation: o.Relation, Reverse: o.ReverseRelation})
		return err
	})
	return s, err
}

func (t *edgeNumbers) network() gnb.Network { return t.net }

func (t *edgeNumbers) batches() iter.Seq[*gnb.Batch] {
	return func(yield func(*gnb.Batch) bool) {
		for b := range t.l.Batches() {
			b.Value = b
			if !yield(b.Batch) {
				return
			}
		}
	}
}

func (t *edgeNumbers) steps() int {
	return t.w.StepsOf(len(t.train), t.w.LoaderOf(t.o.SamplerOptions, t.o.OptimizerOptions))
}

func (t *edgeNumbers) forward(b *gnb.Batch) (*nn.Tensor, []int32) {
	e := b.Value.(*links.Batch)
	rows, at := make([]int32, len(b.Items)), make([]int64, len(b.Items))
	var x []float32
	if err := mapped.Guard(func() error {
		for i, item := range b.Items {
			rows[i] = t.train[item]
			at[i] = t.ds.EdgeRows[rows[i]]
		}
		x = edgesAt(t.ds.Graph, at, t.head.width).x
		return nil
	}); err != nil {
		t.w.Fail(err)
	}
	h := t.net.Forward(b)
	return t.head.forward(h.Fwd(), h, e.Src, e.Dst, x, rows), rows
}

func (t *edgeNumbers) each(splits [][]int32, use func(split int, row int32, out []float32)) error {
	return t.w.Outputs(t.net, nil, func(rows []float32, cols, threads int) error {
		t.net.Params() // the host's copies of the head's parameters are now those of the network
		for i, ids := range splits {
			at := make([]int64, len(ids))
			for k, row := range ids {
				at[k] = t.ds.EdgeRows[row]
			}
			if err := predictEdges(t.w, t.head, rows, cols, threads, edgesAt(t.ds.Graph, at, t.head.width), func(k int, out []float32) { use(i, ids[k], out) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// positions returns the positions of a dataset's edges that are to be predicted: those with numbers of the run's relation or,
// without any, all of that relation.
func (o *recorded) positions(ds *gnb.Dataset) (at []int64, err error) {
	relation := 0
	if s := ds.Schema(); s != nil {
		if relation, err = s.Relation(o.Relation); err != nil {
			return nil, fmt.Errorf("numbers: %w", err)
		}
	}
	of := func(e int64) bool { return ds.Graph.EdgeTypes == nil || int(ds.Graph.EdgeTypes[e]) == relation }
	err = mapped.Guard(func() error {
		for _, e := range ds.EdgeRows {
			if of(e) {
				at = append(at, e)
			}
		}
		if at != nil {
			return nil
		}
		for e := range ds.Graph.NumEdges() {
			if of(e) {
				at = append(at, e)
			}
		}
		return nil
	})
	return at, err
}

// answersAt returns the targets of the edges at positions, NaN for those that have none.
func answersAt(ds *gnb.Dataset, at []int64) *dataset.Matrix {
	m := &dataset.Matrix{Rows: len(at), Cols: ds.EdgeAnswers.Targets.Cols, F32: make([]float32, 0, len(at)*ds.EdgeAnswers.Targets.Cols)}
	for _, e := range at {
		row, ok := slices.BinarySearch(ds.EdgeRows, e)
		if ok {
			m.F32 = append(m.F32, ds.EdgeAnswers.Targets.Row(row)...)
			continue
		}
		for range m.Cols {
			m.F32 = append(m.F32, float32(math.NaN()))
		}
	}
	return m
}
