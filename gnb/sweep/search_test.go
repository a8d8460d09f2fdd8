package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// try runs n trials without training; a trial's value is computed from its parameters.
func try(t *testing.T, s *Study, n int, f func(*Trial), value func(map[string]float64) float64) []TrialResult {
	t.Helper()
	search := newSearch(s)
	var done []TrialResult
	for i := 0; i < n && !search.spent; i++ {
		r, err := search.propose(i, s.known(i, done), func(t *Trial) gnb.TrainOptions { f(t); return gnb.TrainOptions{} })
		if err != nil {
			t.Fatal(err)
		}
		r.State = runs.StateDone
		if value != nil {
			at := map[string]float64{}
			for _, p := range r.Params {
				at[p.Name] = p.Value
			}
			r.Value = value(at)
		}
		done = append(done, r)
	}
	return done
}

func texts(of []TrialResult) []string {
	var out []string
	for _, t := range of {
		out = append(out, fmt.Sprint(t.Params))
	}
	return out
}

// A grid contains every combination once, in depth-first order, with only those parameters that
// belong to the chosen values.
func TestGridExhausts(t *testing.T) {
	s := &Study{Method: methodGrid, Levels: 3}
	got := texts(try(t, s, 100, func(t *Trial) {
		if Choice(t, "model", "gat", "sage") == "gat" {
			t.Int("heads", 1, 2)
		}
		t.LogFloat("lr", 0.001, 0.1)
	}, nil))
	want := []string{
		"[model gat heads 1 lr 0.001]", "[model gat heads 1 lr 0.01]", "[model gat heads 1 lr 0.1]",
		"[model gat heads 2 lr 0.001]", "[model gat heads 2 lr 0.01]", "[model gat heads 2 lr 0.1]",
		"[model sage lr 0.001]", "[model sage lr 0.01]", "[model sage lr 0.1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the grid is %q, want %q", got, want)
	}
	if got := texts(try(t, s, 100, func(t *Trial) { t.LogInt("hidden", 1, 4) }, nil)); !slices.Equal(got, []string{"[hidden 1]", "[hidden 2]", "[hidden 4]"}) {
		t.Errorf("integers on a logarithmic scale: %q", got)
	}
}

// The trials of a grid are counted before the first one runs, even if later parameters depend on
// earlier values, unless the grid is too large or an error occurs.
func TestGridSize(t *testing.T) {
	defer func(before time.Duration) { countFor = before }(countFor)
	countFor = time.Hour
	for _, c := range []struct {
		name string
		want int
		ask  func(*Trial)
	}{
		{"nothing", 1, func(*Trial) {}},
		{"all combinations", 2 * 3 * 5, func(t *Trial) { t.Int("a", 1, 2); Choice(t, "b", "x", "y", "z"); t.Float("c", 0, 1) }},
		{"a branch", 5 + 5*4, func(t *Trial) {
			if Choice(t, "kind", "plain", "deep") == "deep" {
				t.Int("layers", 1, 4)
			}
			t.Float("lr", 0, 1)
		}},
		{"too many", 0, func(t *Trial) { t.Int("a", 1, 200); t.Int("b", 1, 200) }},
		{"a mistake", 0, func(t *Trial) {
			if t.Int("a", 1, 3) == 3 {
				t.Int("b", 2, 1)
			}
		}},
	} {
		s := &Study{Method: methodGrid, Levels: 5, Parallel: 1}
		if n := s.gridSize(func(t *Trial) gnb.TrainOptions { c.ask(t); return gnb.TrainOptions{} }, math.MaxInt); n != c.want {
			t.Errorf("%s: %d trials, want %d", c.name, n, c.want)
		}
		if n := s.gridSize(func(t *Trial) gnb.TrainOptions { c.ask(t); return gnb.TrainOptions{} }, 1); n != 0 {
			t.Errorf("%s: with a limit of one trial %d were counted", c.name, n)
		}
		if c.want > 0 {
			if done := try(t, s, c.want+5, c.ask, func(map[string]float64) float64 { return 0 }); len(done) != c.want {
				t.Errorf("%s: the sweep has %d trials, want %d", c.name, len(done), c.want)
			}
		}
	}
}

// For every seed, each 2^k-th part of a parameter's range contains exactly one of 2^k points of a
// Sobol' sequence; random points leave some parts empty.
func TestSobolCovers(t *testing.T) {
	ask := func(t *Trial) {
		for d := range 6 {
			t.Float(fmt.Sprint("x", d), 0, 1)
		}
		t.Int("n", 1, 8)
	}
	for seed := range uint64(3) {
		for _, method := range []string{methodSobol, methodRandom} {
			of := try(t, &Study{Method: method, Seed: seed}, 64, ask, nil)
			empty := 0
			for d := range 6 {
				var seen [64]bool
				for _, r := range of {
					seen[min(int(r.Params[d].Value*64), 63)] = true
				}
				for _, s := range seen {
					if !s {
						empty++
					}
				}
			}
			// A value is rounded to four digits, which may move it over the boundary of a part.
			if method == methodSobol && empty > 6 || method == methodRandom && empty < 60 {
				t.Errorf("%s, seed %d: %d of %d parts are empty", method, seed, empty, 6*64)
			}
			count := map[float64]int{}
			for _, r := range of {
				count[r.Params[6].Value]++
			}
			for n := 1.0; n <= 8; n++ {
				if c := count[n]; method == methodSobol && c != 8 || c == 0 {
					t.Errorf("%s, seed %d: the choice %v was drawn %d times of 64", method, seed, n, c)
				}
			}
		}
	}
	a, b := try(t, &Study{Method: methodSobol, Seed: 1}, 4, ask, nil), try(t, &Study{Method: methodSobol, Seed: 2}, 4, ask, nil)
	if slices.Equal(texts(a), texts(b)) {
		t.Error("two seeds give the same points")
	}
	// Parameters beyond the dimensions of the sequence are drawn at random.
	many := try(t, &Study{Method: methodSobol}, 2, func(t *Trial) {
		for d := range sobolDims + 2 {
			t.Float(fmt.Sprint("x", d), 0, 1)
		}
	}, nil)
	if p := many[1].Params; len(p) != sobolDims+2 || p[sobolDims].Value == p[sobolDims+1].Value {
		t.Errorf("the last parameters are %v", p[sobolDims:])
	}
}

// On a known function, TPE's later trials lie nearer to the best point than random ones, for every
// kind of range, and its best value is better.
func TestTPEConcentrates(t *testing.T) {
	testneed.NotShort(t, "it proposes hundreds of trials")
	ask := func(t *Trial) {
		t.Float("x", -5, 5)
		t.LogFloat("lr", 1e-5, 1)
		t.Int("n", 0, 40)
		t.LogInt("width", 8, 1024)
		Choice(t, "norm", "none", "layer", "batch", "both")
	}
	loss := func(at map[string]float64) float64 {
		sum := math.Pow((at["x"]-2)/10, 2) + math.Pow((math.Log10(at["lr"])+2)/5, 2) + math.Pow((at["n"]-30)/40, 2) + math.Pow(math.Log2(at["width"]/128)/7, 2)
		if at["norm"] != 1 {
			sum += 0.2
		}
		return sum
	}
	for seed := range uint64(5) {
		mean := map[string]float64{}
		best := map[string]float64{}
		layers := 0
		for _, method := range []string{methodTPE, methodRandom} {
			s := &Study{Method: method, Minimize: true, Seed: seed, Parallel: 1}
			s.Trials = try(t, s, 120, ask, loss)
			for _, r := range s.Trials[60:] {
				mean[method] += r.Value / 60
				if method == methodTPE && r.Params[4].Value == 1 {
					layers++
				}
			}
			best[method] = s.Best().Value
		}
		if mean[methodTPE] > 0.5*mean[methodRandom] || best[methodTPE] > best[methodRandom] || layers < 45 {
			t.Errorf("seed %d: mean of the last 60 %.4f by TPE, %.4f at random; best %.4f and %.4f; the right choice %d times of 60",
				seed, mean[methodTPE], mean[methodRandom], best[methodTPE], best[methodRandom], layers)
		}
	}
}

// The proposal of a trial depends only on the seed, its number and the earlier trials. It is the
// same if the sweep is resumed at any trial, and does not depend on the results of trials that
// still run.
func TestProposalsFollowFromTheSeed(t *testing.T) {
	ask := func(t *Trial) {
		t.Float("x", 0, 1)
		if Choice(t, "norm", "none", "layer") == "layer" {
			t.LogInt("width", 8, 64)
		}
	}
	value := func(at map[string]float64) float64 { return at["x"] }
	for _, method := range methods {
		s := &Study{Method: method, Seed: 5, Parallel: 3, Levels: 9}
		all := try(t, s, 40, ask, value)
		again := newSearch(s)
		for i, want := range all {
			// The values of trials that may still run are changed here.
			past := slices.Clone(all[:i])
			for j := range past {
				if past[j].Number > i-s.Parallel {
					past[j].Value = -past[j].Value
				}
			}
			slices.Reverse(past) // trials may end in another order
			got, err := again.propose(i, s.known(i, past), func(t *Trial) gnb.TrainOptions { ask(t); return gnb.TrainOptions{} })
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got.Params) != fmt.Sprint(want.Params) {
				t.Fatalf("%s: trial %d is proposed as %v, before as %v", method, i, got.Params, want.Params)
			}
		}
	}
}

// If trials run one after another, a trial that is not among the best third at a rung stops; with
// fewer than three trials, the best one continues.
func TestHalvingStopsTheWorse(t *testing.T) {
	h := halving{first: 2, factor: 3, epochs: 20, better: func(a, b float64) bool { return a > b }}
	reports := func(values ...float64) []Evaluation {
		var out []Evaluation
		for i, v := range values {
			out = append(out, Evaluation{i + 1, v})
		}
		return out
	}
	var past []TrialResult
	for _, v := range []float64{0.5, 0.6, 0.4, 0.7, 0.2, 0.3} {
		past = append(past, TrialResult{State: StateStopped, Evaluations: reports(0, v)})
	}
	past = append(past, TrialResult{State: runs.StateFailed, Evaluations: reports(0, 0.99)}) // failed trials do not count
	for _, c := range []struct {
		name    string
		reports []Evaluation
		past    []TrialResult
		stops   bool
	}{
		{"before the first rung", reports(0), past, false},
		{"the first of all", reports(0, 0.1), nil, false},
		{"the better of two", reports(0, 0.51), past[:1], false},
		{"the worse of two", reports(0, 0.49), past[:1], true},
		{"second of seven", reports(0, 0.65), past, false},
		{"third of seven", reports(0, 0.55), past, true},
		{"as good as the second", reports(0, 0.6), past, false},
		{"between rungs", reports(0, 0.65, 0), past, false},
		{"the best so far counts", reports(0.65, 0.1), past, false},
		{"the next rung, alone there", reports(0, 0.65, 0, 0, 0, 0), past, false},
		{"two rungs at once", []Evaluation{{7, 0.65}}, append(past, TrialResult{State: runs.StateDone, Evaluations: reports(0, 0, 0, 0, 0, 0.9)}), true},
		{"its last epoch", []Evaluation{{20, 0}}, past, false},
	} {
		if got := h.stops(c.reports, c.past); got != c.stops {
			t.Errorf("%s: stops %v, want %v", c.name, got, c.stops)
		}
	}
}

// Wrong use of a trial's parameters gives an error that names the parameter.
func TestTrialMistakes(t *testing.T) {
	for want, ask := range map[string]func(*Trial){
		`"lr" goes from 1 to 0`:                             func(t *Trial) { t.Float("lr", 1, 0) },
		`"lr" goes from NaN`:                                func(t *Trial) { t.Float("lr", math.NaN(), 0) },
		`"lr" goes from -Inf`:                               func(t *Trial) { t.Float("lr", math.Inf(-1), 0) },
		`"lr" goes from 0; a logarithmic`:                   func(t *Trial) { t.LogFloat("lr", 0, 1) },
		`"n" goes from 0; a logarithmic range of who`:       func(t *Trial) { t.LogInt("n", 0, 4) },
		`"norm" is a choice among []`:                       func(t *Trial) { Choice[int](t, "norm") },
		`"norm" is a choice among ["1" "1"]`:                func(t *Trial) { Choice[any](t, "norm", 1, "1") },
		"has no name":                                       func(t *Trial) { t.Int("", 1, 2) },
		`"x" has two ranges, float 0 to 1 and float 0 to 2`: func(t *Trial) { t.Float("x", 0, 1); t.Float("x", 0, 2) },
	} {
		for _, method := range methods {
			_, err := newSearch(&Study{Method: method, Levels: 5, Parallel: 1}).propose(0, nil, func(t *Trial) gnb.TrainOptions { ask(t); t.Int("later", 1, 2); return gnb.TrainOptions{} })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", method, err, want)
			}
		}
	}
	// Another trial of the sweep must use the same ranges.
	s := newSearch(&Study{Method: methodRandom})
	for i, high := range []float64{1, 2} {
		_, err := s.propose(i, nil, func(t *Trial) gnb.TrainOptions { t.Float("x", 0, high); return gnb.TrainOptions{} })
		if (err != nil) != (i == 1) {
			t.Errorf("trial %d: %v", i, err)
		}
	}
	// A parameter that is requested twice has the same value.
	r, err := newSearch(&Study{Method: methodRandom}).propose(0, nil, func(t *Trial) gnb.TrainOptions {
		return gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: t.Float("x", 0, 1) - t.Float("x", 0, 1)}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	})
	if err != nil || r.Options.LR != 0 || len(r.Params) != 1 {
		t.Errorf("requesting a parameter twice gave %+v (%v)", r, err)
	}
	_, err = newSearch(&Study{Method: methodGrid}).propose(0, nil, func(t *Trial) gnb.TrainOptions { t.Int("n", 1, 1e9); return gnb.TrainOptions{} })
	if err == nil || !strings.Contains(err.Error(), `every value of "n"`) {
		t.Errorf("a grid of 1e9 values gave %v", err)
	}
}

// Values lie within their ranges, and share is the inverse of at.
func TestParamRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Hyperparameter{Name: "p", Kind: rapid.SampledFrom([]string{kindFloat, kindLogFloat, kindInt, kindLogInt, kindChoice}).Draw(t, "kind")}
		switch p.Kind {
		case kindFloat:
			p.Low = rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
			p.High = p.Low + rapid.Float64Range(0, 1e6).Draw(t, "span")
		case kindLogFloat:
			p.Low = rapid.Float64Range(1e-9, 1e6).Draw(t, "low")
			p.High = p.Low * rapid.Float64Range(1, 1e6).Draw(t, "span")
		case kindInt, kindLogInt:
			p.Low = float64(rapid.IntRange(1, 1000).Draw(t, "low"))
			p.High = p.Low + float64(rapid.IntRange(0, 1000).Draw(t, "span"))
		default:
			p.Choices = slices.Repeat([]string{"x"}, rapid.IntRange(1, 9).Draw(t, "choices"))
			p.High = float64(len(p.Choices) - 1)
		}
		u := rapid.Float64Range(0, 1).Draw(t, "u")
		v := p.at(u)
		if v < p.Low || v > p.High || p.Kind != kindFloat && p.Kind != kindLogFloat && v != math.Trunc(v) {
			t.Fatalf("the value of %+v at %v is %v", p, u, v)
		}
		p.Value = v
		s := p.share()
		if s < 0 || s > 1+1e-9 {
			t.Fatalf("%+v has the share %v", p, s)
		}
		if again := p.at(s); again != v && math.Abs(again-v) > 2e-3*math.Abs(v) {
			t.Fatalf("the value of %+v at its share %v is %v", p, s, again)
		}
	})
}
