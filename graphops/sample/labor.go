package sample

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/philox"
)

var _ Picker = Labor{}

// Labor is the [Picker] of layer-neighbour sampling (LABOR-0). Each source u has one random number r(u) at a hop of a
// step, whichever destination asks, and a destination takes the Fanouts[h] sources with the smallest numbers (all if it
// has no more, or the fanout is -1). A node's picks are uniform without replacement, as those of [Fanouts] are, so a
// mean over them has the same expectation and variance for each destination. But destinations with common sources tend
// to pick the same ones, so a batch reaches fewer nodes.
//
// With Poisson, a destination of d sources takes every source with r(u) < Fanouts[h]/d instead: Fanouts[h] of them on
// average. Each source is picked with the same probability, and some destinations take none.
//
// With BatchDependency κ above 1 a number stays the same for κ steps, and consecutive batches reach many of the same
// nodes, whose features a cache or a window of prefetched rows then has. At each step 1/κ of the sources, those of one
// phase, draw new numbers: batches whose steps differ by j share 1-j/κ of their numbers, and are independent from j = κ
// on. 0 and 1 draw all numbers anew at each step. Numbers are always new in each epoch.
//
// With LayerDependency all hops of a step have the same numbers, so that a later hop tends to pick sources that an
// earlier one has reached.
//
// # Definition
//
// r(u) is the first 32-bit draw of u (Philox with the counter of [Hop]) at step ⌊(s+φ)/κ⌋ and hop h, or 0 with
// LayerDependency, divided by 2^32; s is the batch's step in the epoch. The phase φ of u is ⌊x·κ/2^32⌋, where x is u XOR
// the low word of the seed, multiplied by 0x9E3779B1, XOR itself shifted right by 15, and multiplied by 0x85EBCA77, all
// modulo 2^32. Of equal numbers the first position is smaller.
//
// A pick depends on the seed, the epoch, the step, the hop and the destination's in-edges alone, so batches do not
// depend on workers or threads. Cost: a look at each in-edge of a destination, where Fanouts needs one at each edge that
// it picks: one draw, or, if a hop has many more in-edges than a graph of up to 2^23 nodes has nodes, one bit of a table
// that a Sampler makes of all nodes' draws for the hop, 5 bytes for 4 nodes.
//
// Sources: M. F. Balin, Ü. V. Çatalyürek, "Layer-neighbor sampling: defusing neighborhood explosion in GNNs", NeurIPS
// 2023, arXiv:2210.13339: Poisson is section 3.2 with uniform probabilities (LABOR-0), and the fixed number of picks
// (sequential Poisson sampling) is its appendix A.3. M. F. Balin, D. LaSalle, Ü. V. Çatalyürek, "Cooperative
// minibatching in graph neural networks", TMLR 2025, arXiv:2310.12403, section 3.2, has κ; there each number moves a
// little at every step, and here 1/κ of them change at once, which needs half the draws and keeps them uniform.
type Labor struct {
	Fanouts         Fanouts
	BatchDependency int
	LayerDependency bool
	Poisson         bool
}

// laborScratch is working memory.
type laborScratch struct {
	draws  []uint32 // of a node's sources, or of those that may be picked
	some   []uint32 // of draws, those that may be picked
	spots  []int32  // their positions in draws
	few    []int32  // of a node's sources, those that may be picked
	places []int32  // their positions
}

// MaxBatchDependency is the largest Labor.BatchDependency.
const MaxBatchDependency = 1 << 20

// Hops is the number of fanouts.
func (l Labor) Hops() int { return len(l.Fanouts) }

// Check returns an error if a sampler cannot use the picker.
func (l Labor) Check() error {
	if l.BatchDependency < 0 || l.BatchDependency > MaxBatchDependency {
		return fmt.Errorf("sample: BatchDependency is %d, but it is a number of steps, from 0 to %d", l.BatchDependency, MaxBatchDependency)
	}
	return l.Fanouts.Check()
}

// Pick implements [Picker].
func (l Labor) Pick(h *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	return l.pick(h, l.Fanouts[h.Index], nbrs, out)
}

// pick appends the positions of the sources that a destination takes with fanout k, ascending.
func (l Labor) pick(h *Hop, k int, nbrs []int32, out []int32) []int32 {
	n := len(nbrs)
	if k <= 0 || k >= n {
		return h.Uniform(n, k, out)
	}
	if l.Poisson {
		bound := (uint64(k)<<32 + uint64(n) - 1) / uint64(n)
		nbrs, at := h.below(k, nbrs)
		l.draw(h, nbrs)
		for i, r := range h.labor.draws {
			if uint64(r) < bound {
				out = append(out, place(at, int32(i)))
			}
		}
		return out
	}
	if few, at := h.below(likely(k), nbrs); at != nil && len(few) > k {
		l.draw(h, few)
		from := len(out)
		out = h.smallest(k, out)
		for i, p := range out[from:] {
			out[from+i] = at[p]
		}
		return out
	}
	l.draw(h, nbrs)
	return h.smallest(k, out)
}

// place is at[i], or i if at is nil.
func place(at []int32, i int32) int32 {
	if at == nil {
		return i
	}
	return at[i]
}

// likely is a number of draws that are expected to be among the smallest ones, so that k hardly ever are not.
func likely(k int) int { return k + k/2 + 8 }

// smallest appends the positions of the k smallest of h.labor.draws, which has more, ascending.
func (h *Hop) smallest(k int, out []int32) []int32 {
	draws := h.labor.draws
	if want := likely(k); 4*want < len(draws) { // k of them are hardly ever not among those below a bound
		h.labor.some, h.labor.spots = resize(h.labor.some, len(draws)), resize(h.labor.spots, len(draws))
		m, bound := 0, uint64(want)<<32/uint64(len(draws))
		for i, r := range draws {
			h.labor.some[m], h.labor.spots[m] = r, int32(i)
			m += below(r, bound)
		}
		if m > k {
			from := len(out)
			out = h.smallestOf(h.labor.some[:m], k, out)
			for i, p := range out[from:] {
				out[from+i] = h.labor.spots[p]
			}
			return out
		}
	}
	return h.smallestOf(draws, k, out)
}

// below is 1 if r < bound, else 0, without a branch.
func below(r uint32, bound uint64) int { return int((uint64(r) - bound) >> 63) }

// smallestOf appends the positions of the k smallest draws, ascending. It searches for a bound that k draws are below, by
// interpolation, because draws are uniform, and then by bisection.
func (h *Hop) smallestOf(draws []uint32, k int, out []int32) []int32 {
	lo, hi, fewer, more := uint64(0), uint64(1)<<32, 0, len(draws) // how many are below lo and hi
	for try := 0; hi-lo > 1; try++ {
		bound := lo + (hi-lo)/2
		if try < 8 {
			bound = lo + (hi-lo)*uint64(2*(k-fewer)+1)/uint64(2*(more-fewer)+2)
			bound = min(max(bound, lo+1), hi-1)
		}
		n := 0
		for _, r := range draws {
			n += below(r, bound)
		}
		switch {
		case n < k:
			lo, fewer = bound, n
		case n > k:
			hi, more = bound, n
		default:
			return appendBelow(out, draws, bound, n)
		}
	}
	// More than k draws are below hi, and fewer below lo: those between are equal, and the first of them count.
	from := len(out)
	equal := k - fewer
	for i, r := range draws {
		if uint64(r) < lo || uint64(r) == lo && equal > 0 {
			out = append(out, int32(i))
			if uint64(r) == lo {
				equal--
			}
		}
	}
	return out[:from+k]
}

// appendBelow appends the positions of the n draws below a bound.
func appendBelow(out []int32, draws []uint32, bound uint64, n int) []int32 {
	from := len(out)
	out = slices.Grow(out, n+1)[:from+n+1]
	at := out[from:]
	m := 0
	for i, r := range draws {
		at[m] = int32(i)
		m += below(r, bound)
	}
	return out[:from+n]
}

// The multipliers of a source's phase.
const phase0, phase1 = 0x9E3779B1, 0x85EBCA77

// laborWords are what the draws of a hop have in common: the key, the step of the sources whose phase has not passed,
// the counter's last word, the largest x of these sources, and the key of x.
type laborWords [6]uint32

// draw sets h.labor.draws to r(u) of each source.
func (l Labor) draw(h *Hop, nbrs []int32) {
	h.labor.draws = resize(h.labor.draws, len(nbrs))
	w := l.words(h)
	laborDraws(h.labor.draws, nbrs, &w)
}

// words are those of a hop.
func (l Labor) words(h *Hop) laborWords {
	c3 := h.c3
	if l.LayerDependency {
		c3 &^= 0xff << 20 // hop 0
	}
	window, last := l.Window(uint32(h.step))
	return laborWords{uint32(h.seed), uint32(h.seed >> 32), window, c3, last, uint32(h.seed)}
}

// Window returns what a step means for the numbers of sources: those whose x (see the definition above) is
// at most last draw them at step window, and the others at the next one. Samplers on devices use it.
func (l Labor) Window(step uint32) (window, last uint32) {
	kappa := uint64(max(1, l.BatchDependency))
	within := uint64(step) % kappa
	return uint32(uint64(step) / kappa), uint32(((kappa-within)<<32+kappa-1)/kappa - 1)
}

// laborGo computes one draw after the other.
func laborGo(out []uint32, nbrs []int32, w *laborWords) {
	key := uint64(w[1])<<32 | uint64(w[0])
	for i, u := range nbrs {
		step := w[2]
		if w[4] != 1<<32-1 {
			x := (uint32(u) ^ w[5]) * phase0
			x = (x ^ x>>15) * phase1
			if x > w[4] {
				step++
			}
		}
		out[i] = philox.Block(key, [4]uint32{uint32(u), 0, step, w[3]})[0]
	}
}

// laborName is the value of HopRequest.Picker.
func (l Labor) name() string {
	name := LaborPicker + "/" + strconv.Itoa(l.BatchDependency)
	if l.LayerDependency {
		name += "/layers"
	}
	if l.Poisson {
		name += "/poisson"
	}
	return name
}

// laborNamed returns the picker with a name and a fanout for every hop.
func laborNamed(name string, fanout int) (laborOf, bool) {
	words := strings.Split(name, "/")
	if len(words) < 2 {
		return laborOf{}, false
	}
	kappa, err := strconv.Atoi(words[1])
	l := Labor{BatchDependency: kappa}
	for _, w := range words[2:] {
		l.LayerDependency = l.LayerDependency || w == "layers"
		l.Poisson = l.Poisson || w == "poisson"
	}
	return laborOf{l, fanout}, err == nil && l.Check() == nil && l.name() == name
}

var _ Picker = laborOf{}

// laborOf is [Labor] with one fanout at every hop.
type laborOf struct {
	labor  Labor
	fanout int
}

func (l laborOf) Pick(h *Hop, _ int32, nbrs, out []int32) []int32 {
	return l.labor.pick(h, l.fanout, nbrs, out)
}
