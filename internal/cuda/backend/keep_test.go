//go:build cuda && linux && cgo

package backend

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/expect"
)

// Kept finds host memory that is kept by any part of it, but not by a range that reaches beyond it.
// Results that are computed into kept memory stay on the device until Pull.
func TestKeep(t *testing.T) {
	be := open(t, fakegpu.Config{})
	all := make([]float32, 30)
	for i := range all {
		all[i] = float32(i)
	}
	// The parts are kept in another order than that of their addresses.
	parts := [][]float32{all[20:25], all[2:8], all[10:20]}
	for _, p := range parts {
		if _, err := be.Keep(p); err != nil {
			t.Fatal(err)
		}
	}
	read := func(x ops.Buffer) []float32 {
		out := make([]float32, x.N)
		be.Download(out, x)
		return out
	}
	for lo := range all {
		for hi := lo + 1; hi <= len(all); hi++ {
			inside := lo >= 2 && hi <= 8 || lo >= 10 && hi <= 20 || lo >= 20 && hi <= 25
			x, ok := be.Kept(all[lo:hi])
			if ok != inside {
				t.Fatalf("[%d,%d) is kept: %v", lo, hi, ok)
			}
			if ok && !slices.Equal(read(x), all[lo:hi]) {
				t.Fatalf("[%d,%d) holds %v", lo, hi, read(x))
			}
		}
	}
	x := be.Wrap(all[4:6])
	be.Upload(x, []float32{-1, -2})
	be.Free(x) // frees nothing, because the memory is kept
	if all[4] != 4 {
		t.Error("the host's memory has changed before Pull")
	}
	if err := be.Pull(all[2:8]); err != nil || !slices.Equal(all[2:8], []float32{2, 3, -1, -2, 6, 7}) {
		t.Errorf("pulled %v, %v", all[2:8], err)
	}
	all[3] = 33
	if err := be.Push(all[3:4]); err != nil || !slices.Equal(read(be.Wrap(all[2:4])), []float32{2, 33}) {
		t.Errorf("pushed %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("memory was kept twice")
			}
		}()
		be.Share(all[7:11], &Memory{})
	}()
	release, err := be.Hold(all[26:])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := be.Kept(all[26:]); !ok {
		t.Error("memory is not kept after Hold")
	}
	release()
	if _, ok := be.Kept(all[26:]); ok {
		t.Error("memory is still kept after its release")
	}
	release, err = be.Hold(all[11:13])
	if err != nil {
		t.Fatal(err)
	}
	release()
	for _, p := range parts {
		if _, ok := be.Kept(p); !ok {
			t.Error("releasing a Hold has dropped memory that was kept before")
		}
		be.Drop(p)
		be.Drop(p)
		if _, ok := be.Kept(p); ok {
			t.Error("memory is still kept after Drop")
		}
	}
}

// passing counts the floats that are copied to the host.
type passing struct {
	*Backend
	noRoom bool
	floats int
}

func (p *passing) Download(dst []float32, src ops.Buffer) {
	p.floats += len(dst)
	p.Backend.Download(dst, src)
}

func (p *passing) Room(host []float32) (release func(), ok bool) {
	if p.noRoom {
		return nil, false
	}
	return p.Backend.Room(host)
}

// The rows between two layers of a layer-wise evaluation stay on the device; with or without room for them, results have the
// same bits. A matrix has room if four times as much is free.
func TestRoomBetweenLayers(t *testing.T) {
	const in, out = 6, 3
	x := expect.Normal(34*in, 1)
	k := newKarate(t, nn.NewGATModel(nn.ModelConfig{In: in, Hidden: 8, Out: out, Layers: 3, Heads: 2}))
	be := open(t, fakegpu.Config{})
	compute := func(noRoom bool) ([]float32, int) {
		t.Helper()
		p := &passing{Backend: be, noRoom: noRoom}
		y, _, err := nn.LayerWise(k.model, nn.NewFwd(nn.Config{Backend: p}), k.ds.Graph, x, in)
		if err != nil {
			t.Fatal(err)
		}
		return y, p.floats
	}
	there, last := compute(false)
	here, all := compute(true)
	if !slices.Equal(there, here) {
		t.Error("the results differ")
	}
	if last != 34*out || all != 34*(8+8+out) {
		t.Errorf("%d and %d floats were copied to the host", last, all)
	}
	if len(be.kept) != 0 {
		t.Errorf("%d matrices are still kept", len(be.kept))
	}
	m := be.Device().Memory()
	if !onGPU { // whose memory is larger than this host's
		if _, ok := be.Room(make([]float32, (m.Limit-m.Reserved)/16+1)); ok {
			t.Error("there is room for more than a quarter of the free memory")
		}
	}
	if _, ok := be.Room(nil); ok {
		t.Error("there is room for nothing")
	}
}

// Hold succeeds although rows that a layer has gathered occupy the memory that it needs: they are
// freed.
func TestHoldAfterSlices(t *testing.T) {
	if onGPU {
		t.Skip("a real device has more memory than this fills")
	}
	be := open(t, fakegpu.Config{Memory: 8 << 20})
	const gathered = 2 << 20
	m := be.Device().Memory()
	h := make([]float32, int(m.Limit-m.Reserved)/4-gathered/8)
	for _, before := range []int{0, gathered} {
		if before > 0 && !be.tryRoom(&be.slice.rows, before) {
			t.Fatal("no room for the rows")
		}
		release, err := be.Hold(h)
		if err != nil {
			t.Fatalf("after rows of %d bytes: %v", before, err)
		}
		release()
	}
}
