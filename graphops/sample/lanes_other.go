//go:build !amd64

package sample

// floyd picks len(picks) of n[l] positions for each of 16 nodes, as [Hop.Uniform]
// does: picks[i][l] is pick i of nodes[l]. There are 1 to maxLanes picks, and no
// more than n[l].
func floyd(picks [][width]int32, nodes, n *[width]int32, h *Hop) { floydGo(picks, nodes, n, h) }
