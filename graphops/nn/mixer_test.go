package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// The gradients are right, also with dropout.
func TestMixerGradients(t *testing.T) {
	t.Parallel()
	for _, o := range []MixerOptions{{}, {TokenHidden: 5, ChannelHidden: 3, Dropout: 0.25}} {
		m := NewMixer(3, 4, o)
		gradcheck.Checker{Config: Config{Train: true, Seed: 2}, Max: 30}.Check(t, func(f *Fwd, x []*Tensor) *Tensor { return m.Forward(f, x[0]) }, inputsOf(t, m, 6, 4)...)
	}
}

// An item's rows do not depend on the other items, with dropout by its id, nor on the number of threads.
func TestMixerItems(t *testing.T) {
	t.Parallel()
	const items, slots, cols = 700, 10, 20
	m := NewMixer(slots, cols, MixerOptions{Dropout: 0.3})
	mustCollect(t, m).Init(1)
	x := expect.Normal(items*slots*cols, 1)
	run := func(threads, lo, hi int) []float32 {
		f := NewFwd(Config{Train: true, Seed: 4, Threads: threads})
		return m.Forward(f, f.Input((hi-lo)*slots, cols, x[lo*slots*cols:hi*slots*cols], &Space{Start: int32(lo * slots)})).Data()
	}
	all := run(1, 0, items)
	expect.SameBits(t, "on three threads", all, run(3, 0, items))
	expect.SameBits(t, "alone", all[31*slots*cols:32*slots*cols], run(1, 31, 32))
	f := NewFwd(Config{})
	if err := Try(func() { m.Forward(f, f.Input(5, cols, x[:5*cols], nil)) }); err == nil || !strings.Contains(err.Error(), "10 rows of 20 columns for each item") {
		t.Errorf("with half an item: %v", err)
	}
}
