package predict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Neighbourhood is what the network reads to answer for one node, or to score a pair of nodes, for those who ask why it answers so
// (package explain). It belongs to the function that [Predictor.Neighbourhood] or [Predictor.PairNeighbourhood] calls, and is gone when
// that returns.
type Neighbourhood struct {
	Run, Dataset string
	ID           string // of the node, or of the source of the pair
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

	// Pair is the scored pair; nil for a node. The row of its source is 0 and that of its target TargetRow, which is 0 for a pair of a
	// node with itself. ReadsAround says that the decoder also reads which in-neighbours both nodes have in common.
	Pair        *Pair
	TargetRow   int
	ReadsAround bool

	p       *Predictor
	types   map[int64]uint16 // of edges, by their positions
	pairs   pairs.Edges
	around  *overlay
	decoder *tables.Decoder
	stored  []float32 // X as features are stored
}

// NeighbourNode is a node of a neighbourhood.
type NeighbourNode struct {
	ID, Type string
	Hop      int // 0 is the node itself, or an end of the pair
	Place    int32
	Number   int32 // of the node in the dataset, -1 for a new one
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
	return p.neighbourhood(ctx, st, id, []int32{int32(p.first[typ] + number)}, true, use)
}

// NumberedNeighbourhood is [Predictor.Neighbourhood] of a node of the dataset by its number, as [Predictor.Numbered] takes it. Nodes have
// no ids, and no ids are read.
func (p *Predictor) NumberedNeighbourhood(ctx context.Context, node int32, use func(n *Neighbourhood) error) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	if node < 0 || int(node) >= p.ds.Nodes() {
		return unknown("node %d: %s has the nodes 0 to %d", node, p.ds.Name(), p.ds.Nodes()-1)
	}
	return p.neighbourhood(ctx, p.state(), strconv.Itoa(int(node)), []int32{p.place(node)}, false, use)
}

// PairNeighbourhood is [Predictor.Neighbourhood] of both nodes of a pair, which a run that predicts links scores. The kind of its
// answer is [Scores].
func (p *Predictor) PairNeighbourhood(ctx context.Context, pair Pair, use func(n *Neighbourhood) error) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	srcType, dstType, _, err := p.scoredEnds()
	if err != nil {
		return err
	}
	st := p.state()
	src, err := st.within(srcType, pair.Source)
	if err != nil {
		return at(err, "the source of the pair")
	}
	dst, err := st.within(dstType, pair.Target)
	if err != nil {
		return at(err, "the target of the pair")
	}
	from, to := int32(p.first[srcType]+src), int32(p.first[dstType]+dst)
	places := []int32{from, to}
	if from == to {
		places = places[:1]
	}
	return p.neighbourhood(ctx, st, pair.Source, places, true, func(n *Neighbourhood) error {
		_, n.ReadsAround = p.decoder.(pairs.GraphDecoder)
		n.Pair, n.TargetRow, n.Kind, n.Columns = &pair, len(places)-1, Scores, []string{"score"}
		n.pairs = pairs.Edges{Src: []int32{from}, Dst: []int32{to}}
		return use(n)
	})
}

// neighbourhood calls use with what the network reads of places, with the ids of nodes if named is true.
func (p *Predictor) neighbourhood(ctx context.Context, st *state, id string, places []int32, named bool, use func(n *Neighbourhood) error) error {
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
		blocks, release, err := s.sample(places)
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
		n, err := s.neighbourhood(id, blocks, named)
		if err != nil {
			return err
		}
		return use(n)
	})
}

// neighbourhood describes the blocks of one node, or of two.
func (s *pass) neighbourhood(id string, blocks []*graphops.Block, named bool) (*Neighbourhood, error) {
	p, ids := s.p, blocks[0].SrcIDs()
	n := &Neighbourhood{
		Run: p.run, Dataset: p.in.Name(), ID: id, Kind: p.kind, Columns: p.columns, Threads: p.o.Threads,
		Model: p.model, Blocks: blocks, Cols: p.inputCols(), Space: tensor.SrcSpace(blocks[0]), Graph: p.ds.Nodes(), p: p, around: s.o,
	}
	if p.tables != nil {
		n.decoder = tables.NewDecoder(p.in, p.tables.Recipe())
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
		name := ""
		if named {
			name = p.shown(s.o, at)
		}
		n.Nodes = append(n.Nodes, NeighbourNode{name, p.typeName(typ), hop, at, s.ids[i]})
	}
	for _, b := range blocks {
		types := b.OwnEdges().Types
		for e, pos := range b.EdgePos() {
			if types != nil {
				n.types[pos] = types[e]
			}
		}
	}
	if n.stored = n.X; p.sizes.ScaleInput {
		n.stored = slices.Clone(n.X)
	}
	if err := s.scale(n.X, n.Cols); err != nil {
		return nil, err
	}
	return n, nil
}

// Forward computes the outputs [1, columns] from features x [nodes, Cols]: those of the node, or the score of the pair.
func (n *Neighbourhood) Forward(f *nn.Fwd, x *nn.Tensor) (*nn.Tensor, error) {
	y, err := nn.TryForward(n.Model, f, n.Blocks, x)
	if err != nil || n.Pair == nil {
		return y, err
	}
	err = nn.Try(func() {
		y = pairs.ScoreIn(n.p.decoder, f, n.around, n.pairs, y, []int32{0}, []int32{int32(n.TargetRow)})
	})
	return y, err
}

// TableColumn is a column of the tables that the dataset was made of.
type TableColumn struct {
	Name   string
	Inputs []int // the columns of X that it became
	column *tables.Column
	at     []int // by feature of the column its column of X, -1 if the run does not read it
}

// TableColumns are the columns of the tables that became the features of a node type, "" without types; nil if the dataset was not made
// of tables, or if the network's input are no features.
func (n *Neighbourhood) TableColumns(typ string) (list []TableColumn) {
	t := n.typeNumber(typ)
	if n.decoder == nil || t < 0 || n.p.learns(t) {
		return nil
	}
	order := n.p.order[t]
	for _, c := range n.decoder.Columns(typ) {
		of := TableColumn{Name: c.Name, column: c}
		for k := c.First; k < c.First+c.Width; k++ {
			at := k
			if order != nil {
				at = slices.Index(order, k)
			}
			if of.at = append(of.at, at); at >= 0 {
				of.Inputs = append(of.Inputs, at)
			}
		}
		list = append(list, of)
	}
	return list
}

// Raw returns the value that the table has for the node of a row of X, as far as its features tell it: see [tables.Column.Decode].
func (n *Neighbourhood) Raw(row int, c TableColumn) (value string, exact bool) {
	x := make([]float32, c.column.First+c.column.Width)
	for k, at := range c.at {
		if at < 0 {
			return "", false
		}
		x[c.column.First+k] = n.stored[row*n.Cols+at]
	}
	half := n.Nodes[row].Number >= 0 && n.p.half(n.Nodes[row].Type)
	return c.column.Decode(x, half)
}

// half reports whether the features of a node type are stored as float16.
func (p *Predictor) half(typ string) bool {
	if f := p.in.NodeFeatures; f != nil && p.schema != nil {
		t := p.schema.NodeType(typ)
		return t >= 0 && t < len(f) && f[t].Dense != nil && f[t].Dense.Half()
	}
	parts := p.in.Meta.Parts
	return p.in.Features != nil && p.in.Features.Half() || parts != nil && parts.FeatureType == "f16"
}

// typeNumber is the number of a node type by its name, -1 if there is none.
func (n *Neighbourhood) typeNumber(typ string) int {
	if n.p.schema == nil {
		return 0
	}
	return n.p.schema.NodeType(typ)
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
		feed.ScaleRow(row, values)
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
	learned := n.p.learns(max(n.typeNumber(typ), 0))
	if own := n.p.ds.NamedFeatures()[typ]; !learned && len(own) > 0 && len(own) <= n.Cols {
		return own
	}
	if all := n.p.ds.Meta.FeatureNames; !learned && len(all) == n.Cols {
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
