package options

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/internal/phrase"
)

// schedule is the flag of a learning rate's schedule.
type schedule optim.Schedule

// Set implements [flag.Value].
func (s *schedule) Set(text string) error {
	v, err := optim.ParseSchedule(text)
	if err != nil {
		return phrase.Bare(err)
	}
	*s = schedule(v)
	return nil
}

// String implements [flag.Value].
func (s *schedule) String() string { return optim.Schedule(*s).String() }

// average is the flag of the average of the weights.
type average optim.Averaging

// Set implements [flag.Value].
func (a *average) Set(text string) error {
	v, err := optim.ParseAveraging(text)
	if err != nil {
		return phrase.Bare(err)
	}
	*a = average(v)
	return nil
}

// String implements [flag.Value].
func (a *average) String() string { return optim.Averaging(*a).String() }

// groups is the flag of the groups of parameters.
type groups []optim.Group

// Set implements [flag.Value].
func (g *groups) Set(text string) error {
	*g = nil
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ";") {
		v, err := optim.ParseGroup(part)
		if err != nil {
			return phrase.Bare(err)
		}
		*g = append(*g, v)
	}
	return nil
}

// String implements [flag.Value].
func (g *groups) String() string {
	var parts []string
	for _, v := range *g {
		parts = append(parts, v.String())
	}
	return strings.Join(parts, ";")
}

// classWeights is the flag of the classes' weights in the loss. Balanced weights are computed when the dataset is
// there.
type classWeights struct {
	to       *[]float32
	balanced bool
}

// Set implements [flag.Value].
func (w *classWeights) Set(text string) error {
	w.balanced, *w.to = text == "balanced", nil
	if w.balanced || text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(part, 32)
		if err != nil {
			return errors.New("the weights of classes are balanced, or numbers with commas between them")
		}
		*w.to = append(*w.to, float32(v))
	}
	return nil
}

// String implements [flag.Value].
func (w *classWeights) String() string {
	switch {
	case w.balanced:
		return "balanced"
	case w.to == nil:
		return ""
	}
	parts := make([]string, len(*w.to))
	for i, v := range *w.to {
		parts[i] = strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return strings.Join(parts, ",")
}

// times is the value of --times.
type times []int64

func (t *times) String() string {
	var s []string
	for _, x := range *t {
		s = append(s, strconv.FormatInt(x, 10))
	}
	return strings.Join(s, ",")
}

// Set implements [flag.Value].
func (t *times) Set(text string) error {
	*t = nil
	for _, x := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number; give two, as in 2018,2019", x)
		}
		*t = append(*t, v)
	}
	return nil
}
