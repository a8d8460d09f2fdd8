package sweep

import (
	"go/format"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/doctest"
)

func sampleStudy() *Study {
	s := &Study{Dir: "runs/x", State: runs.StateDone, Dataset: "cora", Model: "sage", Method: methodRandom, Metric: "val_accuracy", Parallel: 1}
	s.Trials = sampleTrials(s)
	return s
}

// sampleTrials returns trials whose metric depends mostly on lr and not on hidden.
func sampleTrials(s *Study) []TrialResult {
	search := newSearch(s)
	var out []TrialResult
	for i := range 60 {
		r, _ := search.propose(i, nil, func(t *Trial) gnb.TrainOptions {
			o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: t.LogFloat("lr", 1e-4, 1e-1)}, ModelOptions: gnb.ModelOptions{Hidden: Choice(t, "hidden", 32, 64), Dropout: 0.5, Norm: "layer", Residual: true}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{15, 10}}, LaunchOptions: gnb.LaunchOptions{Seed: 7, Quiet: true}}
			if o.Hidden == 64 {
				o.Dropout = t.Float("dropout", 0.1, 0.7)
			}
			return o
		})
		r.State, r.Value, r.Evaluations = runs.StateDone, 0.5+0.4*r.Params[0].share()+0.02*math.Sin(float64(7*i)), []Evaluation{{10, 0.5}}
		out = append(out, r)
	}
	out[3].State, out[3].Evaluations = StateStopped, []Evaluation{{3, 0.4}}
	out[5].State, out[5].Value, out[5].Error = runs.StateFailed, 0, "out of luck"
	return out
}

// The best trial is printed as Go code that compiles and is formatted by gofmt's rules.
func TestBestCode(t *testing.T) {
	s := sampleStudy()
	best := s.Best()
	imported, err := doctest.Importer("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"sage", "gcn", "gat", "gatv2", "gin", "gine", "gatedgcn", "pna", "rgcn", "hgt", "mlp", `my"own`} {
		s.Model = model
		code := s.BestCode()
		if formatted, err := format.Source([]byte(code)); err != nil || string(formatted) != code {
			t.Errorf("gofmt (%v) makes\n%s\nof\n%s", err, formatted, code)
		}
		if err := doctest.Check([]doctest.Piece{{File: "BestCode", Line: 1, Text: code}}, imported); err != nil {
			t.Errorf("%v\n%s", err, code)
		}
	}
	s.Model = "sage"
	for _, want := range []string{"gnb.SAGE, o))", "o.Fanouts = []int{15, 10}\n", `o.Norm = "layer"`, "o.Residual = true", "o.LR = "} {
		if !strings.Contains(s.BestCode(), want) {
			t.Errorf("no %q in\n%s", want, s.BestCode())
		}
	}
	if strings.Contains(s.BestCode(), "Quiet") || best.Options.LR == 0 {
		t.Errorf("the code is\n%s", s.BestCode())
	}
	if code := (&Study{}).BestCode(); code != "" {
		t.Errorf("without trials the code is %q", code)
	}
}

// A parameter that explains the metric completely has an importance of 1, one that does not explain
// it has 0, and the importance of a parameter that only some trials have is computed from those.
func TestImportance(t *testing.T) {
	s := sampleStudy()
	got := map[string]float64{}
	for _, x := range s.Importance() {
		got[x.Name] = x.Share
	}
	if len(got) != 3 || got["lr"] < 0.8 || got["hidden"] > 0.1 || got["dropout"] > 0.4 {
		t.Errorf("importances %v", got)
	}
	if s.Importance()[0].Name != "lr" {
		t.Errorf("the most important parameter is %v", s.Importance()[0])
	}
	s.Trials = s.Trials[:9]
	if got := s.Importance(); len(got) > 0 {
		t.Errorf("with nine trials the importances are %v", got)
	}
	for name, c := range map[string]struct {
		group []int
		y     []float64
		want  float64
	}{
		"all":           {[]int{0, 0, 1, 1}, []float64{1, 1, 2, 2}, 1},
		"nothing":       {[]int{0, 1, 0, 1}, []float64{1, 1, 2, 2}, 0},
		"one value":     {[]int{0, 1, 0, 1}, []float64{3, 3, 3, 3}, 0},
		"one group":     {[]int{0, 0, 0}, []float64{1, 2, 3}, 0},
		"half, by hand": {[]int{0, 0, 1, 1}, []float64{0, 1, 1, 2}, 1 - (1.0/2)/(2.0/3)},
	} {
		if got := explained(c.group, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The table lists the best trial first and marks failed trials.
func TestStudyString(t *testing.T) {
	s := sampleStudy()
	lines := strings.Split(s.String(), "\n")
	if lines[0] != "random search of sage on cora: done, 60 trials, 1 stopped, 1 failed" || lines[1] != "runs/x" {
		t.Errorf("the table begins with %q", lines[:2])
	}
	if f := strings.Fields(lines[2]); strings.Join(f, " ") != "trial val_accuracy lr hidden dropout epochs seconds" && strings.Join(f, " ") != "trial val_accuracy lr dropout hidden epochs seconds" {
		t.Errorf("columns %q", lines[2])
	}
	for _, want := range []string{"and 10 more trials\n", "trial 5 failed: out of luck\n", "each explains alone: lr "} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if data, err := s.PNG(); err != nil || len(data) < 1000 {
		t.Errorf("the picture has %d bytes (%v)", len(data), err)
	}
	s.Trials = nil
	if got := s.String(); !strings.Contains(got, "0 trials") {
		t.Errorf("of nothing: %q", got)
	}
}
