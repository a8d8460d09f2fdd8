package sample

import (
	"fmt"

	"github.com/graphnb/graphnb/internal/philox"
)

// Labor is the [Picker] of layer-neighbour sampling with dependent batches. Each source u has one random number at a hop
// of a step, whichever destination asks, and a destination takes the Fanouts[h] sources with the smallest numbers (all if
// it has no more, or the fanout is -1). A node's picks are uniform without replacement, as those of [Fanouts] are, but
// destinations with common sources tend to pick the same ones, so a batch reaches fewer nodes.
//
// With Kappa above 1 the numbers change slowly, so that consecutive batches reach many of the same nodes, whose features
// a cache or a window of prefetched rows then has. At step s, with w = ⌊s/Kappa⌋ and i = s mod Kappa, the number of u is
//
//	(Kappa-i)·r(u, w·Kappa) + i·r(u, (w+1)·Kappa)
//
// where r(u, t) is the first draw of u at step t of the epoch. After Kappa steps all numbers are independent of those
// before. Kappa 0 and 1 draw numbers anew at each step.
//
// A pick depends on the seed, the epoch, the step, the hop and the destination's in-edges alone, so batches do not
// depend on workers or threads. Equal numbers are decided by position. Cost: one or two draws for each in-edge of a
// destination, where Fanouts needs one for each edge that it picks.
//
// Sources: M. F. Balin, Ü. V. Çatalyürek, "Layer-neighbor sampling: defusing neighborhood explosion in GNNs", NeurIPS
// 2023, arXiv:2210.13339, with as many edges per destination as Fanouts (appendix A.3); M. F. Balin, D. LaSalle, Ü. V.
// Çatalyürek, "Cooperative minibatching in graph neural networks", TMLR 2025, arXiv:2310.12403, section 3.2, whose κ
// Kappa is. There the two numbers are normal variates on an arc; here they are uniform on a line, because only the order
// of the numbers decides, and integers have the same order on every machine.
type Labor struct {
	Fanouts Fanouts
	Kappa   int
}

// MaxKappa is the largest Labor.Kappa.
const MaxKappa = 1 << 20

// Hops is the number of fanouts.
func (l Labor) Hops() int { return len(l.Fanouts) }

// Check returns an error if a sampler cannot use the picker.
func (l Labor) Check() error {
	if l.Kappa < 0 || l.Kappa > MaxKappa {
		return fmt.Errorf("sample: Kappa is %d, but it is a number of steps, from 0 to %d", l.Kappa, MaxKappa)
	}
	return l.Fanouts.Check()
}

// Pick implements [Picker].
func (l Labor) Pick(h *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	return h.labor(nbrs, l.Fanouts[h.Index], l.Kappa, out)
}

// labor appends the positions of the k sources with the smallest numbers.
func (h *Hop) labor(nbrs []int32, k, kappa int, out []int32) []int32 {
	if k < 0 || k >= len(nbrs) {
		return h.Uniform(len(nbrs), k, out)
	}
	if k == 0 {
		return out
	}
	kappa = max(1, kappa)
	first, i := h.step-h.step%kappa, uint64(h.step%kappa)
	h.tree = resize(h.tree, len(nbrs))
	keys := h.tree
	for at, u := range nbrs {
		keys[at] = (uint64(kappa) - i) * h.draw(u, first)
		if i > 0 {
			keys[at] += i * h.draw(u, first+kappa)
		}
	}
	// picks is a heap of the positions with the smallest numbers so far, the largest first.
	from := len(out)
	for at := range k {
		out = append(out, int32(at))
	}
	picks := out[from:]
	above := func(a, b int32) bool { return keys[a] > keys[b] || keys[a] == keys[b] && a > b }
	down := func(at int) {
		for {
			child := 2*at + 1
			if child >= k {
				return
			}
			if child+1 < k && above(picks[child+1], picks[child]) {
				child++
			}
			if !above(picks[child], picks[at]) {
				return
			}
			picks[at], picks[child] = picks[child], picks[at]
			at = child
		}
	}
	for at := k/2 - 1; at >= 0; at-- {
		down(at)
	}
	for at := k; at < len(nbrs); at++ {
		if above(picks[0], int32(at)) {
			picks[0] = int32(at)
			down(0)
		}
	}
	return out
}

// draw is the first draw of an id at another step.
func (h *Hop) draw(id int32, step int) uint64 {
	return uint64(philox.Block(h.seed, philox.Counter(int64(id), step, h.c3))[0])
}

// laborOf is [Labor] with one fanout at every hop.
type laborOf struct{ fanout, kappa int }

func (l laborOf) Pick(h *Hop, _ int32, nbrs, out []int32) []int32 {
	return h.labor(nbrs, l.fanout, l.kappa, out)
}
