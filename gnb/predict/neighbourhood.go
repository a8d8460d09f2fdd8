package predict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Neighbourhood is what the network reads to answer for one node, for those who ask why it answers so (package explain). It belongs to
// the function that [Predictor.Neighbourhood] calls, and is gone when that returns.
type Neighbourhood struct {
	Run, Dataset string
	ID           string // of the node
	Kind         Kind
	Columns      []string // of the outputs
	Threads      int

	Model  nn.Model          // without gradients of its parameters
	Blocks []*graphops.Block // of the layers in their order
	Nodes  []NeighbourNode   // by row of X; the node itself is the first
	X      []float32         // the network's input [nodes, Cols]
	Cols   int
	Space  *tensor.Space // of X
	Graph  int           // the number of nodes of the dataset

	p     *Predictor
	types map[int64]uint16 // of edges, by their positions
}

// NeighbourNode is a node of a neighbourhood.
type NeighbourNode struct {
	ID, Type string
	Hop      int // 0 is the node itself
	Place    int32
}

const (
	// mostInput bounds the dense input of a neighbourhood: 256 MB, of which an explanation has a few.
	mostInput = 1 << 26
	// spareEdges are those of a neighbourhood whose memory is kept for later calls.
	spareEdges = 1 << 16
)

// Neighbourhood calls use with what the network reads to answer for a node of the dataset, by its id as [Predictor.Nodes] takes it: all
// its in-edges or, with Options.Fanouts, those that an answer takes.
//
// An unknown id is an error of kind [ErrUnknownNode], a neighbourhood that is too large a [*LimitError]; otherwise it returns that of
// use. Cost: the neighbourhood, with dense features.
func (p *Predictor) Neighbourhood(ctx context.Context, id string, use func(n *Neighbourhood) error) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	st := p.state()
	typ, number, err := st.find(id)
	if err != nil {
		return err
	}
	place := int32(p.first[typ] + number)
	whole := span{0, p.model.NumLayers()}
	spare := p.spareOf(whole)
	s := spare.get()
	if s == nil {
		s = p.newPass(whole)
	}
	defer func() {
		if s.edges <= spareEdges {
			spare.put(s)
		}
	}()
	s.o, s.ctx = st.over, ctx
	s.rows.Reset(s.o)
	return mapped.Guard(func() error {
		blocks, release, err := s.sample([]int32{place})
		if err != nil {
			if limit := (*LimitError)(nil); errors.As(err, &limit) {
				limit.Node = id
			}
			return err
		}
		defer release()
		if n, cols := len(blocks[0].SrcIDs()), p.inputCols(); n*cols > mostInput {
			return bad("the neighbourhood of node %s has %d nodes of %d features, and at most %d numbers are taken at once for an explanation; bound the neighbours of each hop (Options.Fanouts, --fanout)", id, n, cols, mostInput)
		}
		n, err := s.neighbourhood(id, blocks)
		if err != nil {
			return err
		}
		return use(n)
	})
}

// neighbourhood describes the blocks of one node.
func (s *pass) neighbourhood(id string, blocks []*graphops.Block) (*Neighbourhood, error) {
	p, ids := s.p, blocks[0].SrcIDs()
	n := &Neighbourhood{
		Run: p.run, Dataset: p.in.Name(), ID: id, Kind: p.kind, Columns: p.columns, Threads: p.o.Threads,
		Model: p.model, Blocks: blocks, Cols: p.inputCols(), Space: tensor.SrcSpace(blocks[0]), Graph: p.ds.Nodes(), p: p,
	}
	if (p.kind == Classes || p.kind == Labels) && p.schema != nil {
		typ, _ := p.typeOf(ids[0])
		n.Columns = p.classNames(typ)
	}
	s.find(ids)
	if err := s.gather(ids); err != nil {
		return nil, err
	}
	n.X, n.types = slices.Clone(s.x), map[int64]uint16{}
	hop := 0
	for i, at := range ids {
		for hop < len(blocks) && i >= within(blocks, hop) {
			hop++
		}
		typ, _ := p.typeOf(at)
		n.Nodes = append(n.Nodes, NeighbourNode{p.shown(s.o, at), p.typeName(typ), hop, at})
	}
	for _, b := range blocks {
		types := b.OwnEdges().Types
		for e, pos := range b.EdgePos() {
			if types != nil {
				n.types[pos] = types[e]
			}
		}
	}
	if err := s.scale(n.X, n.Cols); err != nil {
		return nil, err
	}
	return n, nil
}

// scale divides the rows x of the nodes that find has found by the root mean square of their stored elements if the network does that with
// sparse features ([nn.ModelConfig].ScaleInput), which x has as dense ones.
func (s *pass) scale(x []float32, cols int) error {
	p := s.p
	if !p.sizes.ScaleInput || p.learned != nil || !p.source.sparse() {
		return nil
	}
	stored, err := s.sparseRows(s.ids)
	if err != nil {
		return err
	}
	for i, v := range s.ids {
		row := x[i*cols : (i+1)*cols]
		var values []float32
		if v >= 0 {
			_, values = stored(i)
		} else { // a new node stores what is not 0
			for _, x := range row {
				if x != 0 {
					values = append(values, x)
				}
			}
		}
		squares := 0.0
		for _, x := range values {
			squares += float64(x) * float64(x)
		}
		if squares == 0 {
			continue
		}
		by := float32(1 / math.Sqrt(squares/float64(len(values))))
		for c := range row {
			row[c] *= by
		}
	}
	return nil
}

// within returns the number of nodes that are at most hop hops away.
func within(blocks []*graphops.Block, hop int) int {
	if hop == 0 {
		return blocks[len(blocks)-1].NumDst
	}
	return blocks[len(blocks)-hop].NumSrc
}

// FeatureNames names the columns of X for the nodes of a type, "" without types: by numbers if they have no names. Nodes of a type with
// fewer features than others have fewer names; their other columns are 0.
func (n *Neighbourhood) FeatureNames(typ string) (names []string) {
	if own := n.p.ds.NamedFeatures()[typ]; n.p.learned == nil && len(own) > 0 && len(own) <= n.Cols {
		return own
	}
	if all := n.p.ds.Meta.FeatureNames; n.p.learned == nil && len(all) == n.Cols {
		return all
	}
	for c := range n.Cols {
		names = append(names, fmt.Sprint(c))
	}
	return names
}

// Relation names the relation of the edge at a position of the graph, "" without types.
func (n *Neighbourhood) Relation(pos int64) string {
	typ, ok := n.types[pos]
	if s := n.p.schema; ok && s != nil {
		return s.Relations[typ].Name
	}
	return ""
}

// Number returns the number in the unit of its target that x, in output column k, stands for.
func (n *Neighbourhood) Number(k int, x float32) float64 {
	if n.p.numbers == nil {
		return float64(x)
	}
	row := slices.Repeat([]float32{x}, n.p.cols)
	n.p.numbers.Undo(row, row)
	return float64(row[k])
}
