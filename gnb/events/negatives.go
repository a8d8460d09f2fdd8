package events

import "github.com/graphnb/graphnb/internal/philox"

// negatives returns the destinations that an event is compared with in training.
func (t *trainer) negatives(epoch int, event int32) []int32 {
	return t.s.drawn(t.w.Seed(), epoch, event, t.o.Negatives)
}

// drawn returns n destinations of which no event of the same source at the same time is one.
func (s *stream) drawn(seed uint64, epoch int, event int32, n int) []int32 {
	h := philox.NewStream(seed, int64(event), 0, philox.C3(philox.Links, 7, epoch))
	u, t := s.Src[event], s.Time[event]
	positive := func(v int32) bool {
		for e := int(event); e >= 0 && s.Time[e] == t; e-- {
			if s.Src[e] == u && s.Dst[e] == v {
				return true
			}
		}
		for e := int(event); e < s.Len() && s.Time[e] == t; e++ {
			if s.Src[e] == u && s.Dst[e] == v {
				return true
			}
		}
		return false
	}
	out := make([]int32, 0, n)
	for tries := 0; len(out) < n && tries < 100*n; tries++ {
		if v := s.targets[philox.Bounded(h.Next(), uint32(len(s.targets)))]; !positive(v) {
			out = append(out, v)
		}
	}
	return out
}
