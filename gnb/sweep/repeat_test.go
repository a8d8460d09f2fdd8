package sweep_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/sweep"
)

// Seeds trained beside each other give the weights, and the averages the bits, of seeds trained one after the other, and
// the first is the run that gnb.Train makes of it.
func TestRepeat(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	o := gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Batch: 100}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 1, Seed: 7}}
	var got []*sweep.Repeated
	for _, parallel := range []int{1, 3, 0} {
		r, err := sweep.Repeat(t.Context(), 3, ds, gnb.SAGE, o, sweep.Options{Parallel: parallel, Quiet: true, Resume: gnb.Never})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Runs) != 3 || len(r.Seeds) != 3 || r.Seeds[0] != 7 || r.Seeds[2] != 9 {
			t.Fatalf("seeds %v, %d runs", r.Seeds, len(r.Runs))
		}
		got = append(got, r)
	}
	o.Threads, o.Quiet, o.Resume = 2, true, gnb.Never
	alone, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	read := func(file string) []byte {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, r := range got {
		for i := range r.Runs {
			if !bytes.Equal(read(r.Runs[i].Weights()), read(got[0].Runs[i].Weights())) {
				t.Errorf("seed %d has other weights beside other seeds", r.Seeds[i])
			}
		}
		for _, name := range []string{"val_accuracy", "test_accuracy"} {
			if a, b := r.Of(name), got[0].Of(name); a != b || a.N != 3 || !(a.Mean > 0) || math.IsNaN(a.Deviation) {
				t.Errorf("%v, one after the other %v", a, b)
			}
		}
	}
	if !bytes.Equal(read(alone.Weights()), read(got[0].Runs[0].Weights())) {
		t.Error("the first seed has other weights than gnb.Train")
	}
	r := got[0]
	mean, squares := 0.0, 0.0
	for _, run := range r.Runs {
		mean += run.TestAccuracy() / 3
	}
	for _, run := range r.Runs {
		squares += math.Pow(run.TestAccuracy()-mean, 2)
	}
	if s := r.Of("test_accuracy"); math.Abs(s.Mean-mean) > 1e-12 || math.Abs(s.Deviation-math.Sqrt(squares/2)) > 1e-12 {
		t.Errorf("mean and deviation are %v, want %v and %v", s, mean, math.Sqrt(squares/2))
	}
	if s := r.Of("speed"); s.N != 0 || !math.IsNaN(s.Mean) {
		t.Errorf("a value that no run has is %v", s)
	}
	if text := r.String(); !strings.Contains(text, "test_accuracy 0.") || !strings.Contains(text, " ± ") || strings.Contains(text, "best_epoch") {
		t.Errorf("the summary is\n%s", text)
	}
	o.Epochs = 3
	again, err := sweep.Repeat(t.Context(), 3, ds, gnb.SAGE, o, sweep.Options{Dir: r.Study.Dir, Quiet: true})
	if err == nil || again != nil {
		t.Errorf("a call with other options continues the study: %v", err)
	}
}

func TestRepeatRefuses(t *testing.T) {
	t.Setenv("GNB_RUNS", t.TempDir())
	ds := load(t, sweepSet)
	for name, c := range map[string]struct {
		n    int
		o    gnb.TrainOptions
		more []sweep.Options
		want string
	}{
		"no run":        {0, gnb.TrainOptions{}, nil, "takes 1 to"},
		"large seeds":   {2, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Seed: math.MaxUint64}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, nil, "a smaller Seed"},
		"two options":   {1, gnb.TrainOptions{}, make([]sweep.Options, 2), "one Options"},
		"a directory":   {1, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{RunDir: "x"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, []sweep.Options{{Quiet: true}}, "leave RunDir and Resume out"},
		"no evaluation": {1, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, []sweep.Options{{Quiet: true}}, "no val_accuracy"},
	} {
		r, err := sweep.Repeat(t.Context(), c.n, ds, gnb.SAGE, c.o, c.more...)
		if err == nil || !strings.Contains(err.Error(), c.want) || r != nil && len(r.Runs) > 0 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if _, err := sweep.Run(t.Context(), ds, gnb.SAGE, sweepOptions, sweep.Options{Method: "seeds", Quiet: true}); err == nil {
		t.Error("Run accepts the method of Repeat")
	}
}
