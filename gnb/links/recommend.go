package links

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Top holds the nodes that are recommended to each of a list of nodes; see [pairs.Top].
type Top = pairs.Top

// TopOptions choose what is recommended; see [pairs.TopOptions].
type TopOptions = pairs.TopOptions

var nan32 = float32(math.NaN())

// combineNodes is the number of nodes whose recommendations the ranks combine at a time.
const combineNodes = 1 << 16

// Score returns the scores of pairs by a network, which the workers divide: embeddings are computed with
// all message edges. Every rank gets all scores. The pairs must be the same on all ranks. Collective.
func (l *Loader) Score(n *Net, e Edges) []float32 {
	scores, err := scorePairs(l.w, n, l.current(), e)
	if err != nil {
		l.w.Fail(err)
	}
	return scores
}

// TopK recommends the best o.K nodes to each of the given nodes, by a network with all message edges; see
// [pairs.TopK]. The workers divide the nodes. Known, unless it is set, has the training edges, and Candidates
// the nodes of the type that the split's relation leads to. The
// result is on rank 0; others get an empty one. Collective.
func (l *Loader) TopK(n *Net, nodes []int32, o TopOptions) Top {
	if o.Known == nil && l.parted != nil {
		var err error
		if o.Known, err = l.parted.destinations(l.split.Training, l.split.Undirected, nodes); err != nil {
			l.w.Fail(err)
		}
	} else if o.Known == nil {
		o.Known = l.knownEdges()
	}
	if of := l.split.Relation; of != nil && o.Candidates == nil {
		o.Candidates = of.Destinations()
	}
	top, err := topNodes(l.w, n, l.current(), nodes, o)
	if err != nil {
		l.w.Fail(err)
	}
	return top
}

// current returns the messages of training.
func (l *Loader) current() messages {
	m := messages{graph: l.split.Message, parted: l.parted}
	if l.parted != nil {
		m.in = l.parted.in
	}
	return m
}

// checkPairs returns an error for pairs between nodes that the dataset does not have.
func checkPairs(e Edges, ds *gnb.Dataset) error {
	if len(e.Src) != len(e.Dst) {
		return fmt.Errorf("links: the pairs have %d sources and %d destinations; give equally many", len(e.Src), len(e.Dst))
	}
	for i, u := range e.Src {
		if v := e.Dst[i]; uint32(u) >= uint32(ds.Nodes()) || uint32(v) >= uint32(ds.Nodes()) {
			return fmt.Errorf("links: pair %d is %d → %d, but %s has the nodes 0 to %d", i, u, v, ds.Name(), ds.Nodes()-1)
		}
	}
	return nil
}

// scorePairs scores pairs, which the ranks divide, by embeddings that are computed on the worker's graph. Collective.
func scorePairs(w *gnb.Worker, n *Net, on messages, e Edges) ([]float32, error) {
	if err := checkPairs(e, w.Dataset()); err != nil {
		return nil, err
	}
	var share []float64
	err := w.Outputs(n.Net, nil, func(rows []float32, cols, threads int) (err error) {
		n.Params() // the host's copies of the decoder's parameters are now those of the network
		share, err = scoreShare(w, n.Decoder, on, rows, cols, threads, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return whole(w, share), nil
}

// topNodes recommends to nodes, which the ranks divide, by embeddings that are computed on the worker's graph. The result is
// on rank 0. Collective.
func topNodes(w *gnb.Worker, n *Net, on messages, nodes []int32, o TopOptions) (Top, error) {
	switch {
	case n.Decoder == nil:
		return Top{}, errors.New("links: recommending needs a network with a decoder")
	case on.parted != nil && readsGraph(n.Decoder):
		return Top{}, errGraphTop(decoderName(n.Decoder))
	}
	lo, hi := sample.Share(len(nodes), w.Rank(), w.World())
	var mine Top
	err := w.Outputs(n.Net, nil, func(rows []float32, cols, threads int) (err error) {
		n.Params()
		if o.Threads == 0 {
			o.Threads = threads
		}
		o.Graph = on.graph
		mine, err = pairs.TopK(n.Decoder, rows, cols, nodes[lo:hi], o)
		return err
	})
	if err != nil {
		return Top{}, err
	}
	return combine(w, mine, len(nodes), lo), nil
}

// combine returns the recommendations of all ranks on rank 0; mine are those of the nodes from lo on.
// Collective.
func combine(w *gnb.Worker, mine Top, nodes, lo int) Top {
	k, hi := mine.K, lo+len(mine.IDs)/mine.K
	all := Top{K: k}
	for at := 0; at < nodes; at += combineNodes {
		end := min(at+combineNodes, nodes)
		values := make([]float64, 2*k*(end-at)) // ids from 1, and scores; 0 on other ranks
		ids, scores := values[:k*(end-at)], values[k*(end-at):]
		for i := k * max(at, lo); i < k*min(end, hi); i++ {
			if id := mine.IDs[i-k*lo]; id >= 0 {
				ids[i-k*at], scores[i-k*at] = float64(id)+1, float64(mine.Scores[i-k*lo])
			}
		}
		w.AllReduce(values)
		if w.Rank() != 0 {
			continue
		}
		for i, id := range ids {
			all.IDs = append(all.IDs, int32(id)-1)
			all.Scores = append(all.Scores, float32(scores[i]))
			if id == 0 {
				all.Scores[len(all.Scores)-1] = nan32
			}
		}
	}
	return all
}
