package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Values of PlaneOptions.Features.
const (
	FeaturesInMemory = "memory"
	FeaturesOnDisk   = "disk"
)

// checkFeatures returns an error if the features of a dataset cannot be where PlaneOptions.Features says.
func (o PlaneOptions) checkFeatures(ds *dataset.Dataset) error {
	switch {
	case o.Features != "" && o.Features != FeaturesInMemory && o.Features != FeaturesOnDisk:
		return fmt.Errorf(`gnb: Features is %q; it is "memory", "disk", or empty for disk where memory is too small`, o.Features)
	case o.Features != FeaturesOnDisk || ds == nil:
		return nil
	case divided.Is(ds):
		return fmt.Errorf(`gnb: Features is "disk", but %s is divided into parts, whose files workers map; leave Features out, or take the undivided dataset`, ds.Name())
	case ds.Features == nil:
		return fmt.Errorf(`gnb: Features is "disk", but the features of %s are sparse or absent; leave Features out`, ds.Name())
	}
	if _, _, ok := ds.FeatureFile(); !ok {
		return fmt.Errorf(`gnb: Features is "disk", but the features of %s are in memory; write the dataset to a directory (gnb data convert, dataset.Write), or leave Features out`, ds.Name())
	}
	return nil
}

// PlaceFeatures returns FeaturesOnDisk if a run on a dataset reads features from disk, else "": as the options say or, if
// they say nothing, on the CPU where the dataset does not fit the free memory. Device is "" for the CPU.
func (o PlaneOptions) PlaceFeatures(ds *dataset.Dataset, device string, note func(format string, args ...any)) (string, error) {
	switch {
	case o.Features == FeaturesInMemory || ds == nil:
		return "", nil
	case o.Features == FeaturesOnDisk:
		return FeaturesOnDisk, nil
	case device != "":
		return "", nil
	}
	asked := PlaneOptions{Features: FeaturesOnDisk}
	if asked.checkFeatures(ds) != nil {
		return "", nil
	}
	m, err := machine.ReadMemory()
	if err != nil || ds.Bytes() <= m.Free {
		return "", nil //nolint:nilerr // a system that does not state its memory keeps features mapped
	}
	note("features are read from disk: the %s of %s do not fit the %s of free memory.", phrase.Bytes(ds.Bytes()), ds.Name(), phrase.Bytes(m.Free))
	return FeaturesOnDisk, nil
}

// onDisk is the [Own] of a rank whose rows are all on disk.
type onDisk struct{ of *dataset.Matrix }

func (onDisk) Has(int32) bool { return false }

func (onDisk) Gather([]byte, []int32) error { return nil }

func (o onDisk) RowBytes() int { return plane.RowBytes(o.of.Cols, o.of.Half()) }

func (o onDisk) Reset(m *dataset.Matrix, rows int) []byte {
	return plane.Reset(m, rows, o.of.Cols, o.of.Half())
}

// Shares of the memory that is free at the start of a run, for all workers of a machine together: the cache of features on
// disk, and the windows of these and of features at servers. The rest is for
// batches, the network, and the pages of the graph.
const (
	cacheShare  = 4 // a quarter
	windowShare = 8
)

// leastWindow is the smallest bound of a window: a rank's next batches.
const leastWindow = 16 << 20

// newDiskFetcher returns a Fetcher that reads features from the dataset's file. Of the memory, ranks of a machine take
// equal shares, and have one cache of theirs together. Collective.
func newDiskFetcher(t *Team, o PlaneOptions, place Place) (*Fetcher, error) {
	ds := t.o.Data
	path, at, ok := ds.FeatureFile()
	if !ok {
		return nil, o.checkFeatures(ds)
	}
	own := onDisk{ds.Features}
	r, err := plane.OpenDisk(path, at, ds.Features.Rows, own.RowBytes(), plane.DiskOptions{})
	if err != nil {
		return nil, err
	}
	letWait(t.o.Threads)
	f := &Fetcher{o: o, team: t, data: ds, at: place, own: own, source: r, disk: r, window: windowBytes}
	if m, err := machine.ReadMemory(); err == nil {
		f.window, f.defaultCache = memoryShares(m.Free, place.LocalWorld)
	}
	// Ranks fill the cache together, so all of them do or none.
	if err := f.smallest("memory for features on disk", &f.window, &f.defaultCache); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, f.findNear()
}

// memoryShares returns the bound of a rank's window and the size of its cache, of the memory that is free.
func memoryShares(free int64, localWorld int) (window, cache int64) {
	each := free / int64(localWorld)
	return max(leastWindow, min(windowBytes, each/windowShare)), each / cacheShare
}

// waitThreads is the number of processors of Go's for goroutines that wait for a disk or a network.
const waitThreads = 2

// letWait makes room for goroutines that wait for a disk or a network, beside those that compute on some threads: a
// goroutine needs one of Go's processors when an answer comes. If all are busy with computing, it waits up to 10 ms.
func letWait(threads int) { runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+waitThreads)) }

// measureFor bounds the time in which a run measures its disk.
const measureFor = 250 * time.Millisecond

// measure measures the disk after the first loop of training, with requests of the loop's mean size, for at most a
// quarter of the time that the loop has read.
func (f *Fetcher) measure() {
	s := f.disk.Stats()
	if f.limitAt == 0 && s.Requests > 0 {
		f.limitAt = s.Bytes / s.Requests
		f.limit = f.disk.Limit(f.limitAt, min(measureFor, s.Busy/4))
		if f.limit > 0 { // the run may have had the disk for itself at another time
			f.limit = max(f.limit, float64(s.Bytes)/s.Busy.Seconds())
		}
	}
}

// countDisk adds what the disk did to the counts of a rank that has no other source.
func (f *Fetcher) countDisk(r *plane.Rows) {
	s := f.disk.Stats()
	r.Disk, r.Remote = r.Remote, 0
	r.Bytes, r.Requests, r.Seconds, r.Limit = s.Bytes, s.Requests, s.Busy.Seconds(), f.limit
}

// FromDisk reports whether this rank reads features from disk.
func (f *Fetcher) FromDisk() bool { return f != nil && f.disk != nil }

// FirstLayer computes the rows [lo, hi) of a model's first layer on a graph from features on disk, in chunks whose sources
// have room in memory. The rows have the bits of [nn.LayerRowsFrom] with all features in memory. Done is called with the
// number of rows computed so far.
//
// Rows in the cache are copied; if there is none yet, it is filled with the rows of the most out-edges. A chunk reads its
// other rows once, in ascending order. In a graph whose neighbours have nearby ids that is about one pass over the
// features; in a random graph it is up to one row per edge.
func (f *Fetcher) FirstLayer(g *graphops.Graph, m nn.Model, fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error {
	size := f.own.RowBytes()
	most := max(1, int(f.window/int64(size)))
	if bytes, err := f.cacheBytes(); err != nil {
		return err
	} else if f.cache == nil && f.pool == nil && bytes > 0 && g.NumNodes() > most {
		if err := f.fillBy(hotness.Degrees(g), bytes); err != nil {
			return err
		}
	}
	cached := f.cache.Row
	if f.pool != nil && f.pool.Settle() {
		cached = f.pool.Row
	}
	c := newChunk(g, g)
	var memory dataset.Matrix
	return c.firstLayer(m, fwd, lo, hi, most, 0, out, done, func(ids []int32) (*dataset.Matrix, *dataset.Sparse, error) {
		rows := f.own.Reset(&memory, len(ids))
		own := c.hi - c.lo
		before, _ := slices.BinarySearch(c.halo, int32(c.lo))
		var read, places []int32 // the nodes whose rows are read, and where in rows
		for i, v := range c.ascending(before) {
			k := i // the halo's rows are behind the chunk's own
			switch {
			case i < before:
				k += own
			case i < before+own:
				k -= before
			}
			if row := cached(v); row != nil {
				copy(rows[k*size:], row)
				continue
			}
			read, places = append(read, v), append(places, int32(k))
		}
		err := f.disk.Scatter(context.Background(), read, func(i int) []byte {
			k := int(places[i])
			return rows[k*size : (k+1)*size]
		})
		return &memory, nil, err
	})
}

// chunk is a range of nodes with the sources of their in-edges, as a part of a graph has them: its own nodes first, then
// the others, ascending.
type chunk struct {
	g       *graphops.Graph
	degrees graphops.Degrees
	lo, hi  int
	halo    []int32
	row     []int32 // of each node of the graph: its row if it is in halo, else -1
}

func newChunk(g *graphops.Graph, degrees graphops.Degrees) *chunk {
	return &chunk{g: g, degrees: degrees, row: slices.Repeat([]int32{-1}, g.NumNodes())}
}

// firstLayer computes the rows [lo, hi) of a model's first layer, in chunks of at most most nodes with their halo. rows
// returns the features of a chunk's nodes, dense or sparse; it is called at least rounds times, with no nodes after the
// last chunk. Done is called with the number of rows computed so far.
func (c *chunk) firstLayer(m nn.Model, fwd *nn.Fwd, lo, hi, most, rounds int, out []float32, done func(rows int), rows func(ids []int32) (*dataset.Matrix, *dataset.Sparse, error)) error {
	cols := 0
	if hi > lo {
		cols = len(out) / (hi - lo)
	}
	at := lo
	for i := 0; i < rounds || at < hi; i++ {
		end := at
		var ids []int32
		if at < hi {
			end = c.grow(at, hi, most)
			ids = c.ids()
		}
		dense, sparse, err := rows(ids)
		if err != nil {
			return err
		}
		if end == at {
			continue
		}
		input := inputOf(dense, sparse, &nn.Space{IDs: ids})
		err = nn.LayerRowsFrom(m, fwd, 0, c.slices(ids), input, 0, end-at, out[(at-lo)*cols:(end-lo)*cols], func(n int) { done(at - lo + n) })
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// inputOf returns the function that makes rows of features, dense or sparse, the input of a layer.
func inputOf(dense *dataset.Matrix, sparse *dataset.Sparse, space *nn.Space) func(f *nn.Fwd) *nn.Tensor {
	return func(f *nn.Fwd) *nn.Tensor { return Input(f, dense, sparse, space) }
}

// Input returns rows of features as the input of a pass, sparse ones unless sparse is nil.
func Input(f *nn.Fwd, dense *dataset.Matrix, sparse *dataset.Sparse, space *nn.Space) *nn.Tensor {
	if sparse != nil {
		return f.SparseInput(sparse.Rows, sparse.Cols, sparse.Indptr, sparse.Indices, sparse.Values, space)
	}
	return f.TableInput(nn.Table{F32: dense.F32, F16: dense.F16}, dense.Rows, dense.Cols, space)
}

// AllFeatures returns the features of all nodes as the first layer's input.
func AllFeatures(f *nn.Fwd, ds *dataset.Dataset) *nn.Tensor {
	sparse := ds.SparseFeatures
	if ds.Features != nil {
		sparse = nil
	}
	return Input(f, ds.Features, sparse, &nn.Space{})
}

// grow makes the chunk the longest range from lo on, at most to hi, that has at most most nodes with its halo; but at
// least one node.
func (c *chunk) grow(lo, hi, most int) (end int) {
	for _, u := range c.halo {
		c.row[u] = -1
	}
	all := c.halo[:0]
	add := func(v int32) {
		if c.row[v] < 0 {
			c.row[v] = 0
			all = append(all, v)
		}
	}
	for end = lo; end < hi; end++ {
		without := len(all)
		add(int32(end))
		for _, u := range c.g.InNeighbors(int32(end)) {
			add(u)
		}
		if end > lo && len(all) > most {
			for _, u := range all[without:] {
				c.row[u] = -1
			}
			all = all[:without]
			break
		}
	}
	c.lo, c.hi = lo, end
	c.halo = slices.DeleteFunc(all, func(u int32) bool {
		own := int(u) >= lo && int(u) < end
		if own {
			c.row[u] = -1
		}
		return own
	})
	slices.Sort(c.halo)
	for i, u := range c.halo {
		c.row[u] = int32(end - lo + i)
	}
	return end
}

// ids are the nodes of the chunk's rows.
func (c *chunk) ids() []int32 {
	ids := make([]int32, 0, c.hi-c.lo+len(c.halo))
	for v := c.lo; v < c.hi; v++ {
		ids = append(ids, int32(v))
	}
	return append(ids, c.halo...)
}

// ascending are the nodes of the chunk in ascending order; before of the halo are before its own nodes.
func (c *chunk) ascending(before int) []int32 {
	ids := slices.Clone(c.halo[:before])
	for v := c.lo; v < c.hi; v++ {
		ids = append(ids, int32(v))
	}
	return append(ids, c.halo[before:]...)
}

// slices returns the chunk's graph, with the rows ids.
func (c *chunk) slices(ids []int32) partSlices {
	first := c.g.Indptr[c.lo]
	local := &graphops.Graph{Indptr: make([]int64, len(ids)+1), Indices: make([]int32, c.g.Indptr[c.hi]-first)}
	own := c.hi - c.lo
	for i := range ids {
		local.Indptr[i+1] = c.g.Indptr[c.lo+min(i+1, own)] - first
	}
	for e := range local.Indices {
		u := c.g.Indices[first+int64(e)]
		if local.Indices[e] = u - int32(c.lo); int(u) < c.lo || int(u) >= c.hi {
			local.Indices[e] = c.row[u]
		}
	}
	if w := c.g.EdgeWeights; w != nil {
		local.EdgeWeights = w[first : first+int64(len(local.Indices))]
	}
	return partSlices{graph: local, ids: ids, first: c.g.Indptr[c.lo:c.hi], degrees: c.degrees, nodes: c.g.NumNodes(), whole: c.g}
}
