//go:build cuda && linux && cgo

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/backend"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// onTheDevice returns a block with the sources ids and a number of edges, as a sampler on the device makes it.
func onTheDevice(t *testing.T, d *cuda.Device, ids []int32, edges int) *graphops.Block {
	t.Helper()
	at, err := d.Alloc(cuda.Sampling, int64(4*len(ids)))
	ok(t, err)
	t.Cleanup(at.Free)
	ok(t, cuda.CopyIn(d.Compute, at.Ptr, ids))
	ok(t, d.Compute.Sync())
	b := graphops.HostBlock{NumDst: 1, NumSrc: len(ids), Indptr: []int64{0, int64(edges)}, Indices: make([]int32, edges), SrcIDs: ids}.Block()
	b.Dev = &cuda.BlockArrays{Indptr: at.Ptr, SrcIDs: at.Ptr}
	return b
}

// gathers counts the launches of kernels that gather rows.
func gathers(d *cuda.Device) (n int64) {
	for name, launches := range d.Launches() {
		if strings.HasPrefix(name, "gather_") {
			n += launches
		}
	}
	return n
}

// The backend reads the rows that were gathered ahead, in two batches at a time, which are the table's; without edges that make it
// worthwhile, and for features on the device, nothing is gathered.
func TestGatherAhead(t *testing.T) {
	fake(t, fakegpu.Config{})
	d := open(t, cuda.Options{})
	be, err := backend.New(d, nil)
	ok(t, err)
	defer be.Close()
	const nodes, cols = 300, 9
	x, g := numbers(nodes*cols), ring(nodes)
	for _, half := range []bool{false, true} {
		for _, place := range []Place{Device, Pinned, Cached} {
			t.Run(fmt.Sprint(place, "/f16 ", half), func(t *testing.T) {
				table, want := stored(x, half)
				f, err := PutFeatures(d, table, nodes, cols, FeatureOptions{Place: place, Graph: g, CacheBytes: 4*nodes + 2*nodes*cols})
				ok(t, err)
				defer func() { ok(t, f.Close()) }()
				f.Share(be)
				defer be.Drop(table.F32)
				defer be.DropHalf(table.F16)
				a, err := f.Gatherer()
				ok(t, err)
				defer a.Close()
				read := func(b *graphops.Block) []float32 {
					in, found := be.Kept(table.F32)
					if half {
						in, found = be.KeptHalf(table.F16)
					}
					if !found {
						t.Fatal("the features are not shared with the backend")
					}
					out := be.Alloc(b.NumSrc * cols)
					defer be.Free(out)
					be.GatherRows(out, in, ops.Rows{N: b.NumSrc, Of: b}, cols)
					got := make([]float32, b.NumSrc*cols)
					be.Download(got, out)
					return got
				}
				rowsOf := func(ids []int32) (rows []float32) {
					for _, v := range ids {
						rows = append(rows, want[int(v)*cols:][:cols]...)
					}
					return rows
				}
				for range first {
					r, err := a.Prepare(nil, be, onTheDevice(t, d, some(nodes, 40, 0), 100))
					ok(t, err)
					if r.block != nil {
						t.Error("rows are gathered ahead before a pass has taken its memory")
					}
					r.Done()
				}
				var blocks []*graphops.Block
				var rows []*Gathered
				for step := range 2 {
					b := onTheDevice(t, d, some(nodes, 40+step, step), 100)
					r, err := a.Prepare(nil, be, b)
					ok(t, err)
					blocks, rows = append(blocks, b), append(rows, r)
				}
				if ahead := rows[0].block != nil; ahead != (place != Device) {
					t.Fatalf("rows are gathered ahead: %v", ahead)
				}
				if place != Device {
					stop := make(chan struct{})
					close(stop)
					if _, err := a.Prepare(stop, be, blocks[0]); !errors.Is(err, ErrStopped) {
						t.Errorf("a third batch, with stop closed: %v", err)
					}
				}
				for i, b := range blocks {
					rows[i].Use()
					if place != Device && cuda.ArraysOf(b).Rows == 0 {
						t.Error("the block has no rows")
					}
					ok(t, d.Copy.Sync()) // has counted its own launches then
					before := gathers(d)
					if got, want := read(b), rowsOf(b.SrcIDs()); !slices.Equal(got, want) {
						t.Errorf("batch %d: %v, want %v", i, got[:cols], want[:cols])
					}
					if again := gathers(d) > before; again != (place == Device) {
						t.Errorf("batch %d: its rows are gathered again: %v", i, again)
					}
					rows[i].Done()
					if cuda.ArraysOf(b).Rows != 0 {
						t.Error("the block has rows after the end of their use")
					}
				}
				few := onTheDevice(t, d, some(nodes, 40, 0), 40)
				r, err := a.Prepare(nil, be, few)
				ok(t, err)
				if r.Use(); r.block != nil || !slices.Equal(read(few), rowsOf(few.SrcIDs())) {
					t.Error("rows are gathered of a block with few edges")
				}
				r.Done()
				unused, err := a.Prepare(nil, be, blocks[0])
				ok(t, err)
				unused.Done()
			})
		}
	}
}
