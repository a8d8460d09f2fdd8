// Package loop follows a training program through its loop over epochs, the loops over batches within
// an epoch, and their steps: where the program is, which of it a resumed run has done already, and what
// the epoch's steps add up to.
//
// A checkpoint holds a [Position]. A program that resumes from it runs the statements of its epoch
// again; its [Cursor] tells it which loops and steps to skip.
package loop

import "github.com/graphnb/graphnb/gnb/internal/runfile"

// Position is a boundary between two iterations of a program: Step iterations of
// the epoch's Loop-th loop over batches are done, and Bare steps outside of loops.
type Position struct {
	Epoch int   `json:"epoch"`
	Loop  int   `json:"loop"`
	Step  int   `json:"step"`
	Bare  int   `json:"bare"`
	InAll int   `json:"in_epoch"` // iterations of all loops of the epoch
	Total int64 `json:"total"`    // steps of the run
	// Ended is the number of epochs begun, where the program left its loop over epochs
	// early; Epoch is then the end of that loop. It is 0 otherwise.
	Ended int `json:"ended,omitempty"`
}

// ReportedEpoch is the epoch that reports at this position belong to.
func (p Position) ReportedEpoch() int {
	if p.Ended > 0 {
		return p.Ended - 1
	}
	return p.Epoch
}

// EpochStep is the number of steps of the epoch so far, in loops and outside of them.
func (p Position) EpochStep() int { return p.InAll + p.Bare }

// Place orders positions within a run: epoch, loop, and step within the loop.
func (p Position) Place() [3]int { return [3]int{p.Epoch, p.Loop, p.Step + p.Bare} }

// Sums are what an epoch's steps add up to, over all ranks: the losses, the weights that divide them,
// and how many of how many rows were right.
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

// MeanLoss is NaN before the first step.
func (s Sums) MeanLoss() float64 { return float64(s.Loss / s.Weight) }

// Accuracy is NaN where no row had a label.
func (s Sums) Accuracy() float64 { return float64(s.Correct / s.Count) }
