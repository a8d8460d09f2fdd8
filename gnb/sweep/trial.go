package sweep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
)

// Trial passes one configuration of a search to the function of [Run], which requests the value of
// each hyper-parameter by name. Later requests may depend on earlier values. [Choice] requests one
// of several values of any type.
//
// The first mistake, such as an empty range or one name for two ranges, ends the sweep with an error that names it.
type Trial struct {
	Number int // from 0

	pick   func(Hyperparameter) float64
	ranges map[string]Hyperparameter // ranges of earlier trials
	params []Hyperparameter
	task   json.RawMessage // the options of RunTask
	err    error
}

// Float returns a number from low to high, for example a dropout.
func (t *Trial) Float(name string, low, high float64) float64 {
	return t.number(Hyperparameter{Name: name, Kind: kindFloat, Low: low, High: high})
}

// LogFloat returns a number from low to high, both above 0, whose logarithm is uniform over the range, for example a
// learning rate.
func (t *Trial) LogFloat(name string, low, high float64) float64 {
	return t.number(Hyperparameter{Name: name, Kind: kindLogFloat, Low: low, High: high})
}

// Int returns a whole number from low to high, both included.
func (t *Trial) Int(name string, low, high int) int {
	return int(t.number(Hyperparameter{Name: name, Kind: kindInt, Low: float64(low), High: float64(high)}))
}

// LogInt returns a whole number from low to high, both included and at least 1, whose logarithm is uniform over the
// range, for example a width.
func (t *Trial) LogInt(name string, low, high int) int {
	return int(t.number(Hyperparameter{Name: name, Kind: kindLogInt, Low: float64(low), High: float64(high)}))
}

// Choice returns one of the values, which have no order, for example a kind of normalisation or a list of fanouts:
//
//	fanouts := sweep.Choice(t, "fanouts", []int{10, 10}, []int{15, 10})
//
// Each value must print differently.
func Choice[T any](t *Trial, name string, values ...T) T {
	entry.Enter()
	p := Hyperparameter{Name: name, Kind: kindChoice}
	for _, v := range values {
		p.Choices = append(p.Choices, fmt.Sprint(v))
	}
	i := int(t.number(p))
	if i >= len(values) {
		var none T
		return none
	}
	return values[i]
}

// The kinds of hyper-parameters.
const (
	kindFloat    = "float"
	kindLogFloat = "log float"
	kindInt      = "int"
	kindLogInt   = "log int"
	kindChoice   = "choice"
)

// Hyperparameter is a hyper-parameter of a trial: its range, and the trial's value.
type Hyperparameter struct {
	Name string `json:"name"`
	// Kind is "float", "log float", "int", "log int" or "choice".
	Kind string  `json:"kind"`
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Choices are the values of a choice, as they print.
	Choices []string `json:"choices,omitempty"`
	// Value is the trial's value; for a choice, the index in Choices.
	Value float64 `json:"value"`
}

// Text is the value as text.
func (p Hyperparameter) Text() string {
	if i := int(p.Value); p.Kind == kindChoice {
		if i < 0 || i >= len(p.Choices) { // the file was edited
			return fmt.Sprintf("choice %v of %d", p.Value, len(p.Choices))
		}
		return p.Choices[i]
	}
	return strconv.FormatFloat(p.Value, 'g', -1, 64)
}

func (p Hyperparameter) String() string { return p.Name + " " + p.Text() }

// check returns an error if the range is invalid.
func (p Hyperparameter) check() error {
	switch {
	case p.Name == "":
		return fmt.Errorf("sweep: a hyper-parameter of the sweep has no name")
	case p.Kind == kindChoice:
		sorted := slices.Sorted(slices.Values(p.Choices))
		if len(sorted) == 0 || len(slices.Compact(sorted)) != len(p.Choices) {
			return fmt.Errorf("sweep: parameter %q is a choice among %q; it takes one value or more, no two of which print alike", p.Name, p.Choices)
		}
		return nil
	case !(p.Low <= p.High) || math.IsInf(p.High-p.Low, 0):
		return fmt.Errorf("sweep: parameter %q goes from %v to %v; the first must not be above the second", p.Name, p.Low, p.High)
	case p.Kind == kindLogFloat && !(p.Low > 0):
		return fmt.Errorf("sweep: parameter %q goes from %v; a logarithmic range begins above 0", p.Name, p.Low)
	case p.Kind == kindLogInt && p.Low < 1:
		return fmt.Errorf("sweep: parameter %q goes from %v; a logarithmic range of whole numbers begins at 1 or above", p.Name, p.Low)
	}
	return nil
}

// checkRead returns an error if a hyper-parameter read from a file is invalid.
func (p Hyperparameter) checkRead() error {
	switch p.Kind {
	case kindFloat, kindLogFloat, kindInt, kindLogInt:
	case kindChoice:
		if !(p.Value >= 0 && p.Value < float64(len(p.Choices))) || p.Value != math.Trunc(p.Value) {
			return fmt.Errorf("sweep: parameter %q has choice %v of %d", p.Name, p.Value, len(p.Choices))
		}
	default:
		return fmt.Errorf("sweep: parameter %q is of kind %q", p.Name, p.Kind)
	}
	return p.check()
}

// checkRead returns an error if a trial read from a file is invalid.
func (t TrialResult) checkRead() error {
	if t.Number < 0 || !slices.Contains([]string{runs.StateDone, StateStopped, runs.StateFailed}, t.State) {
		return fmt.Errorf("sweep: trial %d is %q", t.Number, t.State)
	}
	for _, p := range t.Params {
		if err := p.checkRead(); err != nil {
			return err
		}
	}
	return nil
}

// sameRange reports whether two hyper-parameters differ at most in their values.
func (p Hyperparameter) sameRange(q Hyperparameter) bool {
	return p.Name == q.Name && p.Kind == q.Kind && p.Low == q.Low && p.High == q.High && slices.Equal(p.Choices, q.Choices)
}

// number returns the value of a hyper-parameter. After an error it returns the lowest of the
// range, and no run uses it.
func (t *Trial) number(p Hyperparameter) float64 {
	if t.err == nil {
		t.err = p.check()
	}
	i := slices.IndexFunc(t.params, func(q Hyperparameter) bool { return q.Name == p.Name })
	old, known := t.ranges[p.Name]
	if i >= 0 {
		old, known = t.params[i], true
	}
	if t.err == nil && known && !old.sameRange(p) {
		t.err = fmt.Errorf("sweep: parameter %q has two ranges, %s and %s; give one of them another name", p.Name, old.span(), p.span())
	}
	switch {
	case t.err != nil:
		return p.Low
	case i >= 0:
		return old.Value
	}
	if p.Value = p.at(0); t.pick != nil { // a Trial outside a search returns the lowest values
		p.Value = t.pick(p)
	}
	t.params = append(t.params, p)
	return p.Value
}

// span returns the range as text.
func (p Hyperparameter) span() string {
	if p.Kind == kindChoice {
		return fmt.Sprintf("%s %q", p.Kind, p.Choices)
	}
	return fmt.Sprintf("%s %v to %v", p.Kind, p.Low, p.High)
}

// at returns the value at position u, 0 to 1, of the range.
func (p Hyperparameter) at(u float64) float64 {
	switch p.Kind {
	case kindChoice:
		return p.whole(0, u*float64(len(p.Choices)), float64(len(p.Choices)-1))
	case kindInt:
		return p.whole(p.Low, p.Low+u*(p.High-p.Low+1), p.High)
	case kindLogInt:
		return p.whole(p.Low, math.Exp(math.Log(p.Low)+u*(math.Log(p.High+1)-math.Log(p.Low))), p.High)
	case kindLogFloat:
		return p.round(math.Exp(math.Log(p.Low) + u*(math.Log(p.High)-math.Log(p.Low))))
	}
	return p.round(p.Low + u*(p.High-p.Low))
}

func (p Hyperparameter) whole(low, x, high float64) float64 {
	return min(max(math.Floor(x), low), high)
}

// round rounds a value to four significant digits, so that the printed value is the one trained with, unless the
// range is too narrow for that.
func (p Hyperparameter) round(x float64) float64 {
	x = min(max(x, p.Low), p.High)
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil || r < p.Low || r > p.High || p.High-p.Low < 0.01*max(math.Abs(p.Low), math.Abs(p.High)) {
		return x
	}
	return r
}

// share is the inverse of at: the position of the value in its range, from 0 to 1. A choice or a whole number lies in
// the middle of its part.
func (p Hyperparameter) share() float64 {
	n := float64(len(p.Choices))
	switch p.Kind {
	case kindChoice:
		return (p.Value + 0.5) / n
	case kindInt:
		return (p.Value - p.Low + 0.5) / (p.High - p.Low + 1)
	case kindLogInt:
		return (math.Log(p.Value+0.5) - math.Log(p.Low)) / (math.Log(p.High+1) - math.Log(p.Low))
	}
	low, x, high := p.Low, p.Value, p.High
	if p.Kind == kindLogFloat {
		low, x, high = math.Log(low), math.Log(x), math.Log(high)
	}
	if low == high {
		return 0.5
	}
	return (x - low) / (high - low)
}

// levels returns the values in a grid: all values of a choice or of whole numbers, n values of a
// continuous range including its ends, and up to n different ones of a logarithmic range of whole
// numbers.
func (p Hyperparameter) levels(n int) []float64 {
	switch p.Kind {
	case kindChoice, kindInt:
		low, count := p.Low, len(p.Choices)
		if p.Kind == kindInt {
			count = int(p.High-p.Low) + 1
		}
		all := make([]float64, count)
		for i := range all {
			all[i] = low + float64(i)
		}
		return all
	case kindLogInt:
		n = min(n, int(p.High-p.Low)+1)
	}
	if p.Low == p.High || n < 2 {
		return []float64{p.Low}
	}
	var some []float64
	for i := range n {
		u := float64(i) / float64(n-1)
		x := p.at(u)
		if p.Kind == kindLogInt {
			x = math.Round(math.Exp(math.Log(p.Low) + u*(math.Log(p.High)-math.Log(p.Low))))
		}
		some = append(some, x)
	}
	return slices.Compact(some)
}

// sameParams reports whether two trials have the same hyper-parameters with the same values.
func sameParams(a, b TrialResult) bool {
	return slices.EqualFunc(a.Params, b.Params, func(p, q Hyperparameter) bool { return p.sameRange(q) && p.Value == q.Value })
}

// differing returns the names of the options in which two trials differ, except those that do not
// change a result: threads, GPUs, directories, checkpoints and displays.
func differing(a, b gnb.TrainOptions) (names []string, err error) {
	var of [2]map[string]json.RawMessage
	for i, o := range []gnb.TrainOptions{a, b} {
		o.Threads, o.FirstGPU, o.CheckpointEvery, o.KeepCheckpoints, o.Restarts = 0, 0, 0, 0, 0
		o.RunDir, o.Resume, o.ResumeChanged, o.TensorBoard, o.Quiet = "", "", false, false, false
		o.Title, o.Tags, o.Notes = "", nil, ""
		o.Precision = cmp.Or(o.Precision, "float32")
		raw, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(raw, &of[i])
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: a trial's options cannot be recorded: %w", err)
		}
	}
	for _, one := range of { // an option that is left out has no field
		for name := range one {
			if !bytes.Equal(of[0][name], of[1][name]) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
