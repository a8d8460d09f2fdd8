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
)

// division is a division of a graph with its quality.
type division struct {
	of        []int32
	over, cut int64 // weight above the parts' limits; weight of cut edges
}

func (m *divider) judge(g *weighted, of []int32) division {
	return division{of, newMoves(g, of, m.most).over(), g.cut(of) / 2}
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
	if all[0].over == 0 && all[0].cut == 0 {
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
			s := newSearch(m, generation*brood+i)
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
			work += cost[i]
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
	for v := range both {
		both[v] = a[v]*int32(s.parts) + b[v]
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

// search is the state of making one division in the strong preset.
type search struct {
	*divider
	dice
	work  int64 // edges looked at
	moved []int32
	round int32
	steps []step
	net   network
}

func newSearch(m *divider, number int) *search {
	own := *m
	own.o.Seed ^= uint64(number+1) * 0x9E3779B97F4A7C15
	own.start = scatter
	return &search{divider: &own, dice: dice(own.o.Seed)}
}

// scatter makes side 0 around one node or a few, or of any: the best side may be in several pieces.
func scatter(g *weighted, share float64, random uint32) []int32 {
	return g.grow(share, int(random>>8), []int{0, 0, 1, 2, 4, g.nodes() / 8, g.nodes() / 4, g.nodes()}[random&7])
}

// cycle merges, divides the smallest graph unless a division is given, and refines on the way
// back. It merges only nodes with the same number in keep, which must be finer than the given
// division.
func (s *search) cycle(g *weighted, keep, of []int32) []int32 {
	levels := []level{{weighted: g}}
	// Matching keeps the shape of meshes; label propagation shrinks graphs with hubs.
	matching := s.below(3) > 0
	smallest := s.parts * (40 + s.below(120))
	for {
		at := &levels[len(levels)-1]
		n := at.nodes()
		if n <= smallest {
			break
		}
		var into []int32
		count := n
		if matching {
			into, count = s.match(at.weighted, 3*g.total/int64(2*smallest)+1, keep)
		}
		if count > n*9/10 {
			into, count = s.cluster(at.weighted, g.total/int64(s.parts*(12+s.below(36)))+1, len(levels), keep)
			s.work += 3 * int64(len(at.adj))
		}
		if s.ctx.Err() != nil || count > n*19/20 {
			break
		}
		at.into = into
		s.work += int64(len(at.adj))
		levels = append(levels, level{weighted: at.contract(into, count)})
		keep, of = project(into, count, keep), project(into, count, of)
	}
	if of == nil {
		of = s.initial(levels[len(levels)-1].weighted)
	}
	for i := len(levels) - 1; i >= 0 && s.ctx.Err() == nil; i-- {
		if at := levels[i]; at.into != nil {
			fine := make([]int32, at.nodes())
			for v, c := range at.into {
				fine[v] = of[c]
			}
			of = fine
		}
		s.refine(levels[i].weighted, of)
		levels[i] = level{}
	}
	return of
}

// project gives each cluster the number that all its nodes have.
func project(into []int32, count int, number []int32) []int32 {
	if number == nil {
		return nil
	}
	coarse := make([]int32, count)
	for v, c := range into {
		coarse[c] = number[v]
	}
	return coarse
}

// match merges pairs of neighbours. It visits the nodes in random order; each takes the free
// neighbour with the greatest weight of the edge squared over the product of the nodes' weights.
//
// Source: M. Holtgrewe, P. Sanders, C. Schulz, "Engineering a scalable high quality graph
// partitioner", IPDPS 2010, arXiv:0910.2004, section 3.1.
func (s *search) match(g *weighted, bound int64, keep []int32) (into []int32, count int) {
	n := g.nodes()
	s.work += int64(len(g.adj))
	label := make([]int32, n)
	free := make([]bool, n)
	for v := range label {
		label[v], free[v] = int32(v), true
	}
	salt := uint32(s.next())
	for _, v := range s.shuffled(n) {
		if !free[v] {
			continue
		}
		best, most, tie := int32(-1), 0.0, uint32(0)
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			u := g.adj[e]
			if !free[u] || g.node[v]+g.node[u] > bound || keep != nil && keep[u] != keep[v] {
				continue
			}
			w := float64(g.weightOf(e))
			rating := w * w / float64(max(g.node[u], 1))
			if t := mix(salt, uint32(u), uint32(v)); rating > most || rating == most && t > tie {
				best, most, tie = u, rating, t
			}
		}
		if best >= 0 {
			free[v], free[best] = false, false
			label[best] = v
		}
	}
	return compact(label)
}

// refine improves a division in place by local searches and by flows, until neither helps.
func (s *search) refine(g *weighted, of []int32) {
	r := newMoves(g, of, s.most)
	r.rebalance()
	if len(g.adj) > fewEdges {
		r.propagate(s.divider)
		s.work += r.looked
		return
	}
	r.tabulate()
	for range 8 {
		if s.ctx.Err() != nil {
			break
		}
		saved := s.local(r)
		saved += s.flows(r)
		if saved == 0 {
			break
		}
	}
	s.work += r.looked
}

// dice is a generator of random numbers: splitmix64.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9E3779B97F4A7C15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// below returns a number in [0, n).
func (d *dice) below(n int) int { return int((d.next() >> 32) * uint64(n) >> 32) }

func (d *dice) shuffled(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		j := d.below(i + 1)
		order[i] = order[j]
		order[j] = int32(i)
	}
	return order
}
