// Package partition divides the nodes of a graph into parts of about equal size with few edges
// between them, so that a machine or worker that holds one part has most neighbours of its nodes.
package partition

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Methods.
const (
	// Multilevel merges pairs of neighbours, again and again, divides the smallest graph by recursive
	// bisection, and on the way back moves nodes at the borders of the parts. Graphs with hubs are
	// also divided by Fennel's rule from the hubs down, and the better division is refined. It cuts
	// the fewest edges. It keeps the smaller graphs and, unless the graph has both directions of
	// each edge, an undirected copy: at most about 24 bytes per edge in all, 40 if it makes a copy.
	//
	// Sources: G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning
	// irregular graphs", SIAM J. Sci. Comput. 20 (1998), doi:10.1137/S1064827595287997, and
	// "Multilevel algorithms for multi-constraint graph partitioning", SC 1998,
	// doi:10.1109/SC.1998.10018; M. Holtgrewe, P. Sanders, C. Schulz, "Engineering a scalable high
	// quality graph partitioner", IPDPS 2010, arXiv:0910.2004; C. M. Fiduccia, R. M. Mattheyses, "A
	// linear-time heuristic for improving network partitions", DAC 1982,
	// doi:10.1145/800263.809204. Merging by label propagation, of graphs with hubs and in the strong preset: H. Meyerhenke,
	// P. Sanders, C. Schulz, "Partitioning complex networks via size-constrained clustering", SEA
	// 2014, arXiv:1402.3281.
	Multilevel = "multilevel"
	// Fennel streams over the nodes once and puts each into the part with most of its
	// in-neighbours, less a penalty for the part's size. It is for graphs much larger than memory:
	// it makes one pass over the graph, checks every part for each node, and needs 4 bytes per
	// node.
	//
	// Source: C. Tsourakakis, C. Gkantsidis, B. Radunovic, M. Vojnovic, "FENNEL: streaming graph
	// partitioning for massive scale graphs", WSDM 2014, doi:10.1145/2556195.2556213.
	Fennel = "fennel"
	// Stream is Fennel from the hubs down, with three more passes that move nodes by the same rule, and
	// a refinement. Where ranges of ids are within Options.Imbalance and cut fewer edges, it refines
	// these instead, so it then cuts no more edges than Range if the graph has both directions of each
	// edge, once. It reads the graph's rows in place, so a mapped graph may be much larger than memory,
	// and needs about 30 bytes per node. Of a directed graph it counts in-edges alone.
	//
	// Source: J. Nishimura, J. Ugander, "Restreaming graph partitioning: simple versatile algorithms
	// for advanced balancing", KDD 2013, doi:10.1145/2487575.2487696.
	Stream = "stream"
	// Range gives each part nodes with consecutive ids. It suits graphs whose ids come from a crawl
	// or from time, and two numbers per part describe it.
	Range = "range"
	// Random cuts (parts-1)/parts of the edges. It is the baseline for the other methods.
	Random = "random"
	// Metis, Scotch and Kahip run gpmetis, gpart and kaffpa, which must be installed. They are given
	// the graph without directions and weights of edges. Scotch takes no seed, and no program
	// promises to keep to the imbalance.
	Metis, Scotch, Kahip = "metis", "scotch", "kahip"
)

// Methods returns the names of the methods, the default first. The last three run programs, which
// must be installed.
func Methods() []string {
	return []string{Multilevel, Stream, Fennel, Range, Random, Metis, Scotch, Kahip}
}

// Presets of [Multilevel] and [Kahip] (eco and strong).
const (
	// Fast takes about as long as reading the graph a few dozen times.
	Fast = "fast"
	// Strong looks for fewer cut edges for about a minute on two CPU cores: it improves many
	// divisions by local searches and flows, and combines them; on small graphs with hubs it begins
	// with simulated annealing. For graphs of more than a few million edges it takes longer, and is
	// of less use.
	Strong = "strong"
)

// Presets returns the names of the presets, the default first.
func Presets() []string { return []string{Fast, Strong} }

// Options of [Divide]; the zero value is a good default.
type Options struct {
	// Method is one of [Methods]; "" is Multilevel.
	Method string
	// Preset is one of [Presets], for Multilevel and Kahip; "" is Fast.
	Preset string
	// Seed is the random seed; 0 is a seed like any other. The same graph, options and seed give the same parts, on any number
	// of threads.
	Seed uint64
	// Imbalance is the fraction by which a part may be heavier than the mean, rounded up; 0 means
	// 0.03. A part exceeds it only if single nodes are too heavy. Range and Random do not look at it, and
	// Fennel puts a node that fits nowhere into the lightest part.
	Imbalance float64
	// Weights are the weights of the nodes [NumNodes], to be balanced; none may be negative. If it
	// is nil, or all weights are 0, every node has weight 1. In-degrees balance edges; 1 for a
	// training node and 0 for others balances training nodes.
	Weights []int32
	// More holds further weights of the nodes, like Weights, each of which is balanced within
	// Imbalance of its own mean as far as possible. Only Multilevel accepts them.
	More [][]int32
	// Threads is the number of threads for copying the graph and for counting; 0 means GOMAXPROCS.
	Threads int
	// Progress, if not nil, is called from time to time with the fraction done.
	Progress func(share float64)

	effort int64 // of the strong preset, in edges looked at, for tests; 0 means enough
}

// Parts is a division of a graph's nodes.
type Parts struct {
	Of     []int32 // the part of each node, [NumNodes]
	Count  int
	Method string
	Preset string // of Multilevel and Kahip; "" for other methods
	Seed   uint64
	// Imbalances holds the imbalance of Options.Weights and of each of Options.More: the heaviest
	// part's weight divided by the mean.
	Imbalances []float64
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
	for i, w := range o.More {
		if len(w) != n {
			return nil, fmt.Errorf("partition: %d weights for %d nodes in More[%d]", len(w), n, i)
		}
		if v := slices.IndexFunc(w, func(x int32) bool { return x < 0 }); v >= 0 {
			return nil, fmt.Errorf("partition: node %d has weight %d in More[%d]; weights must not be negative", v, w[v], i)
		}
	}
	if len(o.More) > 0 && o.Method != "" && o.Method != Multilevel {
		return nil, fmt.Errorf("partition: method %q balances one quantity; choose one, or the method %s", o.Method, Multilevel)
	}
	if !(o.Imbalance >= 0 && o.Imbalance <= 1e6) {
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
	if o.Preset == "" {
		o.Preset = Fast
	}
	if !slices.Contains(Presets(), o.Preset) {
		return nil, fmt.Errorf("partition: unknown preset %q; choose one of %s", o.Preset, strings.Join(Presets(), ", "))
	}
	if o.Method != Multilevel && o.Method != Kahip {
		o.Preset = ""
	}
	p := &Parts{Count: parts, Method: o.Method, Preset: o.Preset, Seed: o.Seed}
	var err error
	switch o.Method {
	case Multilevel:
		p.Of, err = multilevel(ctx, g, parts, o)
	case Fennel:
		p.Of, err = fennel(ctx, g, parts, o, nil, nil)
	case Stream:
		p.Of, err = restream(ctx, g, parts, o, 4)
	case Range:
		p.Of = ranges(n, parts, o)
	case Random:
		p.Of = random(n, parts, o)
	case Metis, Scotch, Kahip:
		p.Of, err = external(ctx, g, parts, o)
	default:
		return nil, fmt.Errorf("partition: unknown method %q; choose one of %s", o.Method, strings.Join(Methods(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	p.Stats, err = Measure(ctx, g, p.Of, parts, weights, o.Threads)
	p.Imbalances = []float64{p.Imbalance}
	for _, w := range o.More {
		size := make([]int64, parts)
		for v, part := range p.Of {
			size[part] += int64(w[v])
		}
		p.Imbalances = append(p.Imbalances, imbalance(size))
	}
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

// limit returns the maximum weight of a part: the mean, rounded up, and the imbalance above it.
func limit(total int64, parts int, imbalance float64) int64 {
	mean := (total + int64(parts) - 1) / int64(parts)
	return max(mean, int64(min((1+imbalance)*float64(mean), 1<<62)))
}

func (p *Parts) String() string {
	return fmt.Sprintf("%d parts (%s): %d of %d edges cut (%.1f %%), the heaviest part %.1f %% above the mean",
		p.Count, p.Method, p.EdgeCut, p.Edges, 100*p.CutFraction(), 100*(p.Imbalance-1))
}
