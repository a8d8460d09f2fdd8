// Package partition divides the nodes of a graph into parts of about the same
// size with few edges between them, so that machines or workers which hold a part
// each find most neighbours at home.
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
	// Multilevel merges the graph into smaller and smaller ones by size-constrained
	// label propagation, divides the smallest by recursive bisection, and refines on
	// the way back: the fewest cut edges. It keeps an undirected copy of the graph,
	// unless the graph has both directions of each edge, and the smaller ones: about
	// 20 bytes an edge in all at the worst.
	//
	// Sources: H. Meyerhenke, P. Sanders, C. Schulz, "Partitioning complex networks
	// via size-constrained clustering", SEA 2014, arXiv:1402.3281; C. M. Fiduccia,
	// R. M. Mattheyses, "A linear-time heuristic for improving network partitions",
	// DAC 1982, doi:10.1145/800263.809204; G. Karypis, V. Kumar, "A fast and high
	// quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
	// Comput. 20 (1998), doi:10.1137/S1064827595287997.
	Multilevel = "multilevel"
	// Fennel goes over the nodes once and puts each where most of its in-neighbours
	// are, less what the part's size costs: a pass over the graph, a look at every
	// part for each node, and 4 bytes a node, for graphs that are much larger than
	// memory.
	//
	// Source: C. Tsourakakis, C. Gkantsidis, B. Radunovic, M. Vojnovic, "FENNEL:
	// streaming graph partitioning for massive scale graphs", WSDM 2014,
	// doi:10.1145/2556195.2556213.
	Fennel = "fennel"
	// Range gives each part nodes with consecutive ids: good where ids come from a
	// crawl or from time, and nothing but two numbers says where a node is.
	Range = "range"
	// Random cuts (parts-1)/parts of the edges: what the others are compared with.
	Random = "random"
)

// Methods are the methods by name, the default first.
func Methods() []string { return []string{Multilevel, Fennel, Range, Random} }

// Options of [Divide]; the zero value is the good default.
type Options struct {
	// Method is one of [Methods]; "" is Multilevel.
	Method string
	// Seed is what random choices follow from. The same graph, options and seed give
	// the same parts, on any number of threads.
	Seed uint64
	// Imbalance is how much heavier than the mean a part may be; 0 is 0.03. Parts
	// can be heavier than that only where single nodes are.
	Imbalance float64
	// Weights are the nodes' weights [NumNodes], which are balanced, none negative;
	// nil, or none above 0: every node weighs 1. In-degrees balance edges, and 1 for
	// a training node and 0 for others balances training nodes.
	Weights []int32
	// Threads (0: GOMAXPROCS) is for copies of the graph and for counting.
	Threads int
	// Progress, unless nil, is called now and then with the share that is done.
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

// Divide divides g's nodes into parts. The error is an option's, or the
// context's, which ends it within a pass over the graph.
func Divide(ctx context.Context, g *graphops.Graph, parts int, o Options) (*Parts, error) {
	n := g.NumNodes()
	if parts < 1 || parts > max(n, 1) {
		return nil, fmt.Errorf("partition: %d parts of %d nodes; choose from 1 to the number of nodes", parts, n)
	}
	if o.Weights != nil && len(o.Weights) != n {
		return nil, fmt.Errorf("partition: %d weights for %d nodes", len(o.Weights), n)
	}
	for v, w := range o.Weights {
		if w < 0 {
			return nil, fmt.Errorf("partition: node %d weighs %d; weights are not negative", v, w)
		}
	}
	if o.Imbalance < 0 || o.Imbalance != o.Imbalance {
		return nil, fmt.Errorf("partition: an imbalance of %v; it is how much heavier than the mean a part may be, such as 0.03", o.Imbalance)
	}
	if o.Imbalance == 0 {
		o.Imbalance = 0.03
	}
	if o.Progress == nil {
		o.Progress = func(float64) {}
	}
	o.Threads = parallel.Threads(o.Threads)
	weights := o.Weights
	if allZero(weights) { // then the nodes are what can be balanced
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
		return nil, fmt.Errorf("partition: no method %q; there are %s", o.Method, strings.Join(Methods(), ", "))
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

// limit is what a part may weigh.
func limit(total int64, parts int, imbalance float64) int64 {
	return max(int64((1+imbalance)*float64(total)/float64(parts)), (total+int64(parts)-1)/int64(parts))
}

func (p *Parts) String() string {
	return fmt.Sprintf("%d parts (%s): %d of %d edges cut (%.1f %%), the heaviest part %.1f %% above the mean",
		p.Count, p.Method, p.EdgeCut, p.Edges, 100*p.CutFraction(), 100*(p.Imbalance-1))
}
