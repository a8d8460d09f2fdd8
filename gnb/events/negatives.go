package events

import "github.com/graphnb/graphnb/internal/philox"

// negatives returns the destinations that an event is compared with in training.
func (t *trainer) negatives(epoch int, event int32) []int32 {
	return t.s.drawn(t.w.Seed(), epoch, event, t.o.Negatives)
}

// drawn returns n destinations but an event's own.
func (s *stream) drawn(seed uint64, epoch int, event int32, n int) []int32 {
	h := philox.NewStream(seed, int64(event), 0, philox.C3(philox.Links, 7, epoch))
	own, _ := among(s.targets, s.Dst[event])
	out := make([]int32, n)
	for i := range out {
		k := int(philox.Bounded(h.Next(), uint32(len(s.targets)-1)))
		if k >= own {
			k++
		}
		out[i] = s.targets[k]
	}
	return out
}
