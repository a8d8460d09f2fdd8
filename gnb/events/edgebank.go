package events

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/temporal"
)

// ofBank are the ranks [events - training] of the events after training by an EdgeBank, which remembers pairs and learns nothing.
type ofBank struct {
	name, title, what string
	options           temporal.EdgeBankOptions
	bank              *temporal.EdgeBank
	ranks             []float64
}

// part returns the ranks of a split.
func (b *ofBank) part(s *stream, split string) []float64 {
	lo, hi := s.part(split)
	return b.ranks[lo-s.Train : hi-s.Train]
}

// rankByBanks ranks the destination of each event after training among its negatives, by an EdgeBank that remembers all pairs
// and by one that forgets those before the window of the Temporal Graph Benchmark. As a model, they know the events before the step.
func rankByBanks(s *stream, wrong wrongOf) (banks []*ofBank, err error) {
	banks = []*ofBank{{name: "edgebank", title: "EdgeBank", what: "all pairs"}}
	if window := temporal.TrainingWindow(s.Events, s.Train); window > 0 { // else all times of training are equal
		banks = append(banks, &ofBank{name: "edgebank_window", title: "EdgeBank with a window", what: "recent pairs", options: temporal.EdgeBankOptions{Window: window}})
	}
	for _, b := range banks {
		if b.bank, err = temporal.NewEdgeBank(s.Events, b.options); err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
	}
	for lo, hi := s.stepOf(s.Train); lo < s.Test; lo, hi = s.stepOf(hi) {
		for _, b := range banks {
			b.bank.Until(lo)
		}
		for e := lo; e < hi; e++ {
			negatives := wrong.Of(e)
			for _, b := range banks {
				scores := []float32{b.bank.Score(s.Src[e], s.Dst[e])}
				for _, v := range negatives {
					scores = append(scores, b.bank.Score(s.Src[e], v))
				}
				b.ranks = append(b.ranks, rankOf(scores))
			}
		}
	}
	return banks, nil
}
