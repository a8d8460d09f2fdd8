package sample

import "github.com/graphnb/graphnb/internal/simd"

// path is the kernel in use; tests set it to each kernel.
var path = simd.Best()

// floyd picks len(picks) of n[l] positions for each of 16 nodes, as [Hop.Uniform]
// does: picks[i][l] is pick i of nodes[l]. There are 1 to maxLanes picks, and no
// more than n[l].
func floyd(picks [][width]int32, nodes, n *[width]int32, h *Hop) {
	words := [4]uint32{uint32(h.seed), uint32(h.seed >> 32), uint32(h.step), h.c3}
	switch path {
	case simd.AVX512:
		floydAVX512(&picks[0][0], len(picks), &nodes[0], &n[0], &words)
	case simd.AVX2:
		floydAVX2(&picks[0][0], len(picks), &nodes[0], &n[0], &words)
		floydAVX2(&picks[0][8], len(picks), &nodes[8], &n[8], &words)
	default:
		floydGo(picks, nodes, n, h)
	}
}

// floydAVX512 picks for 16 nodes. words are the key and the last words of the
// counters.
//
//go:noescape
func floydAVX512(picks *int32, k int, nodes, n *int32, words *[4]uint32)

// floydAVX2 picks for 8 nodes; pick i of the first is picks[16·i].
//
//go:noescape
func floydAVX2(picks *int32, k int, nodes, n *int32, words *[4]uint32)
