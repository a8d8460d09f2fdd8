package graphops

import "fmt"

// Karate returns the graph of Zachary's karate club: 34 members and 78 undirected edges, and the class of
// each member, which is 0 for those who stayed with Mr. Hi (node 0) after the club split, and 1 for those
// who went with its officer (node 33).
//
// Source: W. W. Zachary, "An information flow model for conflict and fission in small groups", J.
// Anthropological Research 33 (1977), doi:10.1086/jar.33.4.3629752.
func Karate() (g *Graph, class []int32) {
	const nodes = 34
	var src, dst []int32
	for v, friends := range karateFriends {
		for _, u := range friends {
			src, dst = append(src, u), append(dst, int32(v))
		}
	}
	g, err := FromEdges(nodes, src, dst, BuildOptions{Undirected: true, Threads: 1})
	if err != nil {
		panic(fmt.Sprintf("graphops: the embedded karate club: %v", err))
	}
	class = make([]int32, nodes)
	for v := range class {
		class[v] = 1
	}
	for _, v := range karateMrHi {
		class[v] = 0
	}
	return g, class
}

// karateMrHi holds the members who stayed with Mr. Hi.
var karateMrHi = []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21}

// karateFriends holds, for each member, the friends with a lower number.
var karateFriends = [34][]int32{
	1:  {0},
	2:  {0, 1},
	3:  {0, 1, 2},
	4:  {0},
	5:  {0},
	6:  {0, 4, 5},
	7:  {0, 1, 2, 3},
	8:  {0, 2},
	9:  {2},
	10: {0, 4, 5},
	11: {0},
	12: {0, 3},
	13: {0, 1, 2, 3},
	16: {5, 6},
	17: {0, 1},
	19: {0, 1},
	21: {0, 1},
	25: {23, 24},
	27: {2, 23, 24},
	28: {2},
	29: {23, 26},
	30: {1, 8},
	31: {0, 24, 25, 28},
	32: {2, 8, 14, 15, 18, 20, 22, 23, 29, 30, 31},
	33: {8, 9, 13, 14, 15, 18, 19, 20, 22, 23, 26, 27, 28, 29, 30, 31, 32},
}
