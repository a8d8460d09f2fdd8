package machine

// MaxSamples is the number of samples that a [History] keeps.
const MaxSamples = 1440

// History holds samples over any length of time in bounded memory: when it is full, it drops every
// second sample and from then on keeps only every second one, so that the kept samples are evenly
// spaced.
type History struct {
	// Kept holds samples that do not change; each thinning makes a new slice.
	Kept []Sample

	every   int // one of every samples is kept
	skipped int
	last    Sample // the last sample added
}

// Add adds a sample.
func (h *History) Add(s Sample) {
	h.last = s
	h.every = max(h.every, 1)
	if h.skipped++; h.skipped < h.every {
		return
	}
	if len(h.Kept) == MaxSamples {
		half := make([]Sample, 0, MaxSamples)
		for i := 1; i < len(h.Kept); i += 2 {
			half = append(half, h.Kept[i])
		}
		h.Kept = half
		h.every *= 2 // half of this interval has passed with this sample
		return
	}
	h.skipped = 0
	h.Kept = append(h.Kept, s)
}

// UpToNow returns Kept plus the sample added last.
func (h *History) UpToNow() []Sample {
	if h.skipped == 0 {
		return h.Kept
	}
	return append(h.Kept[:len(h.Kept):len(h.Kept)], h.last)
}
