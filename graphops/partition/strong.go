package partition

import (
	"cmp"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

const (
	// population is the largest number of divisions from which the strong preset breeds, and few the
	// number that it makes whatever it costs.
	population, few = 48, 4
	// brood is the number of divisions made at a time. It is fixed, so that the number of threads
	// does not matter.
	brood = 4
	// effort is the total number of edges that the strong preset examines, and thorough is that
	// number per node and edge of a small graph. On two cores of 2026 the effort takes about 30 s.
	effort, thorough = 4 << 30, 50000
	// lonely is the effort that a division counts for each node beyond the number of edges: nodes without
	// edges take time too.
	lonely = 128
	// fewEdges is the largest graph, in directed edges, of which the strong preset uses flows.
	fewEdges = 4 << 20
)

// division is a division of a graph with its quality.
type division struct {
	of   []int32
	over float64 // weight above the parts' limits
	cut  int64   // weight of cut edges
}

func (m *divider) judge(g *weighted, of []int32) division {
	return division{of, newMoves(g, of, m.limits).over(), g.cut(of) / 2}
}

// compare is negative if a is better.
func (a division) compare(b division) int {
	return cmp.Or(cmp.Compare(a.over, b.over), cmp.Compare(a.cut, b.cut))
}

// strong improves a division by an evolutionary algorithm: it makes a population of divisions, and
// combines two of them by merging only edges that neither cuts, so that both survive on the
// smallest graph and the better one is refined on every level. The result is never worse than the
// given division.
//
// Source: P. Sanders, C. Schulz, "Distributed evolutionary graph partitioning", ALENEX 2012,
// arXiv:1110.0477.
func (m *divider) strong(g *weighted, given []int32) []int32 {
	all := []division{m.judge(g, given)}
	if len(g.adj) == 0 || all[0].over == 0 && all[0].cut == 0 {
		return given
	}
	budget := cmp.Or(m.o.effort, min(effort, thorough*int64(g.nodes()+len(g.adj))))
	annealing := cmp.Or(m.o.effort, effort/2) // the budget if a brood is annealed, which takes half of it
	sweeps := g.sweeps(annealing / (2 * brood))
	if sweeps > 0 {
		budget = annealing
	}
	var work int64
	full := false
	for generation := 0; m.ctx.Err() == nil && (generation == 0 || work < budget); generation++ {
		made := make([]division, brood)
		cost := make([]int64, brood)
		parallel.For(m.o.Threads, brood, 1, func(i, _ int) {
			s := newSearch(m, 1+generation*brood+i)
			if sweeps > 0 && generation == 1 {
				made[i] = m.judge(g, s.anneal(g, sweeps))
			} else {
				made[i] = m.judge(g, s.child(g, all, generation == 0 && i == 0, full))
			}
			cost[i] = s.work
		})
		if m.ctx.Err() != nil {
			break
		}
		for i, d := range made {
			work += cost[i] + lonely*max(0, int64(g.nodes()-len(g.adj)))
			all = admit(all, d, full)
		}
		full = full || len(all) >= population || len(all) >= few && work > budget/8
		m.o.Progress(0.1 + 0.9*min(1, float64(work)/float64(budget)))
	}
	return slices.MinFunc(all, division.compare).of
}

// child makes one division: a refinement of the given one first, then fresh ones until the
// population is full, then mostly combinations.
func (s *search) child(g *weighted, all []division, first, full bool) []int32 {
	pick := func() division { // the better of two
		a, b := all[s.below(len(all))], all[s.below(len(all))]
		if b.compare(a) < 0 {
			return b
		}
		return a
	}
	switch kind := s.below(10); {
	case first:
		return s.cycle(g, all[0].of, slices.Clone(all[0].of))
	case !full:
		return s.cycle(g, nil, nil)
	case kind < 1: // another way of merging the same division
		a := pick()
		return s.cycle(g, a.of, slices.Clone(a.of))
	case kind < 3: // fresh blood
		a := pick()
		fresh := s.cycle(g, nil, nil)
		return s.cycle(g, s.overlay(a.of, fresh), slices.Clone(a.of))
	}
	a, b := pick(), pick()
	if b.compare(a) < 0 {
		a, b = b, a
	}
	return s.cycle(g, s.overlay(a.of, b.of), slices.Clone(a.of))
}

// overlay gives two nodes the same number if both divisions put them into one part.
func (s *search) overlay(a, b []int32) []int32 {
	both := make([]int32, len(a))
	number := map[[2]int32]int32{}
	for v := range both {
		pair := [2]int32{a[v], b[v]}
		n, ok := number[pair]
		if !ok {
			n = int32(len(number))
			number[pair] = n
		}
		both[v] = n
	}
	return both
}

// admit adds a division to the population. If that is full, the division replaces the one most like
// it among those that are no better.
func admit(all []division, d division, full bool) []division {
	if !full {
		return append(all, d)
	}
	at, least := -1, 0
	for i, old := range all {
		if old.compare(d) < 0 {
			continue
		}
		differ := 0
		for v, p := range d.of {
			if old.of[v] != p {
				differ++
			}
		}
		differ = min(differ, len(d.of)-differ) // two parts may have changed their numbers
		if at < 0 || differ < least {
			at, least = i, differ
		}
	}
	if at >= 0 {
		all[at] = d
	}
	return all
}

// search is the state of making one division.
type search struct {
	*divider
	dice
	work     int64 // edges looked at
	thorough bool  // whether it belongs to the strong preset
	net      network
}

func newSearch(m *divider, number int) *search {
	return &search{divider: m, dice: dice(m.o.Seed ^ uint64(number)*0x9E3779B97F4A7C15), thorough: number > 0}
}

// refine improves a division in place: parts that are too heavy give nodes away, and then nodes move.
// The strong preset searches until neither local searches nor flows help.
func (s *search) refine(g *weighted, of []int32) {
	r := newMoves(g, of, s.limits)
	r.dice = &s.dice
	if !s.thorough {
		r.improve(s.ctx)
		return
	}
	r.rebalance(s.ctx)
	if len(g.adj) > fewEdges {
		r.propagate(s.ctx)
		s.work += r.looked
		return
	}
	r.tabulate()
	for range 8 {
		if s.ctx.Err() != nil {
			break
		}
		saved := s.local(r, 12, 60)
		r.border = nil
		saved += s.flows(r)
		r.border = nil
		if saved == 0 {
			break
		}
	}
	s.work += r.looked
}
