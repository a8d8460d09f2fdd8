package convert

import (
	"context"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ Reader = metisReader{}

// metisReader reads METIS's .graph files: a header "nodes edges [format [constraints]]", then a
// line for each node with its neighbours, counted from 1, each followed by the edge's weight if the
// format has weights. % begins a comment. The graph is undirected and each edge is in two lines.
//
// Source: G. Karypis, METIS manual 5.1.0, section 4.5.
type metisReader struct{}

func (metisReader) Name() string { return "metis" }

func (metisReader) About() string {
	return "a METIS .graph file: nodes and edges, then the neighbours of each node, counted from 1"
}

func (metisReader) detect(s *source) bool {
	// The header could also be an edge of an edge list, so the file's name decides.
	if s.Dir || !tabular.HasEnding(s.Path, ".graph", ".metis", ".chaco") {
		return false
	}
	line, _ := firstLine(s.Head)
	_, ok := metisHeader(line)
	return ok
}

type metisHead struct {
	nodes, edges                int64
	sizes, weights, edgeWeights bool
	constraints                 int
}

func metisHeader(line []byte) (h metisHead, ok bool) {
	var n [4]int64
	columns := 0
	for ; columns < 4 && len(line) > 0; columns++ {
		var text []byte
		text, line = tabular.Field(line)
		if n[columns], ok = tabular.Whole(text); !ok || n[columns] < 0 {
			return h, false
		}
		if columns == 2 { // three digits, each 0 or 1
			for _, c := range text {
				if c != '0' && c != '1' || len(text) > 3 {
					return h, false
				}
			}
		}
	}
	h = metisHead{nodes: n[0], edges: n[1], edgeWeights: n[2]%10 == 1, weights: n[2]/10%10 == 1, sizes: n[2]/100 == 1}
	if h.weights {
		h.constraints = 1
		if columns == 4 {
			h.constraints = int(min(n[3], 1000))
		}
	}
	return h, columns >= 2 && len(tabular.Trim(line)) == 0
}

func (metisReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	f, err := s.Open("", "")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var (
		h        metisHead
		seen     bool
		node     int64 // of the next line
		src, dst tabular.Pile[int32]
		w        tabular.Pile[float32]
	)
	parse := func(line []byte, number int64) error {
		if len(tabular.Trim(line)) > 0 && tabular.Trim(line)[0] == '%' {
			return nil
		}
		if !seen {
			if len(tabular.Trim(line)) == 0 {
				return nil
			}
			var ok bool
			if h, ok = metisHeader(line); !ok {
				return tabular.AtLine(number, "%s is not the header: nodes, edges and maybe a format of three digits 0 or 1 and the number of node weights", tabular.Shown(line))
			}
			if h.nodes > MaxNodes {
				return tabular.AtLine(number, "the header says %d nodes; node ids are int32, so there can be %d", h.nodes, MaxNodes)
			}
			seen = true
			return nil
		}
		if node >= h.nodes {
			if len(tabular.Trim(line)) == 0 {
				return nil
			}
			return tabular.AtLine(number, "the header says %d nodes, each in a line of its own, but more lines follow", h.nodes)
		}
		skip := h.constraints
		if h.sizes {
			skip++
		}
		for i := 0; len(line) > 0; i++ {
			var text []byte
			if text, line = tabular.Field(line); len(text) == 0 {
				break
			}
			u, ok := tabular.Whole(text)
			switch {
			case i < skip:
				if _, ok := tabular.Decimal(text); !ok {
					return tabular.AtLine(number, "the node's weight %s is not a number", tabular.Shown(text))
				}
			case !ok && (!h.edgeWeights || (i-skip)%2 == 0):
				return tabular.AtLine(number, "%s is not a node", tabular.Shown(text))
			case h.edgeWeights && (i-skip)%2 == 1:
				x, ok := tabular.Float(text)
				if !ok || x != x || x < 0 {
					return tabular.AtLine(number, "the weight %s is not a finite number of at least 0", tabular.Shown(text))
				}
				if (x == 0 || x >= 1<<24) && tabular.LostText(string(text), columns.Point, x) {
					f.Meter().Lose(f.Path, "the weights", string(text), 1)
				}
				w.Add(x)
			case u < 1 || u > h.nodes:
				return tabular.AtLine(number, "node %d has the neighbour %d, but by the header the nodes are 1 to %d", node+1, u, h.nodes)
			default:
				src.Add(int32(u - 1))
				dst.Add(int32(node))
			}
		}
		if h.edgeWeights && w.N != src.N {
			return tabular.AtLine(number, "the last neighbour of node %d has no weight, but by the header every edge has one", node+1)
		}
		node++
		return nil
	}
	// The node of a line depends on all lines before it, so a single thread parses while another
	// reads.
	err = tabular.EachBlock(ctx, f, 1, func(b tabular.Block) (struct{}, error) { return struct{}{}, b.Lines(parse) }, func(struct{}) error { return nil })
	switch {
	case err != nil:
		return nil, err
	case !seen:
		return nil, f.Wrong("it is empty")
	case node < h.nodes:
		return nil, f.Wrong("the header says %d nodes, but there are lines for %d: the file was cut off; fetch it again", h.nodes, node)
	case int64(src.N) != 2*h.edges:
		return nil, f.Wrong("the header says %d edges, so %d neighbours, but there are %d", h.edges, 2*h.edges, src.N)
	}
	e := edges{nodes: int(h.nodes), src: src.Flat(), dst: dst.Flat(), w: w.Flat()}
	o.Undirected = false // the file lists both directions, and weights would be added
	d, err := e.dataset(o)
	if err != nil {
		return nil, err
	}
	if !d.Graph.Symmetric() {
		return nil, f.Wrong("some edge stands in the line of one of its nodes only; a METIS graph is undirected and lists each edge twice")
	}
	o.fromOne(f, h.nodes)
	if h.weights || h.sizes {
		o.said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(f.Path), What: "weights and sizes of nodes are not read", Count: h.nodes})
	}
	d.Meta.Undirected = true
	return d, nil
}
