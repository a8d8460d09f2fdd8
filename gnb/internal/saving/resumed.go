package saving

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// Resumed is the checkpoint that a run resumes from. The zero value is a run from the start.
type Resumed struct {
	state   *State
	tensors map[string][]float32
}

// There reports whether the run resumed from a checkpoint.
func (r *Resumed) There() bool { return r.state != nil }

// Resume reads the checkpoint in the file path. dir is the directory in which this rank writes
// best weights, "" if it writes none.
func (s *Saver) Resume(path, dir string) (*State, error) {
	st := &State{}
	ts, err := checkpoint.Load(path, st)
	if err != nil {
		return nil, err
	}
	if st.Layout != philox.LayoutVersion {
		return nil, fmt.Errorf("gnb: %s was written with random numbers of layout %d and this version has layout %d; start the run anew (Resume: gnb.Never)", path, st.Layout, philox.LayoutVersion)
	}
	s.Resumed = Resumed{st, map[string][]float32{}}
	for _, t := range ts {
		if !strings.HasPrefix(t.Name, allBest) {
			s.Resumed.tensors[t.Name] = t.F32
		}
	}
	s.Kept.saved, s.total, s.at, s.wrote = st.Kept, st.Position.Total, st.Position, true
	return st, s.Best.resume(st, ts, dir)
}

// Has reports whether the checkpoint has parameters whose names begin with prefix.
func (r *Resumed) Has(prefix string) bool {
	for name := range r.tensors {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Parameters sets the parameters of the network model, whose tensors have names that begin with
// prefix, to the checkpoint's. A network that the run made after the checkpoint keeps its initial
// parameters.
func (r *Resumed) Parameters(model, prefix string, params *nn.Params) error {
	there := 0
	for name := range r.tensors {
		if strings.HasPrefix(name, prefix) {
			there++
		}
	}
	if there == 0 {
		return nil
	}
	for _, p := range params.List() {
		v, ok := r.tensors[prefix+p.Name]
		if !ok || len(v) != len(p.W) {
			return fmt.Errorf("gnb: the checkpoint does not fit model %q: parameter %s has %d values there and %d here; resume with the sizes the run had, or start anew (Resume: gnb.Never)", model, p.Name, len(v), len(p.W))
		}
		if i := simd.NotFinite(v); i >= 0 {
			return fmt.Errorf("gnb: the checkpoint's parameter %s of model %q has %v; start anew (Resume: gnb.Never), with a lower learning rate or ClipNorm", p.Name, model, v[i])
		}
		copy(p.W, v)
	}
	if list := params.List(); there != len(list) {
		return fmt.Errorf("gnb: the checkpoint does not fit model %q: it has %d parameters there and %d here; resume with the layers the run had, or start anew (Resume: gnb.Never)", model, there, len(list))
	}
	return nil
}

// OptimizerTensor returns the name of a tensor of the program's i-th optimiser in a checkpoint.
func OptimizerTensor(i int, name string) string { return fmt.Sprintf("optimizer%d.%s", i, name) }

// Optimizer sets the program's i-th optimiser to the checkpoint's state. start is its initial
// learning rate; changed tells whether the run resumes with changed settings. An optimiser of no weights,
// whose network has learned rows alone, has no state.
func (r *Resumed) Optimizer(i int, o optim.Optimizer, weights int, start float64, changed bool) error {
	if !r.There() || i >= len(r.state.Optim) {
		return nil // made after the checkpoint
	}
	st := r.state.Optim[i]
	if st.Name != o.Name() {
		return fmt.Errorf("gnb: optimiser %d is %s here and %s in the checkpoint; resume with the optimisers the run had, or start anew (Resume: gnb.Never)", i, o.Name(), st.Name)
	}
	state := map[string][]float32{}
	for _, s := range o.State() {
		state[s.Name] = r.tensors[OptimizerTensor(i, s.Name)]
	}
	o.SetLR(st.resumedLR(start, changed))
	if weights == 0 {
		return nil
	}
	return o.SetState(st.Steps, state)
}

// resumedLR returns the learning rate with which the optimiser resumes: the checkpoint's rate if
// its initial rate was start too. Otherwise it is start times the factor by which the program had
// changed the rate with SetLR.
func (st Optimizer) resumedLR(start float64, changed bool) float64 {
	was := float64(st.LR)
	switch {
	case st.Start == nil && changed:
		return start
	case st.Start == nil || float64(*st.Start) == start:
		return was
	}
	if then := float64(*st.Start); then != 0 {
		if lr := start * (was / then); !math.IsNaN(lr) && !math.IsInf(lr, 0) {
			return lr
		}
	}
	return start
}

// EmbeddingTensor returns the name of a tensor of the learned rows of the program's i-th network in a
// checkpoint: "weight", or a part of their optimiser's state.
func EmbeddingTensor(i int, part string) string { return fmt.Sprintf("embedding%d.%s", i, part) }

// Table sets the learned rows of the program's i-th network, and the state of their optimiser, to the checkpoint's. It
// frees the checkpoint's memory of them. A network made after the checkpoint keeps its initial rows. Collective if there
// is a checkpoint.
func (r *Resumed) Table(i int, model string, t *feed.Embeddings) error {
	if !r.There() {
		return nil
	}
	at := slices.IndexFunc(r.state.Embeddings, func(e Embedding) bool { return e.Network == i })
	if at < 0 {
		return nil
	}
	parts := make([][]float32, 3)
	for k, part := range []string{"weight", "exp_avg", "exp_avg_sq"} {
		name := EmbeddingTensor(i, part)
		v, ok := r.tensors[name]
		delete(r.tensors, name)
		if t.Rank() != 0 {
			continue // rank 0 sends them
		}
		if nodes, cols := t.Rows(), t.Cols; !ok || len(v) != nodes*cols {
			return fmt.Errorf("gnb: the checkpoint does not fit model %q: %s of its learned embeddings has %d values there and %d here; resume with the dataset and the columns the run had, or start anew (Resume: gnb.Never)", model, part, len(v), nodes*cols)
		}
		if i := simd.NotFinite(v); i >= 0 {
			return fmt.Errorf("gnb: the checkpoint's %s of the learned embeddings of model %q has %v; start anew (Resume: gnb.Never), with a lower learning rate", part, model, v[i])
		}
		parts[k] = v
	}
	return t.Set(parts, r.state.Embeddings[at].Steps)
}
