//go:build cuda && linux && cgo

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// packed divides the nodes of a batch as the host does: the row of a node that is a multiple of every stays on the device, where
// it is number node/every; the others are rest.
func packed(x tensor.Table, nodes, cols, every int, ids []int32) (places []int32, rest tensor.Table) {
	on := (nodes + every - 1) / every
	n := 0
	if x.F16 != nil {
		rest.F16 = []uint16{}
	}
	for _, v := range ids {
		if int(v)%every == 0 {
			places = append(places, v/int32(every))
			continue
		}
		places = append(places, int32(on+n))
		n++
		if x.F16 != nil {
			rest.F16 = append(rest.F16, x.F16[int(v)*cols:][:cols]...)
		} else {
			rest.F32 = append(rest.F32, x.F32[int(v)*cols:][:cols]...)
		}
	}
	return places, rest
}

// stay puts the rows of every every-th node on the device, in two pieces.
func stay(t *testing.T, f *Fed, x tensor.Table, nodes, cols, every int) {
	t.Helper()
	var rows []byte
	size := 4 * cols
	all := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x.F32))), 4*len(x.F32))
	if x.F16 != nil {
		size, all = 2*cols, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x.F16))), 2*len(x.F16))
	}
	for v := 0; v < nodes; v += every {
		rows = append(rows, all[v*size:(v+1)*size]...)
	}
	n, err := f.Room(len(rows)/size, cols, x.F16 != nil)
	ok(t, err)
	if n != len(rows)/size {
		t.Fatalf("room for %d rows, want %d", n, len(rows)/size)
	}
	ok(t, f.Put(0, rows[:n/2*size]))
	ok(t, f.Put(n/2, rows[n/2*size:]))
}

// Rows that stay on the device and those of a batch are read with the bits of the table, gathered and within sums, while the
// next batch is copied.
func TestFed(t *testing.T) {
	const nodes = 1100
	for _, c := range []struct {
		cols, every int
		half        bool
		schedule    fakegpu.Schedule
	}{{1, 3, false, fakegpu.Lazy}, {4, 1, false, fakegpu.Eager}, {33, 2, false, fakegpu.Random}, {33, 2, true, fakegpu.Lazy}, {4, 3, true, fakegpu.Random}, {4, nodes, false, fakegpu.Lazy}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			table, want := stored(numbers(nodes*c.cols), c.half)
			fake(t, fakegpu.Config{Schedule: c.schedule, Seed: 3})
			d := open(t, cuda.Options{})
			be, err := backend.New(d, nil)
			ok(t, err)
			defer be.Close()
			f := NewFed(d)
			defer f.Close()
			stay(t, f, table, nodes, c.cols, c.every)
			st, err := f.Feeder()
			ok(t, err)
			defer st.Close()
			type batch struct {
				r   *FedRows
				ids []int32
			}
			next := make(chan batch, 1)
			go func() {
				defer close(next)
				for step, n := range []int{300, 300, 1, 31, 200, 7, 33} {
					ids := some(nodes, n, step)
					if step == 5 { // rows that stay alone
						for i := range ids {
							ids[i] = int32(i * c.every % nodes)
						}
					}
					places, rest := packed(table, nodes, c.cols, c.every, ids)
					r, err := st.Prepare(nil, places, rest)
					if err != nil {
						t.Error(err)
						return
					}
					next <- batch{r, ids}
				}
			}()
			steps := 0
			for b := range next {
				fwd := tensor.NewFwd(tensor.Config{Backend: be})
				x := b.r.Input(fwd, nil)
				edges := graphops.HostBlock{NumDst: 1, NumSrc: len(b.ids), Indptr: []int64{0, 2}, Indices: []int32{0, int32(len(b.ids) - 1)}}.Block()
				sum := slices.Clone(fwd.Aggregate(edges, x, tensor.Sum).Data())
				got := slices.Clone(x.Data())
				fwd.Close()
				edges.Reset()
				b.r.Done()
				row := func(i int) []float32 { return want[int(b.ids[i])*c.cols:][:c.cols] }
				for i := range b.ids {
					if !slices.Equal(got[i*c.cols:(i+1)*c.cols], row(i)) {
						t.Fatalf("batch %d: row %d is %v, want %v", steps, i, got[i*c.cols:(i+1)*c.cols], row(i))
					}
				}
				for i, y := range sum {
					if y != row(0)[i]+row(len(b.ids) - 1)[i] {
						t.Fatalf("batch %d: the sum of two rows is %v at column %d", steps, y, i)
					}
				}
				steps++
			}
			if steps != 7 {
				t.Errorf("%d batches", steps)
			}
		})
	}
}

// A batch copies the rows that do not stay and a number for each row, and nothing else once its memory is large enough.
func TestFedCopies(t *testing.T) {
	const nodes, cols = 200, 5
	x := tensor.Table{F32: numbers(nodes * cols)}
	gpu := fake(t, fakegpu.Config{})
	if gpu == nil {
		t.Skip("a GPU does not count the bytes that are copied")
	}
	d := open(t, cuda.Options{})
	f := NewFed(d)
	defer f.Close()
	for _, every := range []int{1, 2, 7, nodes} {
		stay(t, f, x, nodes, cols, every)
		ok(t, d.Compute.Sync())
		st, err := f.Feeder()
		ok(t, err)
		for step, n := range []int{100, 100, 100, 1, 60} {
			places, rest := packed(x, nodes, cols, every, some(nodes, n, step))
			before := gpu.Written(0)
			r, err := st.Prepare(nil, places, rest)
			ok(t, err)
			ok(t, d.Copy.Sync())
			if bytes := 4*len(rest.F32) + 4*n; step > 1 && gpu.Written(0)-before != bytes {
				t.Errorf("batch %d, one of %d rows stays: %d bytes were copied, want %d", step, every, gpu.Written(0)-before, bytes)
			}
			r.Done()
		}
		st.Close()
	}
}

// Rows that stay are bounded by the memory that is free for data, a third batch waits for the first one, and reading a
// batch's rows after it, rows of another format and rows beyond the room are errors.
func TestFedRefuses(t *testing.T) {
	const nodes, cols = 100, 3
	x := numbers(nodes * cols)
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{Limit: 64 << 20})
	be, err := backend.New(d, nil)
	ok(t, err)
	defer be.Close()
	f := NewFed(d)
	defer f.Close()
	for _, rows := range []int{1 << 30, 0, 50} {
		before := d.Memory().Held[cuda.Features]
		n, err := f.Room(rows, 1000, false)
		ok(t, err)
		held := d.Memory().Held[cuda.Features]
		if most := int64(0.6 * float64(d.Memory().Limit)); n > rows || held > most || held < int64(n)*4000 || held > int64(n)*4000+512 || rows > 1000 && held < most*9/10 {
			t.Errorf("room for %d of %d rows: %d bytes are held, %d before, of at most %d", n, rows, held, before, most)
		}
	}
	stay(t, f, tensor.Table{F32: x}, nodes, cols, 4)
	for _, first := range []int{-1, 24, 25} {
		if err := f.Put(first, make([]byte, 8*cols)); err == nil || !strings.Contains(err.Error(), "there is room for 25 rows") {
			t.Errorf("rows %d and %d of 25: %v", first, first+1, err)
		}
	}
	st, err := f.Feeder()
	ok(t, err)
	defer st.Close()
	ids := some(nodes, 20, 1)
	places, rest := packed(tensor.Table{F32: x}, nodes, cols, 4, ids)
	if _, err := st.Prepare(nil, places, tensor.Table{F16: make([]uint16, len(rest.F32))}); err == nil || !strings.Contains(err.Error(), "another format") {
		t.Errorf("rows of float16 beside rows of float32: %v", err)
	}
	var rows [2]*FedRows
	for i := range rows {
		rows[i], err = st.Prepare(nil, places, rest)
		ok(t, err)
	}
	stop := make(chan struct{})
	close(stop)
	if _, err := st.Prepare(stop, places, rest); !errors.Is(err, ErrStopped) {
		t.Errorf("a third batch: %v", err)
	}
	other, err := f.Feeder() // of a loop within the loop
	ok(t, err)
	inner, err := other.Prepare(nil, places, rest)
	ok(t, err)
	fwd := tensor.NewFwd(tensor.Config{Backend: be})
	defer fwd.Close()
	late := rows[0].Input(fwd, nil)
	if got := inner.Input(fwd, nil).Data(); !slices.Equal(got[:cols], x[int(ids[0])*cols:][:cols]) {
		t.Errorf("row 0 of the inner loop is %v", got[:cols])
	}
	inner.Done()
	other.Close()
	if again, err := f.Feeder(); err != nil || again != other {
		t.Errorf("a closed feeder is not used again: %v", err)
	}
	rows[0].Done()
	rows[1].Done()
	if err := nn.Try(func() { late.Data() }); err == nil || !strings.Contains(err.Error(), "earlier batch") {
		t.Errorf("reading a batch's rows after it: %v", err)
	}
}

// No rows stay where another process has taken the memory that was free.
func TestFedWithoutMemory(t *testing.T) {
	gpu := fake(t, fakegpu.Config{})
	if gpu == nil {
		t.Skip("needs a simulated device")
	}
	f := NewFed(open(t, cuda.Options{}))
	defer f.Close()
	gpu.Inject(fakegpu.Fault{Call: "cuMemAlloc_v2", Status: 2})
	if n, err := f.Room(5000, 1000, false); n != 0 || err != nil {
		t.Errorf("room for %d rows, %v", n, err)
	}
}
