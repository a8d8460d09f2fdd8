package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Place says where a rank is: the number of its machine, and its number among the ranks there, which share memory.
type Place struct {
	Machine, LocalRank, LocalWorld int
	// Device returns the rank's GPU; nil on the CPU. It is nil where there is none.
	Device func() Device
	Note   func(format string, args ...any) // prints; nil prints nothing
}

// summedNodes is the number of nodes whose scores the ranks of a machine add up at a time.
const summedNodes = 1 << 20

// fillBy fills the cache with the rows of the highest scores. The ranks of a machine have one cache, which has the bytes
// of all of them: they add up their scores, which are 0 for rows that a rank has itself, and each asks for a share of the
// rows. Collective.
func (f *Fetcher) fillBy(score []float32, bytes int64) error {
	limit, most, err := f.ofMachine(bytes)
	if err != nil || limit == 0 && most == 0 {
		return err
	}
	if most > 1 {
		if err := f.sumScores(score, most); err != nil {
			return err
		}
	}
	of := make([]int32, len(score))
	if f.parts != nil {
		of = f.parts.Of()
	}
	hottest := hotness.Hottest(score, of, -1, len(score))
	f.cache = nil // its memory is free for the new one
	if f.memory != nil {
		f.memory.Release()
		f.memory = nil
	}
	if most <= 1 {
		f.cache, err = plane.NewCache(context.Background(), f.source, hottest, len(score), f.own.RowBytes(), limit)
	} else {
		f.cache, err = plane.NewSharedCache(context.Background(), f.source, hottest, len(score), f.own.RowBytes(), limit, plane.Shared{
			Rank: f.at.LocalRank, Ranks: f.at.LocalWorld, Own: f.own, Memory: f.sharedMemory,
			Wait: func() error { return f.team.o.Comm.Barrier(f.site("cache of features")) },
		})
	}
	if err != nil {
		return err
	}
	f.filled += int64(f.cache.Asked()) * int64(f.own.RowBytes())
	return nil
}

func (f *Fetcher) site(kind string) collective.Site { return f.team.o.Site(kind) }

// gather returns what every rank says. Collective.
func (f *Fetcher) gather(kind string, mine ...int64) ([][]int64, error) {
	var b []byte
	for _, x := range mine {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	got, err := f.team.o.Comm.AllGather(f.site(kind), b)
	if err != nil {
		return nil, err
	}
	all := make([][]int64, len(got))
	for r, b := range got {
		for ; len(b) >= 8; b = b[8:] {
			all[r] = append(all[r], int64(binary.LittleEndian.Uint64(b)))
		}
		if len(all[r]) != len(mine) {
			return nil, fmt.Errorf("gnb: rank %d says %d numbers about its %s, and this one %d; all ranks must run the same version", r, len(all[r]), kind, len(mine))
		}
	}
	return all, nil
}

// ofMachine returns the bytes that the ranks of this machine have together, and the number of ranks of the machine that
// has most; both are 0 if no rank has a cache. Collective.
func (f *Fetcher) ofMachine(bytes int64) (limit int64, most int, err error) {
	all, err := f.gather("bytes of the cache of features", int64(f.at.Machine), bytes)
	if err != nil {
		return 0, 0, err
	}
	ranks, any := map[int64]int{}, false
	for _, x := range all {
		ranks[x[0]]++
		most = max(most, ranks[x[0]])
		any = any || x[1] > 0
		if x[0] == int64(f.at.Machine) {
			limit += x[1]
		}
	}
	if !any {
		return 0, 0, nil
	}
	return limit, most, nil
}

// sumScores replaces the scores by their sums over the ranks of this machine. The machine with most ranks has as many as
// most. Collective.
func (f *Fetcher) sumScores(score []float32, most int) error {
	chunk := min(summedNodes, len(score))
	m, err := f.team.o.Comm.NewMatrix(f.site("scores of rows to cache"), most, chunk)
	if err != nil {
		return err
	}
	defer m.Release()
	for lo := 0; lo < len(score); lo += chunk {
		mine := score[lo:min(lo+chunk, len(score))]
		copy(m.Data()[f.at.LocalRank*chunk:], mine)
		if err := f.team.o.Comm.Barrier(f.site("scores of rows to cache")); err != nil {
			return err
		}
		clear(mine)
		for r := range f.at.LocalWorld {
			for i, x := range m.Data()[r*chunk:][:len(mine)] {
				mine[i] += x
			}
		}
		if err := f.team.o.Comm.Barrier(f.site("scores of rows to cache")); err != nil {
			return err
		}
	}
	return nil
}

// sharedMemory returns memory of n bytes that the ranks of this machine share. Collective.
func (f *Fetcher) sharedMemory(n int) ([]byte, error) {
	all, err := f.gather("memory of the cache of features", int64(n))
	if err != nil {
		return nil, err
	}
	size := int64(4)
	for _, x := range all {
		size = max(size, x[0]) // a matrix has the same size on all machines; what is not used takes no memory
	}
	if f.memory, err = f.team.o.Comm.NewMatrix(f.site("memory of the cache of features"), int((size+3)/4), 1); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.memory.Data()))), n), nil
}

// findNear finds the ranks of this machine, if any machine has several ranks and each rank does not replace rows of its own.
// Collective.
func (f *Fetcher) findNear() error {
	if f.o.CachePolicy == BeladyPolicy || f.team.o.Comm.Size() == 1 {
		return nil
	}
	all, err := f.gather("ranks of each machine", int64(f.at.Machine))
	if err != nil {
		return err
	}
	ranks, several := map[int64][]int{}, false
	for r, x := range all {
		ranks[x[0]] = append(ranks[x[0]], r)
		several = several || len(ranks[x[0]]) > 1
	}
	if !several {
		return nil
	}
	f.near = ranks[int64(f.at.Machine)]
	return f.team.besides()
}

// machine returns what the ranks of this machine have together in a window. Collective.
func (f *Fetcher) machine() (*plane.Machine, error) {
	if f.shared != nil {
		return f.shared, nil
	}
	nodes, size := f.data.Nodes(), f.own.RowBytes()
	slots := (nodes*size + 7) / 8 * 8     // where Machine.Slots begins
	got := slots + (4*nodes+7)/8*8        // where the numbers of Machine.Got begin
	bytes := got + 8*f.team.o.Comm.Size() // the same on all machines
	var err error
	// Memory that is not written to takes none of the machine's.
	if f.rows, err = f.team.o.Comm.NewMatrix(f.site("memory of the next batches' features"), (bytes+3)/4, 1); err != nil {
		return nil, fmt.Errorf("gnb: making memory for the features of the next batches: %w", err)
	}
	rows := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.rows.Data()))), bytes)
	f.shared = &plane.Machine{
		Comm: f.team.beside, Site: ahead("features of a machine's ranks"), Ranks: f.near, Rows: rows[:nodes*size], Nodes: nodes,
		Slots: unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(rows[slots:]))), nodes),
		Got:   unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&rows[got])), len(f.near)),
	}
	return f.shared, nil
}

// smallest makes this rank's numbers the smallest ones of all ranks. Collective.
func (f *Fetcher) smallest(kind string, mine ...*int64) error {
	values := make([]int64, len(mine))
	for i, x := range mine {
		values[i] = *x
	}
	all, err := f.gather(kind, values...)
	if err != nil {
		return err
	}
	for _, of := range all {
		for i, x := range of {
			*mine[i] = min(*mine[i], x)
		}
	}
	return nil
}
