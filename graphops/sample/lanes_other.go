//go:build !amd64

package sample

// floyd picks k of n[l] positions for each of 16 nodes, as [Hop.Uniform] does:
// picks[i·16+l] is pick i of nodes[l]. n is k at least, and k is 1 to maxLanes.
func floyd(picks []int32, nodes, n *[width]int32, k int, h *Hop) { floydGo(picks, nodes, n, k, h) }
