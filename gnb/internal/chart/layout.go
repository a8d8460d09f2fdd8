package chart

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Circles puts nodes on circles around those at hop 0, one circle per hop: a single node at hop 0 is in the middle, several are
// around it. The children of a node, which are one hop further and joined to it by an edge (from the child), divide its angle in
// proportion to their numbers of leaves. Positions are within the unit circle.
func Circles(hops []int, edges [][2]int) []vg.Point {
	at := make([]vg.Point, len(hops))
	var roots []int
	last := 1
	for i, h := range hops {
		if last = max(last, h); h == 0 {
			roots = append(roots, i)
		}
	}
	if len(roots) == 0 {
		return at
	}
	children, parent := make([][]int, len(hops)), make([]int, len(hops))
	for i := range parent {
		parent[i] = -1
	}
	for _, e := range edges {
		if s, d := e[0], e[1]; hops[s] > 0 && parent[s] < 0 && hops[d] == hops[s]-1 {
			parent[s] = d
			children[d] = append(children[d], s)
		}
	}
	order := make([]int, len(hops)) // the furthest first
	for i := range order {
		order[i] = len(hops) - 1 - i
		if hops[i] > 0 && parent[i] < 0 { // its edge is among those left out
			children[roots[0]] = append(children[roots[0]], i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(hops[b], hops[a]) })
	leaves, total := make([]float64, len(hops)), 0.0
	for _, i := range order {
		for _, c := range children[i] {
			leaves[i] += leaves[c]
		}
		leaves[i] = max(leaves[i], 1)
	}
	inner := 0.0
	if len(roots) > 1 {
		inner = 0.5
	}
	var spread func(i int, from, to float64)
	spread = func(i int, from, to float64) {
		r, a := (float64(hops[i])+inner)/(float64(last)+inner), (from+to)/2
		at[i] = vg.Point{X: vg.Length(r * math.Cos(a)), Y: vg.Length(r * math.Sin(a))}
		each := (to - from) / leaves[i]
		for _, c := range children[i] {
			next := from + each*leaves[c]
			spread(c, from, next)
			from = next
		}
	}
	for _, i := range roots {
		total += leaves[i]
	}
	from := math.Pi / 2
	for _, i := range roots {
		to := from + 2*math.Pi*leaves[i]/total
		spread(i, from, to)
		from = to
	}
	return at
}

// springRounds is the number of improvements of [Springs], more than its result needs for graphs that can be read.
const springRounds = 200

// Springs places the nodes of a small graph so that distances on the page are those over edges, in either direction: by majorization of
// stress, from a circle, so that equal graphs have equal pictures. Nodes that no path joins are as far from each other as the longest path and
// one more. Positions are within the unit square around 0. Cost: rounds · nodes².
//
// Source: E. R. Gansner, Y. Koren, S. North, "Graph drawing by stress majorization", GD 2004, doi:10.1007/978-3-540-31843-9_25.
func Springs(n int, edges [][2]int) []vg.Point {
	far := distances(n, edges)
	x, y := make([]float64, n), make([]float64, n)
	for i := range n {
		y[i], x[i] = math.Sincos(2 * math.Pi * float64(i) / float64(n))
	}
	for range springRounds {
		for i := range n {
			sx, sy, sum := 0.0, 0.0, 0.0
			for j := range n {
				if i == j {
					continue
				}
				d := far[i*n+j]
				w := 1 / (d * d)
				dx, dy := x[i]-x[j], y[i]-y[j]
				length := max(math.Hypot(dx, dy), 1e-9)
				sx += w * (x[j] + d*dx/length)
				sy += w * (y[j] + d*dy/length)
				sum += w
			}
			if sum > 0 {
				x[i], y[i] = sx/sum, sy/sum
			}
		}
	}
	fit := func(v []float64) {
		if n == 0 {
			return
		}
		mid, half := (slices.Min(v)+slices.Max(v))/2, (slices.Max(v)-slices.Min(v))/2
		for i := range v {
			if v[i] -= mid; half > 1e-6 {
				v[i] /= half
			}
		}
	}
	fit(x)
	fit(y)
	at := make([]vg.Point, n)
	for i := range at {
		at[i] = vg.Point{X: vg.Length(x[i]), Y: vg.Length(y[i])}
	}
	return at
}

// distances are the numbers of edges between all pairs of nodes [n, n].
func distances(n int, edges [][2]int) []float64 {
	near := make([][]int, n)
	for _, e := range edges {
		near[e[0]], near[e[1]] = append(near[e[0]], e[1]), append(near[e[1]], e[0])
	}
	far, longest := make([]float64, n*n), 0.0
	for i := range n {
		row := far[i*n : (i+1)*n]
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			v := queue[0]
			for _, u := range near[v] {
				if u != i && row[u] == 0 {
					row[u] = row[v] + 1
					longest = max(longest, row[u])
					queue = append(queue, u)
				}
			}
		}
	}
	for i := range far {
		if far[i] == 0 {
			far[i] = longest + 1
		}
	}
	return far
}
