package store

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/parallel"
)

// FeatureOptions configure the placement of features. The zero value places them on the device if
// they fit there, in their own format.
type FeatureOptions struct {
	Place Place
	// Graph determines the most used rows: those of the nodes with the most out-edges. Cached needs
	// it.
	Graph *graphops.Graph
	// CacheBytes is the device memory for the rows of Cached; 0 means all memory free for data.
	CacheBytes int64
	// Mapped says that the features are in a mapped file. The file is pinned in place if the device
	// supports it; otherwise pinned memory holds a copy.
	Mapped bool
	// Resident says that the mapped features are in a memory file, so that pinning them takes no
	// additional memory.
	Resident bool
	// Host limits the host memory that may be pinned; nil asks the host.
	Host *Host
}

// Features are a matrix [Rows, Cols] whose rows a device's kernels read as float32, also if it is
// stored as float16.
type Features struct {
	Rows, Cols int
	Half       bool // stored in float16, as it is on the host
	Place      Place
	CachedRows int

	d     *cuda.Device
	host  tensor.Table
	mem   backend.Memory
	parts []*array
	why   error // the reason if Auto chose Staged

	loops     loops[Stager]
	gatherers loops[Gatherer]
}

// PutFeatures puts x [rows, cols] where a device's kernels read it, in float16 where x is: half the
// memory and half the traffic. x must not change until Close. The cost is one copy of the data that
// is placed elsewhere.
func PutFeatures(d *cuda.Device, x tensor.Table, rows, cols int, o FeatureOptions) (*Features, error) {
	if n := max(len(x.F32), len(x.F16)); rows < 0 || cols < 0 || n != rows*cols {
		return nil, fmt.Errorf("store: %d numbers do not form a matrix of %d rows and %d columns", n, rows, cols)
	}
	if o.Graph != nil && o.Graph.NumNodes() != rows {
		return nil, fmt.Errorf("store: there are features of %d nodes, but the graph has %d", rows, o.Graph.NumNodes())
	}
	if o.Place == Cached && o.Graph == nil {
		return nil, errors.New("store: a cache of features needs the graph to find the most used rows; set FeatureOptions.Graph")
	}
	f := &Features{Rows: rows, Cols: cols, Half: x.F16 != nil, d: d, host: x}
	places := []Place{o.Place}
	if o.Place == Auto {
		places = f.choose(&o)
	}
	var err error
	for i, p := range places {
		f.Place, f.mem, f.CachedRows = p, backend.Memory{Half: f.Half}, 0
		before := err
		if err = f.put(o); err == nil {
			if p == Staged {
				f.why = before
			}
			return f, nil
		}
		// The old place is freed first, whether or not there is room in the new one.
		if e := f.Close(); e != nil || !errors.Is(err, cuda.OutOfMemory) || i == len(places)-1 {
			return nil, fmt.Errorf("store: putting the features %s: %w", p, errors.Join(err, e))
		}
	}
	return nil, err
}

// choose returns the places with enough room, the best first. The next one is tried if another
// process has taken the memory meanwhile.
func (f *Features) choose(o *FeatureOptions) []Place {
	places := []Place{Pinned, Staged}
	left := free(f.d)
	if o.CacheBytes == 0 {
		if o.CacheBytes = left; f.Bytes() <= left {
			o.CacheBytes = left / 2 // less memory was free than measured
		}
	}
	if o.Graph != nil && f.cacheRows(o.CacheBytes) > 0 {
		places = append([]Place{Cached}, places...)
	}
	if f.Bytes() <= left {
		places = append([]Place{Device}, places...)
	}
	return places
}

// width returns the bytes of a stored row.
func (f *Features) width() int64 {
	if f.Half {
		return 2 * int64(f.Cols)
	}
	return 4 * int64(f.Cols)
}

// Bytes returns the bytes of all stored rows.
func (f *Features) Bytes() int64 { return int64(f.Rows) * f.width() }

// cacheRows is the number of rows in a cache of the given size, which also holds a slot for every
// row.
func (f *Features) cacheRows(bytes int64) int {
	return int(max(0, min(int64(f.Rows), (bytes-4*int64(f.Rows))/max(f.width(), 1))))
}

func (f *Features) put(o FeatureOptions) error {
	if f.Rows == 0 || f.Cols == 0 {
		return nil
	}
	if f.Place == Staged {
		return nil
	}
	if f.Place == Cached {
		if o.CacheBytes == 0 {
			o.CacheBytes = free(f.d)
		}
		if err := f.cache(o); err != nil {
			return err
		}
	}
	place := f.Place
	if place == Cached {
		place = Pinned
	}
	a, err := put(f.d, cuda.Features, f.bytes(), place, mapping{o.Mapped, o.Resident, o.Host})
	if err != nil {
		return err
	}
	f.parts = append(f.parts, a)
	f.mem.Ptr, f.mem.Host = a.ptr, place == Pinned
	return nil
}

// cache copies the most used rows to the device, with a table of their positions.
func (f *Features) cache(o FeatureOptions) error {
	n := f.cacheRows(o.CacheBytes)
	if n == 0 {
		return fmt.Errorf("a cache of %s is too small for a row and the 4 bytes per node of its index; enlarge it, or leave the rows in pinned host memory", phrase.Bytes(o.CacheBytes))
	}
	ids := hottest(o.Graph, n)
	slots := make([]int32, f.Rows)
	for i := range slots {
		slots[i] = -1
	}
	for i, v := range ids {
		slots[v] = int32(i)
	}
	rows := make([]byte, int64(n)*f.width())
	f.gather(rows, ids)
	for _, p := range []struct {
		to *cuda.Ptr
		b  []byte
	}{{&f.mem.Slots, bytesOf(slots)}, {&f.mem.Cache, rows}} {
		a, err := put(f.d, cuda.Features, p.b, Device, mapping{})
		if err != nil {
			return err
		}
		f.parts = append(f.parts, a)
		*p.to = a.ptr
	}
	f.CachedRows = n
	return nil
}

// gather copies the stored rows with the given ids into dst.
func (f *Features) gather(dst []byte, ids []int32) {
	w, all := int(f.width()), f.bytes()
	parallel.For(0, len(ids), max(1, (1<<16)/max(f.Cols, 1)), func(lo, hi int) {
		for i, v := range ids[lo:hi] {
			copy(dst[(lo+i)*w:][:w], all[int(v)*w:][:w])
		}
	})
}

// hottest returns the n nodes with the most out-edges, in ascending order; of nodes with equally
// many, those with the lowest ids.
func hottest(g *graphops.Graph, n int) []int32 {
	uses := make([]int32, g.NumNodes())
	for _, u := range g.Indices {
		uses[u]++
	}
	// nodes[c] is the number of nodes with c out-edges; more than most count as most
	const most = 1 << 20
	nodes := make([]int, most+1)
	for _, c := range uses {
		nodes[min(c, most)]++
	}
	limit, left := int32(most), n // nodes with more out-edges than limit are taken, and left of those with exactly limit
	for ; limit > 0 && nodes[limit] <= left; limit-- {
		left -= nodes[limit]
	}
	out := make([]int32, 0, n)
	for v, c := range uses {
		c = min(c, most)
		if c > limit || c == limit && left > 0 {
			if c == limit {
				left--
			}
			out = append(out, int32(v))
		}
	}
	return out
}

// Share makes the device's backend read the rows in place. For Staged features [Rows.Use] does this
// batch by batch.
func (f *Features) Share(be *backend.Backend) {
	if f.Place != Staged {
		f.share(be, &f.mem)
	}
}

func (f *Features) share(be *backend.Backend, mem *backend.Memory) {
	if f.Half {
		be.ShareHalf(f.host.F16, mem)
		return
	}
	be.Share(f.host.F32, mem)
}

// bytes returns all rows in host memory.
func (f *Features) bytes() []byte {
	if f.Half {
		return bytesOf(f.host.F16)
	}
	return bytesOf(f.host.F32)
}

func (f *Features) String() string {
	kind := ""
	if f.Half {
		kind = " in float16"
	}
	all := fmt.Sprintf("features of %d nodes%s (%s)", f.Rows, kind, phrase.Bytes(f.Bytes()))
	switch f.Place {
	case Cached:
		return fmt.Sprintf("%s: the %d rows used most (%s) on the device, the others in pinned host memory", all, f.CachedRows, phrase.Bytes(int64(f.CachedRows)*f.width()))
	case Staged:
		return all + " in host memory, each batch's rows copied to the device" + because(f.why)
	}
	return fmt.Sprintf("%s %s", all, f.Place)
}

// Close frees the memory, in the order of the compute stream.
func (f *Features) Close() error {
	var first error
	for _, a := range f.parts {
		if err := a.close(); err != nil && first == nil {
			first = err
		}
	}
	f.parts = nil
	f.loops.close(func(s *Stager) { s.pair.close((*Rows).close) })
	f.gatherers.close(func(g *Gatherer) { g.pair.close((*Gathered).close) })
	return first
}
