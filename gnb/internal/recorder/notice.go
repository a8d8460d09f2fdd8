package recorder

import (
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// lossWatch looks for two troubles that a curve shows to those who know them: a loss that stands where guessing is, and
// a loss that grows. It says each once.
type lossWatch struct {
	guess   float64 // the loss of guessing; 0 if it is unknown
	classes int

	standing int // epochs in a row at the loss of guessing
	moved    int // steps before the first of them
	steps    int
	begin    float64 // loss of the first step, before any change of the weights
	first    float64 // sum of the losses of the first steps
	last     [spanOfLoss]float64
	lr       float64

	saidStanding, saidGrowing bool
}

const (
	spanOfLoss   = 10 // steps over which a loss is averaged
	growth       = 3  // factor by which a diverging loss has grown
	standEpochs  = 3
	standSteps   = 20   // a few epochs of one step each say nothing
	standingBand = 0.01 // share of the loss of guessing
)

// model learns the number of classes of a run that classifies nodes by a cross-entropy.
func (w *lossWatch) model(c runs.Config, metric string, m *runs.ModelInfo) {
	of := c.Program == "gnb.train" || !strings.HasPrefix(c.Program, "gnb.")
	if of && m != nil && m.Config.Out > 1 && (metric == "" || metric == runfile.Accuracy) && w.classes == 0 {
		w.classes, w.guess = m.Config.Out, math.Log(float64(m.Config.Out))
	}
}

// see takes an event, and returns a sentence to print, or "".
func (w *lossWatch) see(e runs.Event) string {
	switch e.Kind {
	case runs.KindSteps:
		for _, s := range e.Records {
			if text := w.step(s); text != "" {
				return text
			}
		}
	case runs.KindEpoch:
		return w.epoch(e)
	}
	return ""
}

func (w *lossWatch) step(s runs.Step) string {
	if math.IsNaN(s.Loss) { // no node of the step had a label
		return ""
	}
	if w.steps == 0 {
		w.begin = s.Loss
	}
	if w.steps < spanOfLoss {
		w.first += s.Loss
	}
	w.last[w.steps%spanOfLoss] = s.Loss
	w.steps++
	w.lr = s.LR
	if w.saidGrowing || w.steps < 2*spanOfLoss {
		return ""
	}
	sum := 0.0
	for _, x := range w.last {
		sum += x
	}
	// A far too high rate spoils the first steps already, and the loss then falls from there. Where the loss of guessing is
	// known, so is the scale of the first step's.
	from := w.first / spanOfLoss
	if w.guess > 0 {
		from = max(w.begin, w.guess)
	}
	if !(sum > growth*from*spanOfLoss) || from <= 0 {
		return ""
	}
	w.saidGrowing = true
	rate := ""
	if w.lr > 0 {
		rate = fmt.Sprintf(" (%.3g)", w.lr)
	}
	return fmt.Sprintf("the loss has grown from %.3g to %.3g by step %d, so training diverges: the learning rate%s is probably too high; take a tenth of it, warm it up (Schedule), or bound the gradient (ClipNorm)",
		from, sum/spanOfLoss, s.Total, rate)
}

func (w *lossWatch) epoch(e runs.Event) string {
	if w.guess == 0 || !(math.Abs(e.Loss-w.guess) < standingBand*w.guess) {
		w.standing, w.moved = 0, w.steps
		return ""
	}
	w.standing++
	if w.standing < standEpochs || w.steps-w.moved < standSteps || w.saidStanding {
		return ""
	}
	w.saidStanding = true
	return fmt.Sprintf("the loss has been %.3g, about ln(%d) = %.3g, for %d epochs, which is that of guessing among %d classes: the model learns nothing from its input; probable causes are features that say nothing about the labels (all zero, not scaled, of other nodes), labels in another order than the nodes, or a learning rate (%.3g) that is far too low or too high",
		e.Loss, w.classes, w.guess, w.standing, w.classes, w.lr)
}
