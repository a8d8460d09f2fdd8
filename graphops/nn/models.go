package nn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
)

// ModelConfig configures most models. A zero field disables its feature or means the model's
// default. Package gnb calls it gnb.ModelConfig.
type ModelConfig struct {
	In      int     `json:"in"`      // number of features of a node
	Hidden  int     `json:"hidden"`  // number of columns between layers
	Out     int     `json:"out"`     // number of classes
	Layers  int     `json:"layers"`  // number of layers, and of hops of a batch
	Dropout float64 `json:"dropout"` // dropout probability between layers

	// InputDropout is the dropout probability for the first layer's input. Together with Dropout it
	// is dropout before each layer, as Kipf and Veličković use it.
	InputDropout float64 `json:"input_dropout,omitempty"`
	// ScaleInput divides the rows of sparse features by the root mean squares of their elements ([tensor.Fwd.UnitRows]), so
	// that words count alike in long and in short texts. Other features are not changed.
	ScaleInput bool `json:"scale_input,omitempty"`
	// EdgeDim is the number of features of an edge that a GATv2, GINE, GatedGCN or PNA uses, 0 for none. gnb.Train sets it to
	// the dataset's.
	EdgeDim int `json:"edge_dim,omitempty"`
	// EdgeWeights weighs messages by the edges' weights in a SAGE (a weighted mean) and a GIN (a weighted sum). A GCN
	// always does.
	EdgeWeights bool `json:"edge_weights,omitempty"`
	// Schema names the types of a graph for an RGCN or HGT. gnb.Train sets it to the dataset's.
	Schema *graphops.Schema `json:"schema,omitempty"`
	// Bases is the number of bases of each layer of an RGCN; 0 means a matrix for each relation.
	Bases int `json:"bases,omitempty"`
	// Heads is the number of attention heads of the layers of a GAT, GATv2 or HGT (0: 1), OutHeads that of
	// its last layer (0: Heads). Hidden counts the columns of all heads together.
	Heads    int `json:"heads,omitempty"`
	OutHeads int `json:"out_heads,omitempty"`
	// Norm is the normalisation between layers: "", "layer" or "batch".
	Norm string `json:"norm,omitempty"`
	// Residual adds each layer's input to its output.
	Residual bool `json:"residual,omitempty"`
	// Arrangement says how layers, normalisations and the output are put together: "" as PyTorch Geometric's models, or
	// "strong"; see [Between].
	Arrangement string `json:"arrangement,omitempty"`
	// PreLinear puts a linear layer to Hidden columns, with dropout after it, before the first layer.
	PreLinear bool `json:"pre_linear,omitempty"`
	// Activation is the activation between layers: "relu" or "elu"; "" means "elu" for a GAT or GATv2 without Arrangement
	// and "relu" for other models.
	Activation string `json:"activation,omitempty"`
	// JK is the jumping knowledge of the layers, "cat", "max", "lstm" or "sum"; "" means that the last layer makes the
	// output. An HGT has none.
	JK string `json:"jk,omitempty"`
	// FeedForward adds a perceptron after each layer of a GINE, GatedGCN or PNA; see [Plus]. Other models have none.
	FeedForward bool `json:"feed_forward,omitempty"`
	// EdgeStates makes each layer of a GatedGCN read rows of edges that the layer before computed. All layers must then have one
	// block, as batches of whole graphs do. Other models do not read it.
	EdgeStates bool `json:"edge_states,omitempty"`
	// LogDegree is the mean of log(d+1) over the in-degrees d of the training set, by which a PNA scales; 0 means 1. gnb.Train sets
	// it to that of the dataset's nodes, unless the graph is in parts or on servers.
	LogDegree float64 `json:"log_degree,omitempty"`
	// BatchDegrees is the option of [GCNConv].
	BatchDegrees bool `json:"batch_degrees,omitempty"`
	// Embedding says that the input of a network in a worker of package gnb is a learned row of In
	// columns for each node of the dataset, instead of the node's features. Models do not use it.
	Embedding bool `json:"embedding,omitempty"`
	// Learned are the types of nodes whose input is a learned row of In columns, beside features of the other
	// types. Models do not use it.
	Learned []string `json:"learned,omitempty"`
}

// On returns the sizes for another graph with the types and relations of s.Schema, such as the training set with nodes appended:
// its Schema is that of the graph, whose numbers of nodes may differ. Without a Schema it returns s. It returns an error if the
// graph has other types or relations, because the weights are those of s.Schema's.
func (s ModelConfig) On(graph *graphops.Schema) (ModelConfig, error) {
	switch {
	case s.Schema == nil:
		return s, nil
	case graph == nil:
		return s, errors.New("the model has weights for types of nodes and edges, and the graph has no types")
	}
	same := slices.EqualFunc(s.Schema.Nodes, graph.Nodes, func(a, b graphops.NodeType) bool { return a.Name == b.Name })
	if !same || !slices.Equal(s.Schema.Relations, graph.Relations) {
		return s, fmt.Errorf("the model has weights for %s, and the graph has %s; both need the same types and relations in the same order", typesOf(s.Schema), typesOf(graph))
	}
	s.Schema = graph
	return s, nil
}

// typesOf lists the names of a schema.
func typesOf(s *graphops.Schema) string {
	var names []string
	for _, t := range s.Nodes {
		names = append(names, t.Name)
	}
	return fmt.Sprintf("the node types %s and the relations %s", strings.Join(names, ", "), s.RelationNames())
}

func (s ModelConfig) check(op string) {
	switch {
	case s.Layers < 1:
		fail(op, "ModelConfig.Layers is %d; a model needs at least 1 layer", s.Layers)
	case s.In < 1:
		fail(op, "ModelConfig.In is %d; it must be the number of features of a node", s.In)
	case s.Out < 1:
		fail(op, "ModelConfig.Out is %d; it must be the number of classes", s.Out)
	case s.JK != "" && !slices.Contains(Jumps, s.JK):
		fail(op, "ModelConfig.JK is %q; choose cat, max, lstm or sum", s.JK)
	case s.Arrangement != "" && s.Arrangement != Strong:
		fail(op, "ModelConfig.Arrangement is %q; choose strong, or leave it out", s.Arrangement)
	case s.Hidden < 1 && (s.Layers > 1 || s.headed() || s.PreLinear):
		fail(op, "ModelConfig.Hidden is %d; a model of %d layers needs at least 1 hidden column", s.Hidden, s.Layers)
	case !(s.Dropout >= 0 && s.Dropout < 1):
		fail(op, "ModelConfig.Dropout is %v; it must be at least 0 and below 1", s.Dropout)
	case !(s.InputDropout >= 0 && s.InputDropout < 1):
		fail(op, "ModelConfig.InputDropout is %v; it must be at least 0 and below 1", s.InputDropout)
	case s.EdgeDim < 0:
		fail(op, "ModelConfig.EdgeDim is %d; it must be the number of features of an edge, or 0", s.EdgeDim)
	case !(s.LogDegree >= 0 && s.LogDegree < 1e30):
		fail(op, "ModelConfig.LogDegree is %v; it must be the mean of log(d+1) over the degrees d of the training set, or 0", s.LogDegree)
	case s.Heads < 0 || s.OutHeads < 0:
		fail(op, "ModelConfig.Heads is %d and OutHeads %d; they cannot be negative", s.Heads, s.OutHeads)
	case s.Norm != "" && s.Norm != "layer" && s.Norm != "batch":
		fail(op, "ModelConfig.Norm is %q; choose layer or batch", s.Norm)
	case s.Activation != "" && s.Activation != "relu" && s.Activation != "elu":
		fail(op, "ModelConfig.Activation is %q; choose relu or elu", s.Activation)
	}
}

// Stack creates s.Layers layers, In → Hidden → … → Out:
//
//	nn.Stack(s, nn.NewSAGE) // []*nn.SAGEConv
//
// It panics with a [*tensor.Error] for an invalid size.
func Stack[L any](s ModelConfig, layer func(in, out int) L) []L {
	s.check("Stack")
	layers := make([]L, s.Layers)
	in := s.In
	for i := range layers {
		out := s.Hidden
		if i == s.Layers-1 {
			out = s.Out
		}
		layers[i] = layer(in, out)
		in = out
	}
	return layers
}

var (
	_ Model             = (*SAGE)(nil)
	_ Reader            = (*SAGE)(nil)
	_ SourceTransformer = (*SAGE)(nil)
)

// SAGE is GraphSAGE: SAGEConv layers with ReLU and dropout between them. Its parameters have the
// names of torch_geometric.nn.GraphSAGE's state_dict: convs.0.lin_l.weight, convs.0.lin_l.bias,
// convs.0.lin_r.weight, convs.1.…
type SAGE struct {
	Convs []*SAGEConv `nn:"convs"`
	Between
}

// NewSAGEModel returns a SAGE with mean aggregation, weighted with ModelConfig.EdgeWeights.
func NewSAGEModel(s ModelConfig) *SAGE {
	return NewSAGEModelWith(s, SAGEOptions{Weighted: s.EdgeWeights})
}

// NewSAGEModelWith returns a SAGE whose layers have the given options.
func NewSAGEModelWith(s ModelConfig, o SAGEOptions) *SAGE {
	return &SAGE{
		Convs:   Stack(s.Inner(), func(in, out int) *SAGEConv { return NewSAGEWith(in, out, o) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *SAGE) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *SAGE) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *SAGE) SourceChunks(i, nodes int) int {
	if m.Convs[i].narrows(nodes) {
		return 1
	}
	return m.Between.SourceChunks(i, nodes)
}

var (
	_ Model             = (*GCN)(nil)
	_ Reader            = (*GCN)(nil)
	_ SourceTransformer = (*GCN)(nil)
)

// GCN is a stack of GCNConv layers with ReLU and dropout between them. Its parameters have the
// names of torch_geometric.nn.GCN's state_dict: convs.0.bias, convs.0.lin.weight, convs.1.…
type GCN struct {
	Convs []*GCNConv `nn:"convs"`
	Between
}

// NewGCNModel returns a GCN.
func NewGCNModel(s ModelConfig) *GCN {
	o := GCNOptions{BatchDegrees: s.BatchDegrees}
	return &GCN{
		Convs:   Stack(s.Inner(), func(in, out int) *GCNConv { return NewGCNWith(in, out, o) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GCN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GCN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *GCN) SourceChunks(i, nodes int) int {
	if m.Convs[i].transformsFirst(false) {
		return 1
	}
	return m.Between.SourceChunks(i, nodes)
}

var (
	_ Model             = (*GAT)(nil)
	_ Reader            = (*GAT)(nil)
	_ SourceTransformer = (*GAT)(nil)
)

// GAT is a stack of GATConv layers with ELU and dropout between them; all layers also drop
// attention coefficients with the same probability. Hidden layers concatenate Heads heads of
// Hidden/Heads columns; the last layer averages OutHeads heads of Out columns. Its parameters have
// the names of torch_geometric.nn.GAT's state_dict: convs.0.att_src, convs.0.att_dst, convs.0.bias,
// convs.0.lin.weight, convs.1.… In the arrangement "strong" the activation is ReLU, and layers have neither biases nor
// dropout of attention coefficients.
type GAT struct {
	Convs []*GATConv `nn:"convs"`
	Between
}

// attentionHeads returns the numbers of heads of the hidden layers and of the last one.
func (s ModelConfig) attentionHeads(op string) (heads, last int) {
	heads, last = max(s.Heads, 1), s.OutHeads
	if last == 0 {
		last = heads
	}
	if (s.Layers > 1 || s.headed()) && s.Hidden%heads != 0 {
		fail(op, "ModelConfig.Hidden is %d and Heads is %d; Hidden must be a multiple of Heads", s.Hidden, heads)
	}
	return heads, last
}

// NewGATModel returns a GAT. It panics with a [*tensor.Error] if Hidden is not a multiple of Heads.
func NewGATModel(s ModelConfig) *GAT {
	s = s.withELU()
	return &GAT{
		Convs: attentionStack(s, "NewGATModel", func(in, out, heads int, mean bool) *GATConv {
			return NewGATWith(in, out, GATOptions{Heads: heads, Mean: mean, Dropout: s.attentionDropout(), NoBias: s.Arrangement == Strong})
		}),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GAT) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GAT) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// gatChunks bounds the memory that a layer keeps for each edge and head.
const gatChunks = 4

// SourceChunks implements [SourceTransformer].
func (m *GAT) SourceChunks(int, int) int { return gatChunks }

var (
	_ Model  = (*GIN)(nil)
	_ Reader = (*GIN)(nil)
)

// GIN is a stack of GINConv layers with ReLU and dropout between them, each with a [Perceptron] of
// two layers. Its parameters have the names of torch_geometric.nn.GIN's state_dict:
// convs.0.nn.lins.0.weight, convs.0.nn.lins.0.bias, convs.0.nn.lins.1.…, convs.0.eps, convs.1.… As
// there, a normalisation is also applied within the perceptrons (convs.0.nn.norms.0.…).
type GIN struct {
	Convs []*GINConv `nn:"convs"`
	Between
}

// NewGINModel returns a GIN with ε = 0, not trained, and a sum that is weighted with ModelConfig.EdgeWeights.
func NewGINModel(s ModelConfig) *GIN { return NewGINModelWith(s, GINOptions{Weighted: s.EdgeWeights}) }

// NewGINModelWith returns a GIN whose layers have the given options.
func NewGINModelWith(s ModelConfig, o GINOptions) *GIN {
	return &GIN{
		Convs: Stack(s.Inner(), func(in, out int) *GINConv {
			p := NewPerceptron(in, out, out)
			p.Norms = newNorms(s.Norm, 1, out)
			return NewGINWith(p, o)
		}),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *GIN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *GIN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

var (
	_ Model  = (*MLP)(nil)
	_ Reader = (*MLP)(nil)
)

// MLP uses each node's own features only and ignores its neighbours: a baseline that shows how much
// the graph helps. It consists of linear layers with ReLU and dropout between them, named
// lins.0.weight, lins.0.bias, lins.1.…, as in torch_geometric.nn.MLP with norm=None.
type MLP struct {
	Lins []*Linear `nn:"lins"`
	Between
}

// NewMLPModel returns an MLP.
func NewMLPModel(s ModelConfig) *MLP {
	return &MLP{
		Lins:    Stack(s.Inner(), func(in, out int) *Linear { return NewLinear(in, out, true) }),
		Between: NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *MLP) NumLayers() int { return len(m.Lins) }

// Layer implements [Model].
func (m *MLP) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Around(f, i, len(m.Lins), b, h, func(f *Fwd, b *Block, h *Tensor) *Tensor {
		return m.Lins[i].Forward(f, f.Dst(b, h))
	})
}
