package tables

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// CopiesFile is the name of the file with the copies of merged edges in a dataset's directory, if the edges have weights
// or features. [Append] needs them, because rounded sums and means cannot be continued with the same bits.
const CopiesFile = "recipe-copies.bin"

// copies are the edges that were merged into one, as they were read.
type copies struct {
	edge    []int64 // CSC position of the merged edge, ascending, once for each of its copies
	weights []float32
	x       []float32 // [copies, width]
}

// mergeEdges makes one edge of equal ones in a graph that graphOf made, and then drops weights that are all 1. It returns
// the copies of each merged edge.
func mergeEdges(all *graphops.Graph, threads int) (*graphops.Graph, *copies, error) {
	same := func(v int, e int64) bool { // edge e of node v is equal to the one before
		return e > all.Indptr[v] && all.Indices[e] == all.Indices[e-1] && (all.EdgeTypes == nil || all.EdgeTypes[e] == all.EdgeTypes[e-1]) &&
			(all.EdgeTimes == nil || all.EdgeTimes[e] == all.EdgeTimes[e-1])
	}
	c := &copies{}
	kept, repeats := int64(-1), false
	for v := range all.NumNodes() {
		for e := all.Indptr[v]; e < all.Indptr[v+1]; e++ {
			if !same(v, e) {
				kept++
				continue
			}
			repeats = true
			if n := len(c.edge); n == 0 || c.edge[n-1] != kept {
				c.add(all, e-1, kept)
			}
			c.add(all, e, kept)
		}
	}
	g := all
	if repeats {
		var err error
		if g, err = all.Rebuild(graphops.BuildOptions{Threads: threads}); err != nil {
			return nil, nil, fault("%w", err)
		}
	}
	return convert.WithoutOnes(g), c, nil
}

// add takes edge e of a graph as a copy of the merged edge.
func (c *copies) add(g *graphops.Graph, e, merged int64) {
	c.edge = append(c.edge, merged)
	if g.EdgeWeights != nil {
		c.weights = append(c.weights, g.EdgeWeights[e])
	}
	if x := g.EdgeFeatures; x != nil {
		c.x = append(c.x, x.F32[e*int64(x.Cols):(e+1)*int64(x.Cols)]...)
	}
}

// mergedOf says how many rows of tables became edges of g together with others; before is the number of edges that the
// graph had before the rows.
func (r *Recipe) mergedOf(rows int, before, g *graphops.Graph) convert.Merged {
	m := convert.Merged{Edges: int64(rows), Undirected: r.Undirected, Weighted: r.weighted(), Featured: r.edgeWidth() > 0}
	m.Repeats = m.Edges - r.listed(g)
	if before != nil {
		m.Repeats += r.listed(before)
	}
	return m
}

// listed returns the number of rows that a graph's edges need at least.
func (r *Recipe) listed(g *graphops.Graph) int64 {
	switch {
	case r.Undirected && g.Schema == nil:
		loops := int64(0)
		for v := range int32(g.NumNodes()) {
			for _, u := range g.InNeighbors(v) {
				if u == v {
					loops++
				}
			}
		}
		return (g.NumEdges() + loops) / 2
	case r.Reverses && g.Schema != nil:
		return g.NumEdges() / 2
	}
	return g.NumEdges()
}

// write writes the copies into a directory, and returns the checksum; "" if there are none.
func (c *copies) write(dir string) (sum string, err error) {
	if len(c.edge) == 0 {
		return "", nil
	}
	raw := make([]byte, 0, 8*(1+len(c.edge))+4*(len(c.weights)+len(c.x)))
	raw = binary.LittleEndian.AppendUint64(raw, uint64(len(c.edge)))
	for _, e := range c.edge {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(e))
	}
	for _, x := range slices.Concat(c.weights, c.x) {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:]), atomicfile.WriteFile(filepath.Join(dir, CopiesFile), raw, 0o644)
}

// readCopies reads the copies of merged edges of a dataset whose graph is g.
func (r *Recipe) readCopies(dir string, g *graphops.Graph) (*copies, error) {
	c := &copies{}
	if r.Copies == "" {
		return c, nil
	}
	path := filepath.Join(dir, CopiesFile)
	raw, err := atomicfile.ReadFile(path, math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault("%s is missing; it has the edges that were merged, to which new ones are added: read all tables again", path)
	}
	if err != nil {
		return nil, fault("%w", err)
	}
	changed := fault("%s is not the file that the recipe names: it was changed or damaged; read all tables again", path)
	if h := sha256.Sum256(raw); hex.EncodeToString(h[:]) != r.Copies || len(raw) < 8 {
		return nil, changed
	}
	in := bytes.NewReader(raw[8:])
	n, width, weight := int64(binary.LittleEndian.Uint64(raw)), int64(r.edgeWidth()), int64(0)
	if r.weighted() {
		weight = 1
	}
	if n < 0 || n > int64(len(raw))/8 || int64(in.Len()) != n*(8+4*(weight+width)) {
		return nil, changed
	}
	c.edge, c.weights, c.x = make([]int64, n), make([]float32, weight*n), make([]float32, width*n)
	for _, to := range []any{c.edge, c.weights, c.x} {
		if err := binary.Read(in, binary.LittleEndian, to); err != nil {
			return nil, fault("reading %s: %w", path, err)
		}
	}
	for i, e := range c.edge {
		if e < 0 || e >= g.NumEdges() || i > 0 && e < c.edge[i-1] {
			return nil, changed
		}
	}
	return c, nil
}
