package sample

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/philox"
)

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
// depend on workers or threads. Cost: one draw for each in-edge of a destination, where Fanouts needs one for each edge
// that it picks.
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
	h.draws = resize(h.draws, n)
	l.draw(h, nbrs, h.draws)
	if l.Poisson {
		bound := uint32((uint64(k)<<32 + uint64(n) - 1) / uint64(n))
		for at, r := range h.draws {
			if r < bound {
				out = append(out, int32(at))
			}
		}
		return out
	}
	return h.smallest(k, out)
}

// smallest appends the positions of the k smallest of h.draws, which has more, ascending.
func (h *Hop) smallest(k int, out []int32) []int32 {
	h.tree = resize(h.tree, 2*len(h.draws))
	keys := h.candidates(k, h.tree[:len(h.draws)])
	last := nth(append(h.tree[len(h.draws):len(h.draws)], keys...), k-1)
	for _, key := range keys {
		if key <= last {
			out = append(out, int32(uint32(key)))
		}
	}
	return out
}

// candidates writes to keys, by position, those of h.draws that may be among the k smallest, and at least k: the draw in
// the high half, the position in the low one. Only few of many draws are below a bound that k of them hardly ever miss.
func (h *Hop) candidates(k int, keys []uint64) []uint64 {
	n := len(h.draws)
	if want := k + k/2 + 8; 2*want < n {
		bound, m := uint32(uint64(want)<<32/uint64(n)), 0
		for at, r := range h.draws {
			keys[m] = uint64(r)<<32 | uint64(at)
			if r < bound {
				m++
			}
		}
		if m >= k {
			return keys[:m]
		}
	}
	for at, r := range h.draws {
		keys[at] = uint64(r)<<32 | uint64(at)
	}
	return keys
}

// nth is the element at place k of the sorted keys, which are distinct and change their order. It is Hoare's selection
// with the middle one as pivot, and a plain sort of few keys.
func nth(keys []uint64, k int) uint64 {
	for len(keys) > 12 {
		a, b, c := keys[0], keys[len(keys)/2], keys[len(keys)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		lo, hi := 0, len(keys)-1
		for lo <= hi {
			for keys[lo] < pivot {
				lo++
			}
			for keys[hi] > pivot {
				hi--
			}
			if lo <= hi {
				keys[lo], keys[hi] = keys[hi], keys[lo]
				lo++
				hi--
			}
		}
		switch {
		case k <= hi:
			keys = keys[:hi+1]
		case k >= lo:
			keys, k = keys[lo:], k-lo
		default:
			return keys[k]
		}
	}
	for i, x := range keys {
		for ; i > 0 && keys[i-1] > x; i-- {
			keys[i] = keys[i-1]
		}
		keys[i] = x
	}
	return keys[k]
}

// The multipliers of a source's phase.
const phase0, phase1 = 0x9E3779B1, 0x85EBCA77

// laborWords are what the draws of a hop have in common: the key, the step of the sources whose phase has not passed,
// the counter's last word, the largest x of these sources, and the key of x.
type laborWords [6]uint32

// draw writes r(u) of each source.
func (l Labor) draw(h *Hop, nbrs []int32, out []uint32) {
	kappa := uint64(max(1, l.BatchDependency))
	window, within := uint64(h.step)/kappa, uint64(h.step)%kappa
	c3 := h.c3
	if l.LayerDependency {
		c3 &^= 0xff << 20 // hop 0
	}
	laborDraws(out, nbrs, &laborWords{
		uint32(h.seed), uint32(h.seed >> 32), uint32(window), c3, uint32(((kappa-within)<<32+kappa-1)/kappa - 1), uint32(h.seed),
	})
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

// laborOf is [Labor] with one fanout at every hop.
type laborOf struct {
	labor  Labor
	fanout int
}

func (l laborOf) Pick(h *Hop, _ int32, nbrs, out []int32) []int32 {
	return l.labor.pick(h, l.fanout, nbrs, out)
}
