package machine

// MaxSamples is how many samples a [History] keeps.
const MaxSamples = 1440

// History is samples of any length of time in bounded memory: when it is full, every second one is dropped,
// and from then on only every second one is kept, so that those kept are evenly spaced.
type History struct {
	// Kept do not change; the slice is a new one after each thinning.
	Kept []Sample

	every   int // one of every samples is kept
	skipped int
	last    Sample // the one given last
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
		h.every *= 2 // of which this sample's turn is half over
		return
	}
	h.skipped = 0
	h.Kept = append(h.Kept, s)
}

// UpToNow is Kept and the sample that was added last.
func (h *History) UpToNow() []Sample {
	if h.skipped == 0 {
		return h.Kept
	}
	return append(h.Kept[:len(h.Kept):len(h.Kept)], h.last)
}
