package gnb

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/finite"
	"github.com/graphnb/graphnb/graphops/nn"
)

// A device is a step behind the host, which launches the kernels of the next step
// meanwhile. So a step's loss is read when the next step has been asked for, or when
// somebody wants it; until then the step is late, and what is reported of it waits.

// StepLoss is the mean loss of a step over all ranks, as [Worker.Step] returns it. On
// a device it is known a step later than asked for: Mean and whatever prints it wait.
// It prints as a float64 does, and [Worker.Log] takes it as a number.
type StepLoss struct {
	mean float64
	late *lateStep // whose mean it is, where that was not known
}

// Mean is the loss, NaN where there is none.
func (l StepLoss) Mean() float64 {
	if l.late == nil {
		return l.mean
	}
	if !l.late.known {
		l.late.w.catchUp(0)
	}
	return l.late.mean
}

// MarshalJSON writes the loss as a number, null where there is none, so that
// [Worker.Keep] keeps it; UnmarshalJSON reads that.
func (l StepLoss) MarshalJSON() ([]byte, error) { return runfile.Number(l.Mean()).MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *StepLoss) UnmarshalJSON(b []byte) error {
	var mean runfile.Number
	if err := mean.UnmarshalJSON(b); err != nil {
		return err
	}
	*l = StepLoss{mean: float64(mean)}
	return nil
}

// Format implements [fmt.Formatter].
func (l StepLoss) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), l.Mean())
}

// lossFigures wait for a batch's loss and its right rows; see [nn.Loss.Figures].
type lossFigures func() (sum float32, correct int64)

// lateStep is a step whose losses a device still has.
type lateStep struct {
	w       *Worker
	n       *network
	tails   []float32
	figures []lossFigures // of each batch of the step; nil for one that adds nothing
	record  runs.Step
	made    made  // of what, should its loss not be finite
	applied int64 // steps of the network before it
	known   bool
	mean    float64 // where known
}

// readFigures waits for the figures of batches and puts them into their tails.
func readFigures(tails []float32, figures []lossFigures) error {
	return nn.Try(func() {
		for i, f := range figures {
			if f != nil {
				sum, correct := f()
				tails[tailLen*i+tailLoss], tails[tailLen*i+tailCorrect] = sum, float32(correct)
			}
		}
	})
}

// catchUp reads the losses of the late steps but the last few, in their order.
func (w *Worker) catchUp(but int) {
	for len(w.late) > but {
		s := w.late[0]
		w.late = slices.Delete(w.late, 0, 1)
		s.mean, s.known = math.NaN(), true // where reading fails
		if err := readFigures(s.tails, s.figures); err != nil {
			w.Fail(fmt.Errorf("gnb: the loss of model %q at epoch %d, step %d: %w", s.n.name, s.record.Epoch, s.record.Step, err))
		}
		tail := rounded(sumTails(s.tails))
		if !finite.Is(tail[tailLoss]) {
			w.lateNotFinite(s, tail[tailLoss])
		}
		s.mean = w.count(s.record, tail)
	}
}

// sumTails adds up the tails of a step's batches.
func sumTails(tails []float32) []float64 {
	sum := make([]float64, tailLen)
	for i, v := range tails {
		sum[i%tailLen] += float64(v)
	}
	return sum
}

// rounded is a tail as a slot holds it.
func rounded(sum []float64) []float32 {
	tail := make([]float32, len(sum))
	for i, v := range sum {
		tail[i] = float32(v)
	}
	return tail
}
