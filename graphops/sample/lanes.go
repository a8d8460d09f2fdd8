package sample

import "slices"

const (
	// width is the number of nodes that the kernels pick for at once.
	width = 16
	// maxLanes is the largest fanout of the kernels: their cost is its square.
	maxLanes = 48
)

// lanes picks uniformly for many nodes at once, with the same picks as [Hop.Uniform] for each node.
type lanes struct {
	hop   Hop
	nodes [grain + width]int32 // those with more in-edges than the fanout
	n     [grain + width]int32 // how many they have
	picks [][width]int32       // of 16 nodes after the other: k by 16
	one   []int32
}

// draw writes the CSC positions of the picks of each node, ascending.
func (l *lanes) draw(h *Hop, k int, nodes []int32, rows []inEdges, out []int64) {
	if k > maxLanes {
		l.each(h, k, nodes, rows, out)
		return
	}
	m := 0
	for i, r := range rows {
		l.nodes[m], l.n[m] = nodes[i], int32(r.n)
		if r.n > k {
			m++
		}
	}
	for i := m; i%width != 0; i++ {
		l.nodes[i], l.n[i] = 0, int32(k)
	}
	if need := (m + width - 1) / width * k; len(l.picks) < need {
		l.picks = make([][width]int32, (grain/width)*k)
	}
	for i := 0; i < m && k > 0; i += width {
		floyd(l.picks[i/width*k:][:k], (*[width]int32)(l.nodes[i:]), (*[width]int32)(l.n[i:]), h)
	}
	at, drawn := 0, 0
	for _, r := range rows {
		if r.n <= k {
			o := out[at : at+r.n]
			for i := range o {
				o[i] = r.at + int64(i)
			}
			at += r.n
			continue
		}
		column(out[at:at+k], r.at, l.picks[drawn/width*k:], uint(drawn))
		at += k
		drawn++
	}
}

// column is out = at + the picks of a lane.
func column(out []int64, at int64, picks [][width]int32, lane uint) {
	picks = picks[:len(out)]
	for i := range out {
		out[i] = at + int64(picks[i][lane%width])
	}
}

// each computes draw for one node after the other.
func (l *lanes) each(h *Hop, k int, nodes []int32, rows []inEdges, out []int64) {
	l.hop.enter(h)
	at := 0
	for i, r := range rows {
		if r.n <= k {
			for j := range r.n {
				out[at+j] = r.at + int64(j)
			}
			at += r.n
			continue
		}
		l.hop.At(nodes[i])
		l.one = l.hop.Uniform(r.n, k, slices.Grow(l.one[:0], k))
		for j, p := range l.one {
			out[at+j] = r.at + int64(p)
		}
		at += k
	}
}

// floydGo is floyd in plain Go.
func floydGo(picks [][width]int32, nodes, n *[width]int32, h *Hop) {
	var one [maxLanes]int32
	for l, v := range nodes {
		u := Hop{seed: h.seed, step: h.step, c3: h.c3}
		u.At(v)
		for i, p := range u.Uniform(int(n[l]), len(picks), one[:0]) {
			picks[i][l] = p
		}
	}
}
