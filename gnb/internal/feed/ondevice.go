package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Device is a rank's GPU, on which rows of features stay; see [PlaneOptions.GPUCache].
type Device interface {
	// Stay chooses the rows by the score of each, and copies them there: it calls [Fetcher.Stay] with its memory, so that only
	// programs for GPUs link that.
	Stay(f *Fetcher, score []float32) error
}

// DeviceMemory is the memory of a GPU for rows that stay there.
type DeviceMemory interface {
	// Room makes room for rows of cols columns, of float16 (half) or float32: for as many as fit, and returns how many.
	Room(rows, cols int, half bool) (int, error)
	// Put copies rows there, from number first on.
	Put(first int, rows []byte) error
}

// FarWeight is how much more a read of a row counts that comes from another machine or a disk than one of a row in this
// machine's memory, in the choice of rows for a GPU. Both are copied to the GPU, at 25 GB/s over PCIe 4 with 16 lanes; the
// first one before passes a network of 50 Gbit/s or a disk of 6 GB/s, at a quarter of that rate: 1 + 4 times as long.
const FarWeight = 5

// whole is the [Own] of a rank that has all rows in memory, those of an undivided dataset.
type whole struct {
	onDisk  // for the layout of rows
	threads int
}

func (whole) Has(int32) bool { return true }

func (w whole) Gather(dst []byte, ids []int32) error {
	size, all := w.RowBytes(), bytesOf(w.of.F32)
	if w.of.Half() {
		all = bytesOf(w.of.F16)
	}
	parallel.For(w.threads, len(ids), max(1, (1<<16)/max(1, size)), func(lo, hi int) {
		for i, v := range ids[lo:hi] {
			copy(dst[(lo+i)*size:][:size], all[int(v)*size:])
		}
	})
	return nil
}

// newWholeFetcher returns a Fetcher for ranks whose GPUs get the rows of an undivided dataset from the host; nil if a rank's
// does not. Collective.
func newWholeFetcher(t *Team, o PlaneOptions, at Place) (*Fetcher, error) {
	f := &Fetcher{o: o, team: t, data: t.o.Data, at: at}
	fed := int64(1)
	if x := t.o.Data.Features; x == nil || at.device(o) == nil {
		fed = 0
	} else {
		f.own = whole{onDisk{x}, t.o.Threads}
	}
	if err := f.smallest("features that the host copies to GPUs", &fed); err != nil || fed == 0 {
		return nil, err
	}
	return f, nil
}

// device returns the rank's GPU if rows of features are to stay there, else nil.
func (f *Fetcher) device() Device { return f.at.device(f.o) }

func (p Place) device(o PlaneOptions) Device {
	if o.GPUCache == "" || p.Device == nil {
		return nil
	}
	return p.Device()
}

// Stay copies rows to the rank's GPU, where they stay: those that the batches of an epoch read most, by their score. The
// scores of these rows become 0. Collective if the source is.
func (f *Fetcher) Stay(score []float32, d DeviceMemory) error {
	size, cols := f.own.RowBytes(), f.data.FeatureDim()
	share, bytes, err := plane.ParseSize("GPUCache", f.o.GPUCache)
	if err != nil || size == 0 {
		return err
	}
	most := int(bytes / int64(size))
	if share > 0 {
		most = int(share * float64(len(score)) / float64(f.team.o.Comm.Size()))
	}
	weighted := slices.Clone(score)
	for v := range weighted {
		if !f.own.Has(int32(v)) {
			weighted[v] *= FarWeight
		}
	}
	hottest := hotness.Hottest(weighted, make([]int32, len(score)), -1, min(most, len(score)))
	n, err := d.Room(len(hottest), cols, size < 4*cols)
	if err != nil {
		return fmt.Errorf("gnb: making memory for rows of features on the GPU: %w", err)
	}
	limit := ""
	if n < len(hottest) {
		limit = fmt.Sprintf(" (it has no room for the %s that GPUCache %q means)", phrase.Count(len(hottest), "row"), f.o.GPUCache)
	}
	ids := hottest[:n]
	slices.Sort(ids)
	hot, err := plane.NewIndex(ids, len(score))
	if err != nil {
		return err
	}
	var piece []byte
	memory := func(_, n int) []byte {
		if cap(piece) < n*size {
			piece = make([]byte, n*size)
		}
		return piece[:n*size]
	}
	asked, err := plane.Fetch(context.Background(), f.source, f.own, ids, size, memory, d.Put)
	if err != nil {
		return fmt.Errorf("gnb: copying rows of features to the GPU: %w", err)
	}
	for _, v := range ids {
		score[v] = 0
	}
	f.filled += int64(asked) * int64(size)
	says := "no rows of features stay on the GPU of rank 0"
	if n > 0 {
		f.hot = hot
		says = fmt.Sprintf("the GPU of rank 0 keeps the %s that batches read most (%s)", phrase.Count(n, "row"), phrase.Bytes(int64(n)*int64(size)))
	}
	if f.at.Note != nil {
		f.at.Note("%s%s", says, limit)
	}
	return nil
}

// split divides the nodes of a batch: rest are those whose rows are not on the GPU, and places says where each row of the
// batch is: a row on the GPU, or behind these, at its number in rest. It is nil if no rows stay on the GPU.
func (f *Fetcher) split(ids []int32) (rest, places []int32) {
	if f.hot == nil {
		return ids, nil
	}
	places = make([]int32, len(ids))
	on := int32(f.hot.Len())
	for i, v := range ids {
		if places[i] = f.hot.Find(v); places[i] < 0 {
			places[i] = on + int32(len(rest))
			rest = append(rest, v)
		}
	}
	f.here.Add(int64(len(ids) - len(rest)))
	f.copied.Add(int64(len(rest) * f.own.RowBytes()))
	return rest, places
}
