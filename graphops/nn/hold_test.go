package nn

import (
	"errors"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/expect"
)

// holding is the CPU backend with a device's ability to hold inputs.
type holding struct {
	ops.Backend
	now   map[*float32]bool
	times int
	fail  error
}

func (h *holding) Kept([]float32) (ops.Buffer, bool) { return ops.Buffer{}, false }

func (h *holding) Hold(x []float32) (func(), error) {
	if h.fail != nil {
		return nil, h.fail
	}
	h.now[&x[0]] = true
	h.times++
	return func() { delete(h.now, &x[0]) }, nil
}

func (h *holding) Room([]float32) (func(), bool) { return nil, false }

var _ ops.Keeper = (*holding)(nil)

// Layer-wise inference makes a device hold each layer's input during all chunks of the layer.
func TestLayerWiseHolds(t *testing.T) {
	const n, in = 2500, 6
	g, x := planted(t, n), expect.Normal(n*in, 1)
	m := NewSAGEModel(ModelConfig{In: in, Hidden: 5, Out: 3, Layers: 2})
	mustCollect(t, m).Init(1)
	want, _, err := LayerWise(m, NewFwd(Config{}), g, x, in)
	if err != nil {
		t.Fatal(err)
	}
	be := &holding{Backend: ops.CPU(1), now: map[*float32]bool{}}
	f := NewFwd(Config{Backend: be})
	got, _, err := LayerWise(m, f, g, x, in)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("error %v, or the result differs", err)
	}
	if be.times != 2 || len(be.now) != 0 {
		t.Errorf("the inputs of two layers were held %d times, and %d are still held", be.times, len(be.now))
	}
	be.fail = errors.New("the device is full")
	if _, _, err := LayerWise(m, f, g, x, in); !errors.Is(err, be.fail) {
		t.Errorf("error %v, want %v", err, be.fail)
	}
}
