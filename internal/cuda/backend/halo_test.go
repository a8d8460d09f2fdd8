//go:build cuda && linux && cgo

package backend

import (
	"slices"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/cuda/nccl"
)

// FillHalo copies the other rank's rows into the halo. AddHalo adds the rows of the other rank's
// halo to this rank's own rows, one after the other.
func TestHalo(t *testing.T) {
	if onGPU {
		t.Skip("needs two simulated devices and the test NCCL")
	}
	const cols = 5
	halos := []*graphops.Halo{
		{Own: 3, From: [][]int32{nil, {1, 0}}, To: [][]int32{nil, {2, 0, 2}}},
		{Own: 2, From: [][]int32{{2, 0, 2}, nil}, To: [][]int32{{1, 0}, nil}},
	}
	rows := make([][]float32, len(halos)) // own rows, then the halo's
	for r, h := range halos {
		for i := range (h.Own + len(h.From[1-r])) * cols {
			rows[r] = append(rows[r], float32(100*r+i)/7)
		}
	}
	filled, added := make([][]float32, len(halos)), make([][]float32, len(halos))
	for r, h := range halos {
		filled[r], added[r] = slices.Clone(rows[r]), slices.Clone(rows[r])
		for i, from := range h.From[1-r] {
			copy(filled[r][(h.Own+i)*cols:], rows[1-r][int(from)*cols:][:cols])
		}
		for i, to := range h.To[1-r] {
			for j := range cols {
				added[r][int(to)*cols+j] += rows[1-r][(halos[1-r].Own+i)*cols+j]
			}
		}
	}
	fakegpu.New(t, fakegpu.Config{Devices: len(halos), NoRaces: true})
	o := nccl.Options{Library: fakelibs.Build(t, "nccl")}
	id, err := nccl.NewID(o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, h := range halos {
		wg.Go(func() {
			d, err := cuda.Open(cuda.Options{Device: r, Rank: r})
			if err != nil {
				t.Error(err)
				return
			}
			be, err := New(d, nil)
			if err != nil {
				t.Error(err)
				return
			}
			c, err := nccl.Open(t.Context(), d, id, r, len(halos), o)
			if err != nil {
				t.Error(err)
				return
			}
			check(t, be, r, "fills", rows[r], func(x ops.Buffer) { be.FillHalo(c, h, x, cols) }, filled[r])
			check(t, be, r, "adds", rows[r], func(x ops.Buffer) { be.AddHalo(c, h, x, cols) }, added[r])
			count(d)
			be.Close()
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Rows are added to those that ids name; the others stay.
func TestAddRows(t *testing.T) {
	be := open(t, fakegpu.Config{})
	const cols = 5
	ids := []int32{4, 0, 7}
	x, out := make([]float32, len(ids)*cols), make([]float32, 8*cols)
	for i := range x {
		x[i] = float32(i) / 7
	}
	for i := range out {
		out[i] = float32(100 - i)
	}
	want := slices.Clone(out)
	for i, id := range ids {
		for j := range cols {
			want[int(id)*cols+j] += x[i*cols+j]
		}
	}
	added := be.Alloc(len(x))
	defer be.Free(added)
	be.Upload(added, x)
	at := upload(t, be, ids)
	check(t, be, 0, "adds", out, func(d ops.Buffer) {
		be.addRows(addr(d), addr(added), at, 0, cols)
		be.addRows(addr(d), addr(added), at, len(ids), cols)
	}, want)
}

// check compares a tensor on the device after f with want.
func check(t *testing.T, be *Backend, rank int, what string, from []float32, f func(x ops.Buffer), want []float32) {
	x := be.Alloc(len(from))
	defer be.Free(x)
	be.Upload(x, from)
	f(x)
	got := make([]float32, len(from))
	be.Download(got, x)
	if !slices.Equal(got, want) {
		t.Errorf("rank %d %s: %v, want %v", rank, what, got, want)
	}
}
