package saving

import "github.com/graphnb/graphnb/gnb/internal/runfile"

// Position is a boundary between two iterations of a program: Step iterations of
// the epoch's Loop-th loop over batches are done, and Bare steps outside of loops.
type Position struct {
	Epoch int   `json:"epoch"`
	Loop  int   `json:"loop"`
	Step  int   `json:"step"`
	Bare  int   `json:"bare"`
	InAll int   `json:"in_epoch"` // iterations of all loops of the epoch
	Total int64 `json:"total"`    // steps of the run so far
	// Ended is the number of epochs started if the program left its loop over epochs early; Epoch
	// is then the end of that loop. Otherwise it is 0.
	Ended int `json:"ended,omitempty"`
}

// ReportedEpoch returns the epoch to which reports at this position belong.
func (p Position) ReportedEpoch() int {
	if p.Ended > 0 {
		return p.Ended - 1
	}
	return p.Epoch
}

// EpochStep returns the number of the epoch's steps so far, in loops and outside them.
func (p Position) EpochStep() int { return p.InAll + p.Bare }

// Place orders positions within a run: epoch, loop, and step within the loop.
func (p Position) Place() [3]int { return [3]int{p.Epoch, p.Loop, p.Step + p.Bare} }

// Sums are the sums over an epoch's steps and all ranks: the losses, the weights by which to
// divide them, and the numbers of correct rows and of all rows.
type Sums struct {
	Loss    runfile.Number `json:"loss"`
	Weight  runfile.Number `json:"weight"`
	Correct runfile.Number `json:"correct"`
	Count   runfile.Number `json:"count"`
}

// Add adds a step.
func (s *Sums) Add(loss, weight, correct, count float32) {
	s.Loss += runfile.Number(loss)
	s.Weight += runfile.Number(weight)
	s.Correct += runfile.Number(correct)
	s.Count += runfile.Number(count)
}

// MeanLoss returns the mean loss, NaN before the first step.
func (s Sums) MeanLoss() float64 { return float64(s.Loss / s.Weight) }

// Accuracy returns the share of correct rows, NaN if no row had a label.
func (s Sums) Accuracy() float64 { return float64(s.Correct / s.Count) }
