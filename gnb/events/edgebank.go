package events

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/temporal"
)

// bankRanks are the ranks of the events after training by EdgeBank, which remembers pairs and learns nothing.
type bankRanks struct{ all []ofBank }

// ofBank are the ranks [events - training] by one way to remember.
type ofBank struct {
	name, title, what string
	ranks             []float64
}

// part returns the ranks of a split.
func (b *bankRanks) part(of ofBank, s *stream, split string) []float64 {
	lo, hi := s.part(split)
	return of.ranks[lo-s.train : hi-s.train]
}

// rankByBank ranks the destination of each event after training among its negatives, by an EdgeBank that remembers all pairs
// and by one that forgets those before the window of the Temporal Graph Benchmark. As a model, it knows the events before the step.
func rankByBank(s *stream, wrong wrongOf) (*bankRanks, error) {
	b := &bankRanks{}
	ways := map[string]temporal.EdgeBankOptions{"edgebank": {}}
	of := []ofBank{{name: "edgebank", title: "EdgeBank", what: "all pairs"}}
	if window := temporal.TrainingWindow(s.Events, s.train); window > 0 { // else all times of training are equal
		ways["edgebank_window"] = temporal.EdgeBankOptions{Window: window}
		of = append(of, ofBank{name: "edgebank_window", title: "EdgeBank with a window", what: "recent pairs"})
	}
	for _, of := range of {
		bank, err := temporal.NewEdgeBank(s.Events, ways[of.name])
		if err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		for lo, hi := s.stepOf(s.train); lo < s.all; lo, hi = s.stepOf(hi) {
			bank.Until(lo)
			for e := lo; e < hi; e++ {
				scores := []float32{bank.Score(s.Src[e], s.Dst[e])}
				for _, v := range wrong.Of(e) {
					scores = append(scores, bank.Score(s.Src[e], v))
				}
				of.ranks = append(of.ranks, rankOf(scores))
			}
		}
		b.all = append(b.all, of)
	}
	return b, nil
}
