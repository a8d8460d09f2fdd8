package sweep

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Importance is the importance of a hyper-parameter: see [Study.Importance].
type Importance struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // 0 to 1
}

// importanceFrom is the smallest number of trials from which importances are computed.
const importanceFrom = 10

// Importance is the share of the metric's variance over the trials that each hyper-parameter explains alone, the
// largest first: its first-order Sobol' index (Sobol' 2001, doi:10.1016/S0378-4754(00)00270-6). It is estimated by the
// correlation ratio with Kelley's correction for chance (1935, doi:10.1073/pnas.21.9.554), over the values of a choice,
// or over three to six parts of a range with equally many trials. A stopped trial counts with its last value, and a
// failed one does not count.
//
// Variance that only several hyper-parameters together explain is in none of the shares. TPE samples near good trials,
// so it sees less variance than the whole range has. There are no shares below ten trials.
func (s *Study) Importance() []Importance {
	if s.Method == methodSeeds {
		return nil
	}
	var out []Importance
	for _, p := range s.params() {
		var x, y []float64
		for _, t := range s.Trials {
			if i := slices.IndexFunc(t.Params, func(q Hyperparameter) bool { return q.Name == p.Name }); i >= 0 && t.State != runs.StateFailed {
				x, y = append(x, t.Params[i].share()), append(y, t.Value)
			}
		}
		if len(x) >= importanceFrom {
			out = append(out, Importance{p.Name, explained(groups(x), y)})
		}
	}
	slices.SortStableFunc(out, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// groups divides the values into a few groups: by value if there are few different ones, else into ranges with about
// equally many values.
func groups(x []float64) []int {
	distinct := slices.Compact(slices.Sorted(slices.Values(x)))
	k := min(max(int(math.Sqrt(float64(len(x))))/2+1, 3), 6)
	of := make([]int, len(x))
	if len(distinct) <= 6 {
		for i, v := range x {
			of[i], _ = slices.BinarySearch(distinct, v)
		}
		return of
	}
	sorted := slices.Sorted(slices.Values(x))
	for i, v := range x {
		rank, _ := slices.BinarySearch(sorted, v) // index of the first equal value
		of[i] = rank * k / len(x)
	}
	return of
}

// explained is Kelley's epsilon-squared: 1 - (SS within/(n-k)) / (SS total/(n-1)),
// at least 0.
func explained(group []int, y []float64) float64 {
	mean := func(y []float64) (m float64) {
		for _, v := range y {
			m += v / float64(len(y))
		}
		return m
	}
	squares := func(y []float64) (s float64) {
		m := mean(y)
		for _, v := range y {
			s += (v - m) * (v - m)
		}
		return s
	}
	within, k := 0.0, 0
	for g := range slices.Max(group) + 1 {
		var in []float64
		for i, h := range group {
			if h == g {
				in = append(in, y[i])
			}
		}
		if len(in) > 0 {
			within += squares(in)
			k++
		}
	}
	n, total := len(y), squares(y)
	if total == 0 || n <= k || k < 2 {
		return 0
	}
	return max(0, 1-within/float64(n-k)/(total/float64(n-1)))
}

// mostRows is the maximum number of rows that String prints.
const mostRows = 50

// String returns the study as a table, the best trial first, with the reasons of failed trials and
// the importance of each hyper-parameter.
func (s *Study) String() string {
	var b strings.Builder
	counts := map[string]int{}
	for _, t := range s.Trials {
		counts[t.State]++
	}
	fmt.Fprintf(&b, "%s: %s, %s", s.title(), s.State, phrase.Count(len(s.Trials), "trial"))
	for _, state := range []string{StateStopped, runs.StateFailed} {
		if n := counts[state]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, state)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", s.Dir)
	if len(s.Trials) == 0 {
		return phrase.Clean(b.String())
	}
	params := s.params()
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "trial\t%s\t", s.Metric)
	for _, p := range params {
		fmt.Fprintf(w, "%s\t", p.Name)
	}
	fmt.Fprint(w, "epochs\tseconds\t\t\n")
	sorted := s.Sorted()
	for _, t := range sorted[:min(len(sorted), mostRows)] {
		value, state := fmt.Sprintf("%.4f", t.Value), ""
		if t.State != runs.StateDone {
			state = t.State
		}
		if t.State == runs.StateFailed {
			value = ""
		}
		fmt.Fprintf(w, "%d\t%s\t", t.Number, value)
		for _, p := range params {
			text := ""
			if i := slices.IndexFunc(t.Params, func(q Hyperparameter) bool { return q.Name == p.Name }); i >= 0 {
				text = t.Params[i].Text()
			}
			fmt.Fprintf(w, "%s\t", text)
		}
		fmt.Fprintf(w, "%d\t%.1f\t%s\t\n", t.epochs(), t.Seconds, state)
	}
	_ = w.Flush() // to memory
	if n := len(sorted) - mostRows; n > 0 {
		fmt.Fprintf(&b, "and %s\n", phrase.Count(n, "more trial"))
	}
	for _, t := range s.Trials {
		if t.State == runs.StateFailed {
			fmt.Fprintf(&b, "trial %d failed: %s\n", t.Number, t.Error)
		}
	}
	if shares := s.Importance(); len(shares) > 0 {
		var parts []string
		for _, x := range shares {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", x.Name, 100*x.Share))
		}
		fmt.Fprintf(&b, "of the variance of %s each explains alone: %s\n", s.Metric, strings.Join(parts, ", "))
	}
	return phrase.Clean(b.String())
}

// PNG returns the study as a picture: a line per trial through its hyper-parameters to the metric,
// and the importance of each hyper-parameter.
func (s *Study) PNG() ([]byte, error) {
	pic, err := boards.SweepPNG(s.picture(s.Importance()))
	if err != nil {
		return nil, fmt.Errorf("sweep: drawing the trials: %w", err)
	}
	return pic.PNG, nil
}

// BestCode returns Go code for a cell: the call of [gnb.Train] that trains the best trial again,
// with ctx and ds. It is "" if no trial has finished, and for the sweep of another task.
func (s *Study) BestCode() string {
	best := s.Best()
	if best == nil || best.Task != nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("var o gnb.TrainOptions\n")
	v := reflect.ValueOf(best.Options)
	for _, f := range reflect.VisibleFields(v.Type()) {
		x := v.FieldByIndex(f.Index)
		if f.Anonymous || x.IsZero() || f.Name == "Events" || f.Name == "Quiet" {
			continue
		}
		fmt.Fprintf(&b, "o.%s = %s\n", f.Name, goValue(x))
	}
	fmt.Fprintf(&b, "run := gnb.Must(gnb.Train(ctx, ds, %s, o))\n", modelCode(s.Model))
	return b.String()
}

// goValue is an option's value in Go syntax.
func goValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprintf("%#v", v.Interface())
}

// modelCode is the Go expression of a model.
func modelCode(name string) string {
	for variable, m := range map[string]gnb.AnyModel{"SAGE": gnb.SAGE, "GCN": gnb.GCN, "GAT": gnb.GAT, "GATv2": gnb.GATv2, "GIN": gnb.GIN, "GINE": gnb.GINE, "GatedGCN": gnb.GatedGCN, "PNA": gnb.PNA, "RGCN": gnb.RGCN, "HGT": gnb.HGT, "MLP": gnb.MLP} {
		if m.Name() == name {
			return "gnb." + variable
		}
	}
	return fmt.Sprintf("gnb.Must(gnb.ModelByName(%q))", name)
}
