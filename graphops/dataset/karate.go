package dataset

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// Karate returns Zachary's karate club: 34 members, 78 undirected edges (156 here) between members
// who met outside the club, and two classes of 17 members each: after the club split, those of
// class 0 stayed with the instructor, Mr. Hi (node 0), and those of class 1 went with its officer
// (node 33). Features are the identity matrix. The training split is small on purpose: 6 nodes,
// including the two leaders; 8 are for validation and 20 for testing.
//
// Source: W. W. Zachary, "An information flow model for conflict and fission in small groups", J.
// Anthropological Research 33 (1977), doi:10.1086/jar.33.4.3629752.
func Karate() *Dataset {
	const nodes = 34
	var src, dst []int32
	for v, friends := range karateFriends {
		for _, u := range friends {
			src, dst = append(src, u), append(dst, int32(v))
		}
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: true, Threads: 1})
	if err != nil {
		panic(fmt.Sprintf("dataset: the embedded karate club: %v", err))
	}
	x := &Matrix{Rows: nodes, Cols: nodes, F32: make([]float32, nodes*nodes)}
	y := make([]int32, nodes)
	for v := range nodes {
		x.Row(v)[v] = 1
		y[v] = 1
	}
	for _, v := range karateMrHi {
		y[v] = 0
	}
	d := &Dataset{
		Graph: g, Features: x, Labels: y,
		Splits: map[string][]int32{
			"train": {0, 1, 5, 23, 32, 33},
			"val":   {3, 10, 12, 17, 14, 20, 25, 29},
		},
		Meta: Metadata{
			Name: "karate", NumClasses: 2, Undirected: true,
			Source:   "embedded",
			Licence:  "public domain",
			Citation: "W. W. Zachary, An information flow model for conflict and fission in small groups, J. Anthropological Research 33, 1977, doi:10.1086/jar.33.4.3629752",
		},
	}
	used := map[int32]bool{}
	for _, ids := range d.Splits {
		for _, v := range ids {
			used[v] = true
		}
	}
	for v := range int32(nodes) {
		if !used[v] {
			d.Splits["test"] = append(d.Splits["test"], v)
		}
	}
	d.fillMeta()
	return d
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
