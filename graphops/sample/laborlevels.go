package sample

import (
	"math"
	"math/bits"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// levels are sets of the sources with small numbers at a hop: bit u of set j is 1 if r(u) < 2^-(j+2). A node with many
// in-edges then needs the draws of few sources, those in the set of the smallest level that has enough of them. The sets
// of all nodes are worth their time if a hop has many more in-edges than the graph has nodes. They take 5 bytes for 4 nodes.
type levels struct {
	words laborWords // of the draws
	sets  []uint64   // of nodes/64 words, rounded up; one set after the other
}

// The largest number of sets. A node of 2^maxLevels times the picks that it takes, or more, has its draws from the last one.
const maxLevels = 10

// firstLevel is the level of the first set: in smaller ones most sources would have to be drawn anyway.
const firstLevel = 2

// setLevels computes the levels of a hop if the picker is a [Labor] that saves time by them.
func (s *Sampler) setLevels() {
	x := &s.x
	l, ok := s.c.Picker.(Labor)
	if !ok || s.c.Disjoint || s.nodes > graphops.DirectLimit || !s.worthLevels(l.Fanouts[x.h.Index]) {
		return
	}
	if w := l.words(&x.h); w != s.levels.words || s.levels.sets == nil {
		s.levels.fill(s.nodes, w, s.c.Threads)
	}
	x.h.levels = &s.levels
}

// worthLevels reports whether the in-edges of the hop's destinations that take few of them are so many more than the
// graph's nodes that fewer draws pay for the levels.
func (s *Sampler) worthLevels(k int) bool {
	if k <= 0 {
		return false
	}
	few, edges := likely(k)<<firstLevel, 0
	for _, r := range s.rows[:len(s.x.dst)] {
		if r.n > few {
			edges += r.n
		}
	}
	return edges > 4*s.nodes
}

// fill computes the levels of all nodes.
func (v *levels) fill(nodes int, w laborWords, threads int) {
	v.words = w
	words := (nodes + 63) / 64
	v.sets = resize(v.sets, maxLevels*words)
	const grain = 64 // words
	parallel.For(threads, words, grain, func(lo, hi int) {
		var ids [64 * grain]int32
		var draws [64 * grain]uint32
		n := min(64*hi, nodes) - 64*lo
		for i := range n {
			ids[i] = int32(64*lo + i)
		}
		laborDraws(draws[:n], ids[:n], &w)
		for i := n; i < 64*(hi-lo); i++ {
			draws[i] = math.MaxUint32 // no node
		}
		levelSets(v.sets, lo, words, draws[:64*(hi-lo)])
	})
}

// set returns the set of a level.
func (v *levels) set(level int) []uint64 {
	words := len(v.sets) / maxLevels
	return v.sets[(level-firstLevel)*words:][:words]
}

// levelSetsGo computes one bit after the other.
func levelSetsGo(sets []uint64, word, words int, draws []uint32) {
	for ; len(draws) > 0; word, draws = word+1, draws[64:] {
		var bit [maxLevels]uint64
		for i, r := range draws[:64] {
			for j := range min(max(0, bits.LeadingZeros32(r)-firstLevel+1), maxLevels) {
				bit[j] |= 1 << i
			}
		}
		for j, b := range bit {
			sets[j*words+word] = b
		}
	}
}

// inSetGo continues inSet at a position, with m sources found before it.
func inSetGo(few, at, nbrs []int32, from int, set []uint64, m int) int {
	for i := from; i < len(nbrs); i++ {
		u := nbrs[i]
		few[m], at[m] = u, int32(i)
		if word := uint(u) >> 6; word < uint(len(set)) { // else the graph is damaged
			m += int(set[word] >> (u & 63) & 1)
		}
	}
	return m
}

// below returns the sources whose numbers are below a level that about want of them or more have, and their positions
// among nbrs. It returns nbrs and nil if there is no such level.
func (h *Hop) below(want int, nbrs []int32) (few, at []int32) {
	if h.levels == nil {
		return nbrs, nil
	}
	level := min(bits.Len(uint(len(nbrs)/want))-1, firstLevel+maxLevels-1)
	if level < firstLevel {
		return nbrs, nil
	}
	h.labor.few, h.labor.places = resize(h.labor.few, len(nbrs)+width), resize(h.labor.places, len(nbrs)+width)
	m := inSet(h.labor.few, h.labor.places, nbrs, h.levels.set(level))
	return h.labor.few[:m], h.labor.places[:m]
}
