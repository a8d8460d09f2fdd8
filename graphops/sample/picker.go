package sample

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// Picker picks in-edges for one node at a time. It sees neither the rest of the batch nor the other
// ranks, and takes its draws from h, so its picks do not depend on them.
//
// Pick appends to out the POSITIONS in nbrs, from 0 to len(nbrs)-1, of the edges that node v takes
// at this hop, and returns the extended slice. The order does not matter: picks are sorted
// afterwards. A repeated position gives a repeated edge (sampling with replacement); a position out
// of range is an error. nbrs are the sources of v's in-edges, ascending and never empty: Pick is
// not called for nodes without in-edges. nbrs is the graph's own memory and must not be written to;
// h, nbrs and out must not be kept. For a seed with a time, nbrs are the sources of the in-edges that it sees, in the order of
// their times instead: see [AsOf].
//
// Several goroutines call Pick concurrently, each with its own h. A panic becomes a [*PickError].
//
// What else a sampler asks of a picker, if its type has the method: Hops() int, the number of hops; Check() error, why no
// sampler can use it; NeedsWeights() bool; and for programs that keep a sampler from one loop to the next, Clone() Picker, a
// copy of the same type that does not change with it, and Same(Picker) bool (see [SamePicker]).
type Picker interface {
	Pick(h *Hop, v int32, nbrs []int32, out []int32) []int32
}

// StepPicker is a [Picker] whose picks for a node also depend on the seeds of the step: on all of them, not on a rank's
// share. Its picks are therefore independent of the number of workers.
//
// A sampler calls ForStep once for each step, with the seeds of all ranks (see [Sampler.ForStep]) and draws of hop 0, and
// picks by the Picker that it returns. last is what an earlier call for this sampler returned, nil at first; it is used no
// more, so its memory can be. Several samplers may call ForStep at the same time, with different last. g is the whole
// graph, and neither it nor seeds may be written to. Pick of the StepPicker itself is not called.
type StepPicker interface {
	Picker
	ForStep(h *Hop, g *graphops.Graph, seeds []int32, last Picker) (Picker, error)
}

// FrontierPicker picks for all destinations of a hop at once. It is for samplers whose choice
// depends on the whole frontier, such as layer-wise importance sampling (D. Zou et al.,
// "Layer-dependent importance sampling for training deep and large graph convolutional networks",
// NeurIPS 2019).
//
// PickFrontier calls pick(i, positions) for each destination dst[i] that takes any edge, at most
// once per i; positions are as in [Picker] and are copied. Only the calling goroutine may call
// pick. dst and g must not be written to.
//
// The result is NOT invariant under the number of workers: each rank sees only the frontier of its
// own share, so digests differ between world sizes, and merging the picks of several ranks finds
// nodes that picked differently.
type FrontierPicker interface {
	PickFrontier(h *Hop, g *graphops.Graph, dst []int32, pick func(i int, positions []int32)) error
}

// Fanouts is the [Picker] of uniform sampling without replacement: at hop h a node takes Fanouts[h]
// of its in-edges, or all of them if it has no more or the fanout is -1; 0 takes none. Fanouts[0]
// is the fanout of the hop next to the seeds (PyG's order; DGL's list reversed).
type Fanouts []int

// Hops is the number of fanouts.
func (f Fanouts) Hops() int { return len(f) }

// Pick implements [Picker] with at most min(fanout, in-degree) draws. Of seeds with times, it picks by the strategy of their
// [AsOf].
func (f Fanouts) Pick(h *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	return h.choose(len(nbrs), f[h.Index], out)
}

// Check returns an error if a sampler cannot use the fanouts: more than [MaxHops] of them, or one
// that is neither -1 nor from 0 to 2^18. All code that accepts fanouts calls it.
func (f Fanouts) Check() error {
	if len(f) > MaxHops {
		return fmt.Errorf("sample: there are fanouts of %d hops, but a batch has at most %d", len(f), MaxHops)
	}
	for i, k := range f {
		if k < -1 || k > philox.MaxDraws {
			return fmt.Errorf("sample: the fanout of hop %d is %d, but a fanout is 0 to %d, or -1 for all in-neighbours", i, k, philox.MaxDraws)
		}
	}
	return nil
}

// PickError is a failure of a picker: it returned an invalid pick, returned an error, or panicked.
type PickError struct {
	// Picker is the picker's type.
	Picker string
	Hop    int
	// Node is the destination being picked for, or -1 if a [FrontierPicker] failed outside any
	// destination.
	Node int32
	// Err is what went wrong.
	Err error
	// Stack is the goroutine's stack if the picker panicked, else nil.
	Stack []byte
}

func (e *PickError) Error() string {
	if e.Node < 0 {
		return fmt.Sprintf("sample: %s at hop %d %v", e.Picker, e.Hop, e.Err)
	}
	return fmt.Sprintf("sample: %s, picking for node %d at hop %d, %v", e.Picker, e.Node, e.Hop, e.Err)
}

// Unwrap is what went wrong.
func (e *PickError) Unwrap() error { return e.Err }
