package saving

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// EmbeddingWeights is the name of the learned rows in a file of weights.
const EmbeddingWeights = "node_embedding.weight"

// Network is what checkpoints and files of weights hold of a network.
type Network struct {
	Index  int    // its number in the program
	Name   string // of its model
	Params *nn.Params
	Table  *feed.Embeddings // learned rows of nodes; nil if the input are features
}

// Prefix is the prefix of the network's tensor names in a checkpoint.
func (n *Network) Prefix() string { return fmt.Sprintf("model%d.", n.Index) }

// File returns the name of a file of the network's weights, such as "best"; for networks after the first it
// contains the model's name.
func (n *Network) File(kind string) string {
	if n.Index > 0 {
		kind += fmt.Sprintf("-%d-%s", n.Index, n.Name)
	}
	return kind + ".safetensors"
}

// Apart reports whether the network has learned rows of which each machine has some.
func (n *Network) Apart() bool { return n.Table != nil && n.Table.Apart() }

// Tensors returns the network's tensors for a checkpoint: parameters, learned rows and the state of their optimiser.
// They share memory with the network. If each machine has some of the rows, these are left out; see Shares.
func (n *Network) Tensors() []safetensors.Tensor {
	ts := n.parameters(n.Prefix())
	if n.Table == nil || n.Apart() {
		return ts
	}
	ts = append(ts, n.rows(EmbeddingTensor(n.Index, "weight")))
	for _, s := range n.Table.State() {
		ts = append(ts, safetensors.Tensor{Name: EmbeddingTensor(n.Index, s.Name), Shape: ts[len(ts)-1].Shape, F32: s.Data})
	}
	return ts
}

// Shares returns the tensors that Tensors leaves out: at rank 0 with their data, in the memory of earlier ones if there is
// enough. Collective if Apart.
func (n *Network) Shares(memory []safetensors.Tensor) ([]safetensors.Tensor, error) {
	if !n.Apart() {
		return nil, nil
	}
	ts := []safetensors.Tensor{n.rows(EmbeddingTensor(n.Index, "weight"))}
	for _, s := range n.Table.State() {
		ts = append(ts, safetensors.Tensor{Name: EmbeddingTensor(n.Index, s.Name), Shape: ts[0].Shape})
	}
	for i := range ts {
		var old []float32
		if i < len(memory) {
			old = memory[i].F32
		}
		if err := n.gather(&ts[i], i, old); err != nil {
			return nil, err
		}
	}
	return ts, nil
}

// gather makes t the whole of a part of the learned rows, at rank 0. Collective.
func (n *Network) gather(t *safetensors.Tensor, part int, memory []float32) error {
	t.F32 = nil
	if n.Table.Rank() == 0 {
		size := n.Table.Rows() * n.Table.Cols
		t.F32 = slices.Grow(memory[:0], size)[:size]
	}
	return n.Table.Gather(part, t.F32)
}

// Weights returns the content of a file of the network's weights: its parameters and learned rows. They share memory with
// the network, but for learned rows of which each machine has some: rank 0 gets a copy. Collective if Apart.
func (n *Network) Weights() ([]safetensors.Tensor, error) {
	ts := n.parameters("")
	if n.Table == nil {
		return ts, nil
	}
	ts = append(ts, n.rows(EmbeddingWeights))
	if n.Apart() {
		if err := n.gather(&ts[len(ts)-1], 0, nil); err != nil {
			return nil, err
		}
	}
	return ts, nil
}

func (n *Network) parameters(prefix string) []safetensors.Tensor {
	var ts []safetensors.Tensor
	for _, p := range n.Params.List() {
		ts = append(ts, safetensors.Tensor{Name: prefix + p.Name, Shape: p.Shape(), F32: p.W})
	}
	return ts
}

func (n *Network) rows(name string) safetensors.Tensor {
	return safetensors.Tensor{Name: name, Shape: []int{n.Table.Rows(), n.Table.Cols}, F32: n.Table.W}
}

// Load sets the weights from a file's tensors, by the names of PyTorch's state_dict. If one is missing or has another
// shape, nothing changes. Collective, if the network has learned rows.
func (n *Network) Load(ts []safetensors.Tensor) error {
	ts, rows, err := n.split(ts)
	if err != nil {
		return err
	}
	if err := Load(n.Params, ts); err != nil {
		return fmt.Errorf("gnb: model %q: %w", n.Name, err)
	}
	if n.Table == nil {
		return nil
	}
	return n.Table.Set([][]float32{rows}, 0)
}

// Load sets parameters from a file's tensors, by the names of PyTorch's state_dict. If one is missing or has another shape,
// nothing changes.
func Load(p *nn.Params, ts []safetensors.Tensor) error {
	values := make(map[string]nn.Value, len(ts))
	for _, t := range ts {
		values[t.Name] = nn.Value{Shape: t.Shape, Data: t.F32}
	}
	return p.Load(values)
}

// LoadMatching sets the parameters and, if rows is set, the learned rows for which the tensors have the name and the shape. It
// leaves the others and says which they are; of learned rows rank 0 says it, and SetRows sets them.
func (n *Network) LoadMatching(ts []safetensors.Tensor, rows bool) nn.Matching {
	values := map[string]nn.Value{}
	var learned *safetensors.Tensor
	for i, t := range ts {
		if t.Name == EmbeddingWeights {
			learned = &ts[i]
		} else {
			values[t.Name] = nn.Value{Shape: t.Shape, Data: t.F32}
		}
	}
	m := n.Params.LoadMatching(values)
	t := n.Table
	if t == nil {
		if learned != nil {
			m.Unexpected = append(m.Unexpected, EmbeddingWeights)
		}
		return m
	}
	if t.Rank() == 0 {
		switch {
		case learned == nil:
			m.Missing = append(m.Missing, EmbeddingWeights)
		case !slices.Equal(learned.Shape, []int{t.Rows(), t.Cols}):
			m.Misshapen = append(m.Misshapen, fmt.Sprintf("%s (%v there, [%d %d] here)", EmbeddingWeights, learned.Shape, t.Rows(), t.Cols))
		case !rows:
			m.Unexpected = append(m.Unexpected, EmbeddingWeights+" (of another graph)")
		default:
			m.Matched = append(m.Matched, EmbeddingWeights)
		}
	}
	return m
}

// SetRows sets the learned rows to those of a file's tensors at rank 0. Collective.
func (n *Network) SetRows(ts []safetensors.Tensor) error {
	var rows []float32
	for _, t := range ts {
		if t.Name == EmbeddingWeights {
			rows = t.F32
		}
	}
	return n.Table.Set([][]float32{rows}, 0)
}

// split takes the learned rows out of the tensors of a file; rows is nil if the network has none, or rank 0 sends them.
func (n *Network) split(ts []safetensors.Tensor) (others []safetensors.Tensor, rows []float32, err error) {
	at := slices.IndexFunc(ts, func(t safetensors.Tensor) bool { return t.Name == EmbeddingWeights })
	t := n.Table
	switch {
	case at < 0 && (t == nil || t.Rank() != 0):
		return ts, nil, nil
	case t == nil:
		return nil, nil, fmt.Errorf("gnb: model %q: the weights have learned embeddings (%s), and the model's input are features; make it with ModelConfig.Embedding", n.Name, EmbeddingWeights)
	case at < 0:
		return nil, nil, fmt.Errorf("gnb: model %q: the weights have no learned embeddings (%s), which are the model's input; make the model without ModelConfig.Embedding", n.Name, EmbeddingWeights)
	case !slices.Equal(ts[at].Shape, []int{t.Rows(), t.Cols}):
		return nil, nil, fmt.Errorf("gnb: model %q: the weights have learned embeddings of shape %v, and here they are [%d %d]; embeddings fit only the dataset that they were learned on", n.Name, ts[at].Shape, t.Rows(), t.Cols)
	}
	return slices.Delete(slices.Clone(ts), at, at+1), ts[at].F32, nil
}

// Add adds a network to the content of a checkpoint, and its tensors to ts.
func (st *State) Add(n *Network, ts []safetensors.Tensor) []safetensors.Tensor {
	if n.Table != nil {
		st.Embeddings = append(st.Embeddings, Embedding{Network: n.Index, Steps: n.Table.Steps()})
	}
	return append(ts, n.Tensors()...)
}

// AddOptimizer adds the program's next optimiser, whose initial learning rate is start, to the content of a checkpoint, and
// its state to ts.
func (st *State) AddOptimizer(o optim.Optimizer, start float64, ts []safetensors.Tensor) []safetensors.Tensor {
	first := runfile.Number(start)
	for _, s := range o.State() {
		ts = append(ts, safetensors.Tensor{Name: OptimizerTensor(len(st.Optim), s.Name), Shape: []int{len(s.Data)}, F32: s.Data})
	}
	st.Optim = append(st.Optim, Optimizer{Name: o.Name(), Steps: o.Steps(), LR: runfile.Number(o.LR()), Start: &first})
	return ts
}
