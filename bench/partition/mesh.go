package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
)

// mesh makes an undirected graph of a kind and size; see the command's description.
func mesh(kind, size string) (*graphops.Graph, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 2 || n > 1<<22 {
		return nil, fmt.Errorf("size %q of the mesh %s is out of range", size, kind)
	}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	nodes := n
	var src, dst []int32
	link := func(a, b int) { src, dst = append(src, int32(a), int32(b)), append(dst, int32(b), int32(a)) }
	switch kind {
	case "grid2", "tri":
		nodes = n * n
		for v := range nodes {
			x, y := v%n, v/n
			if x+1 < n {
				link(v, v+1)
			}
			if y+1 < n {
				link(v, v+n)
			}
			if kind == "tri" && x+1 < n && y+1 < n {
				if random.IntN(2) == 0 {
					link(v, v+n+1)
				} else {
					link(v+1, v+n)
				}
			}
		}
	case "grid3":
		nodes = n * n * n
		for v := range nodes {
			if v%n+1 < n {
				link(v, v+1)
			}
			if v/n%n+1 < n {
				link(v, v+n)
			}
			if v/n/n+1 < n {
				link(v, v+n*n)
			}
		}
	case "rgg":
		const degree = 15
		radius := math.Sqrt(degree / (math.Pi * float64(n)))
		side := max(1, int(1/radius)) // the square is cut into side × side cells, no smaller than the radius
		x, y, cells := make([]float64, n), make([]float64, n), make([][]int, side*side)
		for v := range n {
			x[v], y[v] = random.Float64(), random.Float64()
			i, j := int(x[v]*float64(side)), int(y[v]*float64(side))
			for a := max(0, i-1); a <= min(side-1, i+1); a++ {
				for b := max(0, j-1); b <= min(side-1, j+1); b++ {
					for _, u := range cells[a*side+b] {
						if math.Hypot(x[v]-x[u], y[v]-y[u]) < radius {
							link(u, v)
						}
					}
				}
			}
			cells[i*side+j] = append(cells[i*side+j], v)
		}
	default:
		return nil, fmt.Errorf("no mesh is named %q", kind)
	}
	return graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{})
}
