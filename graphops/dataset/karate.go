package dataset

import (
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
	g, y := graphops.Karate()
	x := &Matrix{Rows: nodes, Cols: nodes, F32: make([]float32, nodes*nodes)}
	for v := range nodes {
		x.Row(v)[v] = 1
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
	d.Describe()
	return d
}
