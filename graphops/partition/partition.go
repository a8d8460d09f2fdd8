// Package partition divides the nodes of a graph into parts of about equal size with few edges
// between them, so that a machine or worker that holds one part has most neighbours of its nodes.
package partition

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Methods.
const (
	// Multilevel merges the graph into smaller and smaller graphs by size-constrained label
	// propagation, divides the smallest by recursive bisection, and refines the division on the way
	// back. It cuts the fewest edges. It keeps the smaller graphs and, unless the graph has both
	// directions of each edge, an undirected copy: at most about 20 bytes per edge in all.
	//
	// Sources: H. Meyerhenke, P. Sanders, C. Schulz, "Partitioning complex networks via
	// size-constrained clustering", SEA 2014, arXiv:1402.3281; C. M. Fiduccia, R. M. Mattheyses, "A
	// linear-time heuristic for improving network partitions", DAC 1982, doi:10.1145/800263.809204;
	// G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular
	// graphs", SIAM J. Sci. Comput. 20 (1998), doi:10.1137/S1064827595287997.
	Multilevel = "multilevel"
	// Fennel streams over the nodes once and puts each into the part with most of its
	// in-neighbours, less a penalty for the part's size. It is for graphs much larger than memory:
	// it makes one pass over the graph, checks every part for each node, and needs 4 bytes per
	// node.
	//
	// Source: C. Tsourakakis, C. Gkantsidis, B. Radunovic, M. Vojnovic, "FENNEL: streaming graph
	// partitioning for massive scale graphs", WSDM 2014, doi:10.1145/2556195.2556213.
	Fennel = "fennel"
	// Range gives each part nodes with consecutive ids. It suits graphs whose ids come from a crawl
	// or from time, and two numbers per part describe it.
	Range = "range"
	// Random cuts (parts-1)/parts of the edges. It is the baseline for the other methods.
	Random = "random"
)

// Methods returns the names of the methods, the default first.
func Methods() []string { return []string{Multilevel, Fennel, Range, Random} }

// Options of [Divide]; the zero value is a good default.
type Options struct {
	// Method is one of [Methods]; "" is Multilevel.
	Method string
	// Seed is the random seed; 0 is a seed like any other. The same graph, options and seed give the same parts, on any number
	// of threads.
	Seed uint64
	// Imbalance is the fraction by which a part may be heavier than the mean; 0 means 0.03. A part
	// exceeds it only if a single node is too heavy.
	Imbalance float64
	// Weights are the weights of the nodes [NumNodes], to be balanced; none may be negative. If it
	// is nil, or all weights are 0, every node has weight 1. In-degrees balance edges; 1 for a
	// training node and 0 for others balances training nodes.
	Weights []int32
	// Threads is the number of threads for copying the graph and for counting; 0 means GOMAXPROCS.
	Threads int
	// Progress, if not nil, is called from time to time with the fraction done.
	Progress func(share float64)
}

// Parts is a division of a graph's nodes.
type Parts struct {
	Of     []int32 // the part of each node, [NumNodes]
	Count  int
	Method string
	Seed   uint64
	Stats
}

// Divide divides g's nodes into parts. It returns an error for an invalid option, or the context's
// error within one pass over the graph after it is done.
func Divide(ctx context.Context, g *graphops.Graph, parts int, o Options) (*Parts, error) {
	n := g.NumNodes()
	if parts < 1 || parts > max(n, 1) {
		return nil, fmt.Errorf("partition: %d parts for %d nodes; choose a number from 1 to the number of nodes", parts, n)
	}
	if o.Weights != nil && len(o.Weights) != n {
		return nil, fmt.Errorf("partition: %d weights for %d nodes", len(o.Weights), n)
	}
	for v, w := range o.Weights {
		if w < 0 {
			return nil, fmt.Errorf("partition: node %d has weight %d; weights must not be negative", v, w)
		}
	}
	if o.Imbalance < 0 || o.Imbalance != o.Imbalance {
		return nil, fmt.Errorf("partition: imbalance %v is out of range; it is the fraction by which a part may be heavier than the mean, such as 0.03", o.Imbalance)
	}
	if o.Imbalance == 0 {
		o.Imbalance = 0.03
	}
	if o.Progress == nil {
		o.Progress = func(float64) {}
	}
	o.Threads = parallel.Threads(o.Threads)
	weights := o.Weights
	if allZero(weights) { // balance the number of nodes instead
		o.Weights = nil
	}
	if o.Method == "" {
		o.Method = Multilevel
	}
	p := &Parts{Count: parts, Method: o.Method, Seed: o.Seed}
	var err error
	switch o.Method {
	case Multilevel:
		p.Of, err = multilevel(ctx, g, parts, o)
	case Fennel:
		p.Of, err = fennel(ctx, g, parts, o)
	case Range:
		p.Of = ranges(n, parts, o)
	case Random:
		p.Of = random(n, parts, o)
	default:
		return nil, fmt.Errorf("partition: unknown method %q; choose one of %s", o.Method, strings.Join(Methods(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	p.Stats, err = Measure(ctx, g, p.Of, parts, weights, o.Threads)
	return p, err
}

func allZero(weights []int32) bool {
	for _, w := range weights {
		if w != 0 {
			return false
		}
	}
	return true
}

// weight is node v's.
func (o *Options) weight(v int) int64 {
	if o.Weights == nil {
		return 1
	}
	return int64(o.Weights[v])
}

// limit returns the maximum weight of a part.
func limit(total int64, parts int, imbalance float64) int64 {
	return max(int64((1+imbalance)*float64(total)/float64(parts)), (total+int64(parts)-1)/int64(parts))
}

func (p *Parts) String() string {
	return fmt.Sprintf("%d parts (%s): %d of %d edges cut (%.1f %%), the heaviest part %.1f %% above the mean",
		p.Count, p.Method, p.EdgeCut, p.Edges, 100*p.CutFraction(), 100*(p.Imbalance-1))
}
