package optim

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Schedule says how the learning rate changes during training. It is a plain value, which travels to
// workers as JSON, and the rate of a step follows from the number of the step alone, so that a resumed run
// has the same rates as one that was not interrupted; only [Plateau] also depends on what the run has measured ([Watch]). The zero
// value keeps the rate.
//
//	warm := optim.Cosine(1e-5).After(50)
//	for step := range 1000 {
//		adam.SetLR(warm.Rate(0.01, step, 1000))
//		…
//	}
//
// Here all times are steps. gnb.TrainOptions counts epochs instead, and calls [Schedule.Steps].
type Schedule struct {
	// Kind is "", or "step", "cosine", "onecycle" or "plateau".
	Kind string `json:",omitempty"`
	// Warmup is the time at the beginning during which the rate rises linearly from Start times the
	// rate to the rate; the schedule's own time begins after it.
	Warmup float64 `json:",omitempty"`
	// Start is the share of the rate with which the warm-up or the one cycle begins.
	Start float64 `json:",omitempty"`
	// Every is the time between two steps down, and Factor what each, or each plateau, multiplies the rate by.
	Every  float64 `json:",omitempty"`
	Factor float64 `json:",omitempty"`
	// Min is the lowest rate of a cosine or a plateau, and the last one of one cycle.
	Min float64 `json:",omitempty"`
	// Rise is the share of the time in which the rate of one cycle rises.
	Rise float64 `json:",omitempty"`
	// Patience is the number of measurements without improvement after which a plateau's rate falls: at the
	// next one.
	Patience int `json:",omitempty"`
}

// StepDecay multiplies the rate by factor after every interval, as torch.optim.lr_scheduler.StepLR.
func StepDecay(every, factor float64) Schedule {
	return Schedule{Kind: "step", Every: every, Factor: factor}
}

// Cosine lowers the rate along half a cosine to lowest, which it reaches at the end of training, as
// torch.optim.lr_scheduler.CosineAnnealingLR in closed form.
//
// Source: I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017,
// arXiv:1608.03983, equation 5, without restarts.
func Cosine(lowest float64) Schedule { return Schedule{Kind: "cosine", Min: lowest} }

// OneCycle raises the rate along half a cosine from 1/25 of it for the first 30 % of training, and
// lowers it along another to 1/250,000 of it, as torch.optim.lr_scheduler.OneCycleLR with three_phase=False and
// without a cycle of the momentum. The optimiser's rate is the highest one.
//
// Source: L. N. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large
// learning rates", arXiv:1708.07120.
func OneCycle() Schedule { return Schedule{Kind: "onecycle", Start: 1. / 25, Rise: 0.3} }

// Plateau multiplies the rate by factor, down to lowest, when a measurement has not improved for more than
// patience measurements, as torch.optim.lr_scheduler.ReduceLROnPlateau. See [Watch].
func Plateau(patience int, factor, lowest float64) Schedule {
	return Schedule{Kind: "plateau", Patience: patience, Factor: factor, Min: lowest}
}

// Steps returns the schedule with its times, which are epochs, counted in steps.
func (s Schedule) Steps(perEpoch float64) Schedule {
	s.Warmup, s.Every = s.Warmup*perEpoch, s.Every*perEpoch
	return s
}

// After returns the schedule with a linear warm-up of the given time before it, from a hundredth of the
// rate, as torch.optim.lr_scheduler.LinearLR in a SequentialLR.
func (s Schedule) After(warmup float64) Schedule {
	if s.Kind == "onecycle" {
		fail("After", "one cycle begins with a warm-up of its own; set its Start and Rise instead")
	}
	s.Warmup, s.Start = warmup, 0.01
	return s
}

// Check returns an error for a schedule that has no meaning with the given rate and length of training.
func (s Schedule) Check(rate, total float64) error {
	number := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, v := range []struct {
		name   string
		v      float64
		within bool
		what   string
	}{
		{"Warmup", s.Warmup, s.Warmup >= 0, "0 or more"},
		{"Start", s.Start, s.Start >= 0 && s.Start <= 1, "from 0 to 1"},
		{"Every", s.Every, s.Every > 0 || s.Every == 0 && s.Kind != "step", "above 0"},
		{"Factor", s.Factor, s.Factor > 0 && s.Factor <= 1 || s.Factor == 0 && s.Kind != "step" && s.Kind != "plateau", "above 0 and at most 1"},
		{"Min", s.Min, s.Min >= 0 && s.Min <= rate, fmt.Sprintf("from 0 to the learning rate %v", rate)},
		{"Rise", s.Rise, s.Rise >= 0 && s.Rise <= 1, "from 0 to 1"},
		{"Patience", float64(s.Patience), s.Patience >= 0, "0 or more"},
	} {
		if !number(v.v) || !v.within {
			return phrase.Errorf("optim", "%s of the learning rate's schedule is %v; it must be %s", v.name, v.v, v.what)
		}
	}
	switch s.Kind {
	case "", "step", "cosine", "onecycle", "plateau":
	default:
		return phrase.Errorf("optim", `the learning rate's schedule is %q; it is "" (constant), "step", "cosine", "onecycle" or "plateau"`, s.Kind)
	}
	if s.Kind == "onecycle" && s.Warmup > 0 {
		return phrase.Errorf("optim", "one cycle begins with a warm-up of its own, so the schedule's Warmup must be 0, not %v", s.Warmup)
	}
	if total > 0 && s.Warmup > total {
		return phrase.Errorf("optim", "the learning rate's warm-up of %v is longer than the training, %v", s.Warmup, total)
	}
	return nil
}

// Rate returns the learning rate of a step, counted from 0, in a training of the given number of steps, for an
// optimiser's rate; [Watch.Rate] applies the cuts of a plateau to it. Steps after the last one have the last
// one's rate, except that a step decay goes on.
func (s Schedule) Rate(rate float64, step, steps int64) float64 {
	t, total := float64(step), float64(steps)
	if t < s.Warmup {
		return rate * (s.Start + (1-s.Start)*t/s.Warmup)
	}
	t, total = t-s.Warmup, total-s.Warmup
	switch s.Kind {
	case "step":
		return rate * math.Pow(s.Factor, math.Floor(t/s.Every))
	case "cosine":
		return cosine(rate, s.Min, t, total)
	case "onecycle":
		last := s.Min
		if last == 0 {
			last = rate * s.Start / 1e4
		}
		top := s.Rise*total - 1 // the step with the highest rate
		if t < top {
			return cosine(rate*s.Start, rate, t, top)
		}
		return cosine(rate, last, t-top, total-1-top)
	}
	return rate
}

// cosine goes along half a cosine from one value to another in the given length, and stays there.
func cosine(from, to, t, length float64) float64 {
	if t >= length { // also when there is no length
		return to
	}
	return to + (from-to)*(1+math.Cos(math.Pi*t/length))/2
}

// Watch is what a [Plateau] remembers of a run's measurements; the zero value has seen none. Keep it with the
// run's checkpoints (gnb.Worker.Keep).
type Watch struct {
	Seen bool    `json:",omitempty"` // there was a measurement
	Best float64 `json:",omitempty"`
	Bad  int     `json:",omitempty"` // measurements since the best
	Cuts int     `json:",omitempty"` // times that the rate was multiplied
}

// Observe takes a measurement, of which more is better (pass the negative of a loss). An improvement is one by
// more than a ten-thousandth of the best so far, PyTorch's relative threshold; NaN is none.
func (w *Watch) Observe(s Schedule, value float64) {
	if s.Kind != "plateau" {
		return
	}
	if better := w.Best + 1e-4*math.Abs(w.Best); !w.Seen && !math.IsNaN(value) || w.Seen && value > better {
		w.Seen, w.Best, w.Bad = true, value, 0
		return
	}
	if w.Bad++; w.Bad > s.Patience {
		w.Bad = 0
		w.Cuts++
	}
}

// Rate returns a plateau's learning rate after what was observed; for other schedules it is rate itself.
func (w *Watch) Rate(s Schedule, rate float64) float64 {
	if s.Kind != "plateau" || w.Cuts == 0 {
		return rate
	}
	return max(rate*math.Pow(s.Factor, float64(w.Cuts)), min(s.Min, rate))
}

// String describes the schedule as ParseSchedule reads it.
func (s Schedule) String() string {
	var parts []string
	switch s.Kind {
	case "step":
		parts = append(parts, fmt.Sprintf("step:%g:%g", s.Every, s.Factor))
	case "cosine":
		parts = append(parts, join("cosine", s.Min))
	case "onecycle":
		parts = append(parts, "onecycle")
	case "plateau":
		parts = append(parts, join(fmt.Sprintf("plateau:%d:%g", s.Patience, s.Factor), s.Min))
	}
	if s.Warmup > 0 {
		parts = append(parts, fmt.Sprintf("warmup:%g", s.Warmup))
	}
	return strings.Join(parts, ",")
}

func join(kind string, lowest float64) string {
	if lowest == 0 {
		return kind
	}
	return fmt.Sprintf("%s:%g", kind, lowest)
}

// Forms lists what [ParseSchedule] reads.
const Forms = "step:EVERY:FACTOR, cosine, cosine:LOWEST, onecycle, plateau:PATIENCE:FACTOR, plateau:PATIENCE:FACTOR:LOWEST, warmup:LENGTH, or one of them, a comma and warmup:LENGTH"

// ParseSchedule reads a schedule: one of [Forms], or "" for a constant rate.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	bad := func() (Schedule, error) {
		return Schedule{}, phrase.Errorf("optim", "the learning rate's schedule %q is none of: %s", text, Forms)
	}
	if text == "" {
		return s, nil
	}
	warmup, kinds := -1., 0
	for part := range strings.SplitSeq(text, ",") {
		kind, rest, given := strings.Cut(part, ":")
		var v []float64
		if given {
			for field := range strings.SplitSeq(rest, ":") {
				x, err := strconv.ParseFloat(field, 64)
				if err != nil {
					return bad()
				}
				v = append(v, x)
			}
		}
		switch {
		case kind == "warmup" && len(v) == 1 && warmup < 0 && v[0] >= 0:
			warmup = v[0]
			continue
		case kind == "step" && len(v) == 2:
			s = StepDecay(v[0], v[1])
		case kind == "cosine" && len(v) == 0:
			s = Cosine(0)
		case kind == "cosine" && len(v) == 1:
			s = Cosine(v[0])
		case kind == "onecycle" && len(v) == 0:
			s = OneCycle()
		case kind == "plateau" && (len(v) == 2 || len(v) == 3) && v[0] == math.Trunc(v[0]) && math.Abs(v[0]) < 1e9:
			s = Plateau(int(v[0]), v[1], append(v, 0)[2])
		default:
			return bad()
		}
		kinds++
	}
	if kinds > 1 || s.Kind == "onecycle" && warmup > 0 {
		return bad()
	}
	if warmup > 0 {
		s = s.After(warmup)
	}
	return s, nil
}
