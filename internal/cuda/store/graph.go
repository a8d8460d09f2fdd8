package store

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/cuda"
)

// Graph is a graph that a device's kernels can read, in the device's memory or in pinned memory of
// the host. Samplers of the same device share it. It is read-only.
type Graph struct {
	// Host is the graph that was copied.
	Host *graphops.Graph
	// Nodes and Edges are the graph's size.
	Nodes, Edges int64
	// Indptr i64 [Nodes+1], Indices i32 [Edges] and Weights f32 [Edges], which is
	// 0 where the graph has none.
	Indptr, Indices, Weights cuda.Ptr
	// Place is Device, Pinned or Staged. For Staged the graph stays in the host's memory, the CPU
	// samples it, and the pointers here are 0.
	Place Place

	parts []*array
	why   error // the reason if Auto chose Staged
}

// PutGraph places a graph: Device, Pinned, Staged, or Auto for the first of these with room for it.
// mapped says that the graph's arrays are in mapped files; these are pinned in place if the device
// supports it, otherwise pinned memory holds a copy. Edges of weight 0 are left out ([graphops.Graph.WithoutZeroWeights]),
// of Host too. Close frees the memory.
func PutGraph(d *cuda.Device, g *graphops.Graph, place Place, mapped bool) (*Graph, error) {
	return putGraph(d, g, place, mapping{mapped: mapped})
}

func putGraph(d *cuda.Device, g *graphops.Graph, place Place, m mapping) (*Graph, error) {
	if g == nil || len(g.Indptr) == 0 {
		return nil, fmt.Errorf("store: the graph is missing: it has no indptr, although even a graph without nodes has one")
	}
	g, _ = g.WithoutZeroWeights()
	out := &Graph{Host: g, Nodes: int64(g.NumNodes()), Edges: g.NumEdges()}
	if place == Staged {
		out.Place = Staged
		return out, nil
	}
	var err error
	out.Place, err = putAll(d, "a graph lies", place, GraphBytes(g), func(at Place) error {
		for _, p := range []struct {
			to *cuda.Ptr
			b  []byte
		}{{&out.Indptr, bytesOf(g.Indptr)}, {&out.Indices, bytesOf(g.Indices)}, {&out.Weights, bytesOf(g.EdgeWeights)}} {
			if len(p.b) == 0 {
				continue
			}
			a, err := put(d, cuda.Graph, p.b, at, m)
			if err != nil {
				return errors.Join(err, out.Close())
			}
			out.parts = append(out.parts, a)
			*p.to = a.ptr
		}
		return nil
	})
	if place == Auto && errors.Is(err, cuda.OutOfMemory) {
		out.Place, out.why = Staged, err
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (g *Graph) String() string {
	all := fmt.Sprintf("the graph (%s) %s", phrase.Bytes(g.Bytes()), g.Place)
	if g.Place == Staged {
		all += ", sampled by the CPU"
	}
	return all + because(g.why)
}

// because returns the reason why data is Staged, in parentheses.
func because(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", err)
}

// GraphBytes is the memory that a graph takes.
func GraphBytes(g *graphops.Graph) int64 {
	return int64(len(bytesOf(g.Indptr)) + len(bytesOf(g.Indices)) + len(bytesOf(g.EdgeWeights)))
}

// Bytes returns the memory that the graph uses in its place.
func (g *Graph) Bytes() int64 { return GraphBytes(g.Host) }

// Close frees the memory, in the order of the device's work; it returns the first error of freeing
// pinned memory.
func (g *Graph) Close() error {
	var first error
	for _, a := range g.parts {
		if err := a.close(); err != nil && first == nil {
			first = err
		}
	}
	g.parts = nil
	return first
}
