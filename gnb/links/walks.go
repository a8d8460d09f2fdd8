package links

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/walk"
)

// WalkOptions configure [NewWalks]. The zero value takes ten uniform walks of 20 steps from each node
// per epoch, 1024 walks per step, and predicts for each node of a walk those up to 5 steps later, with
// one uniform negative each.
type WalkOptions struct {
	// Loader is the loader of the neighbourhoods; its Batch counts walks. Cooperative is refused.
	Loader gnb.Loader
	// Length is the number of steps of a walk; 0 means 20. PerNode is the number of walks from each node
	// in an epoch; 0 means 10.
	Length, PerNode int
	// Window is the largest number of steps between the nodes of a pair; 0 means 5.
	Window int
	// P and Q are node2vec's parameters (see [walk.Options]); 0 means 1, a uniform walk (DeepWalk).
	P, Q float64
	// Negatives configures the negatives. Seed 0 means the run's seed. Unless Strict is set, a negative can
	// be an edge by chance. InBatch is refused.
	Negatives NegativeOptions
}

// Walks makes batches of pairs of nodes that occur together on random walks: what skip-gram models
// (DeepWalk, node2vec) and GraphSAGE without labels learn from. It belongs to the worker's goroutine.
type Walks struct {
	w         *gnb.Worker
	o         WalkOptions
	walker    *walk.Walker
	negatives *pairs.Negatives
	nodes     int
}

// NewWalks returns a loader of walks on the worker's graph: the message graph of a split if
// [NewLoader] was called before, else the dataset's. It ends the rank with an error for options that do
// not fit.
//
// Walks are a function of (seed, epoch, node, number of the walk), and the negatives of (seed, epoch,
// step, pair), so batches do not depend on workers. Walks go from a node to its in-neighbours.
//
// Source: B. Perozzi, R. Al-Rfou, S. Skiena, "DeepWalk", KDD 2014, doi:10.1145/2623330.2623732;
// A. Grover, J. Leskovec, "node2vec", KDD 2016, doi:10.1145/2939672.2939754; W. Hamilton, R. Ying,
// J. Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017, equation 1.
func NewWalks(w *gnb.Worker, o WalkOptions) *Walks {
	l, err := newWalks(w, o)
	if err != nil {
		w.Fail(err)
	}
	return l
}

func newWalks(w *gnb.Worker, o WalkOptions) (*Walks, error) {
	ds := w.Dataset()
	if err := checkGraph(ds); err != nil {
		return nil, err
	}
	o.PerNode, o.Window = cmp.Or(o.PerNode, 10), cmp.Or(o.Window, 5)
	l := &Walks{w: w, o: o, nodes: ds.Nodes()}
	var err error
	if l.walker, err = walk.New(ds.Graph, walk.Options{Length: o.Length, P: o.P, Q: o.Q, Seed: w.Seed(), Threads: 1}); err != nil {
		return nil, err
	}
	switch {
	case o.PerNode < 1 || o.PerNode > walk.MaxPerNode:
		return nil, fmt.Errorf("links: PerNode is %d; a node starts 1 to %d walks in an epoch (0 means 10)", o.PerNode, walk.MaxPerNode)
	case o.Window < 1:
		return nil, fmt.Errorf("links: Window is %d; the nodes of a pair are 1 step apart or more (0 means 5)", o.Window)
	case l.nodes > math.MaxInt32/o.PerNode:
		return nil, fmt.Errorf("links: %d walks from each of %d nodes are more than the 2147483647 that an epoch numbers; take fewer", o.PerNode, l.nodes)
	case o.Negatives.From == InBatch:
		return nil, errors.New("links: walks take no negatives from the batch, because a share would not see those of other workers; take Uniform, ByDegree or ByDegree75")
	}
	n := o.Negatives
	n.Undirected = n.Strict && ds.Graph.Symmetric()
	if n.Seed == 0 {
		n.Seed = w.Seed()
	}
	l.negatives, err = pairs.NewNegatives(ds.Graph, n)
	return l, err
}

// Batches loops over the walks of an epoch in mini-batches, as gnb.Worker.Batches loops over nodes.
// The Edges of a batch are the pairs of its walks, from a node to a later one; pairs of a node with
// itself are left out, and a walk from an isolated node has none.
func (l *Walks) Batches() iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		for b := range l.batches() {
			if !yield(pairsIn(b)) {
				return
			}
		}
	}
}

// items is the number of walks of an epoch.
func (l *Walks) items() int { return l.nodes * l.o.PerNode }

// batches is Batches with the pairs as Value; see pairsIn.
func (l *Walks) batches() iter.Seq[*gnb.Batch] {
	return l.w.BatchesOf(gnb.Items{Name: "walks", Count: l.items(), Of: l.seeds}, l.o.Loader)
}

// seeds implements gnb.Items.Of: the distinct nodes of the pairs of a share and of their negatives.
func (l *Walks) seeds(epoch, step int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	length, window := l.walker.Length(), min(l.o.Window, l.walker.Length())
	if len(items) > math.MaxInt32/length/window {
		return seeds, nil, fmt.Errorf("links: %d walks of %d steps with windows of %d have more than the 2147483647 pairs that a step numbers; take a smaller Batch", len(items), length, window)
	}
	of := Edges{}
	var ids []int32
	nodes := make([]int32, length+1)
	for k := lo; k < hi; k++ {
		start, number := items[k]%int32(l.nodes), int(items[k])/l.nodes
		if err := l.walker.Walk(epoch, start, number, nodes); err != nil {
			return seeds, nil, err
		}
		for i := range length {
			for d := 1; d <= window && i+d <= length && nodes[i+d] >= 0; d++ {
				if nodes[i] != nodes[i+d] {
					of = of.Append(nodes[i], nodes[i+d])
					ids = append(ids, int32((k*length+i)*window+d-1))
				}
			}
		}
	}
	neg, err := l.negatives.Draw(epoch, step, ids, of)
	if err != nil {
		return seeds, nil, err
	}
	b := &Batch{Edges: of, graph: l.w.Dataset().Graph}
	if b.Pairs, b.PerEdge, err = pairs.Grouped(of, neg); err != nil {
		return seeds, nil, err
	}
	b.PerEdge = l.negatives.PerEdge() // also for a share without pairs
	seeds.IDs, b.Src, b.Dst = numbered(b.Pairs)
	return seeds, b, nil
}
