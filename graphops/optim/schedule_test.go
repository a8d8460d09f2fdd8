package optim

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestSchedulesArePyTorch compares each step's rate with that of PyTorch's scheduler (testdata/schedules.py).
func TestSchedulesArePyTorch(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/schedules.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Steps          int64
		Accuracy, Loss []float64
		Rates          map[string][]float64
		OnAccuracy     []float64 `json:"accuracy_plateau:3:0.5"`
		OnLoss         []float64 `json:"loss_plateau:2:0.1:0.004"`
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	near := func(name string, step int, got, want float64) {
		if math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: step %d has rate %v, PyTorch's %v", name, step, got, want)
		}
	}
	if len(py.Rates) < 7 {
		t.Fatalf("schedules.json has %d schedules", len(py.Rates))
	}
	for form, want := range py.Rates {
		s := parse(t, form)
		for step, lr := range want {
			near(form, step, s.Rate(0.1, int64(step), py.Steps), lr)
		}
	}
	for _, c := range []struct {
		form         string
		values, want []float64
		sign         float64
	}{{"plateau:3:0.5", py.Accuracy, py.OnAccuracy, 1}, {"plateau:2:0.1:0.004", py.Loss, py.OnLoss, -1}} {
		var w Watch
		s := parse(t, c.form)
		for step, lr := range c.want {
			near(c.form, step, w.Rate(s, s.Rate(0.1, int64(step), py.Steps)), lr)
			w.Observe(s, c.sign*c.values[step])
		}
		if w.Cuts < 2 {
			t.Errorf("%s was cut %d times; the test needs more", c.form, w.Cuts)
		}
	}
}

func parse(t *testing.T, form string) Schedule {
	t.Helper()
	s, err := ParseSchedule(form)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(0.1, 100); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchedulesAreValues sends schedules through JSON and through their text.
func TestSchedulesAreValues(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"", "step:7:0.5", "cosine", "cosine:0.001", "onecycle", "plateau:3:0.5", "plateau:3:0.5:0.01", "warmup:12", "cosine:0.002,warmup:10"} {
		s := parse(t, form)
		if s.String() != form {
			t.Errorf("%q is written as %q", form, s)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Schedule
		if err := json.Unmarshal(raw, &back); err != nil || back != s {
			t.Errorf("%q is %+v after JSON (%s), was %+v: %v", form, back, raw, s, err)
		}
	}
	if got, want := StepDecay(2, 0.5).After(1).Steps(10), (Schedule{Kind: "step", Every: 20, Factor: 0.5, Warmup: 10, Start: 0.01}); got != want {
		t.Errorf("in steps: %+v, want %+v", got, want)
	}
}

// TestScheduleMisuse tests that a schedule without meaning is refused with a sentence.
func TestScheduleMisuse(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"cosin", "step", "step:1", "step:a:0.1", "plateau:1.5:0.1", "onecycle,warmup:3", "cosine,step:1:0.1", "warmup:-1", "warmup:1,warmup:2", ",", "cosine:", "plateau:1e300:0.5"} {
		if s, err := ParseSchedule(form); err == nil {
			t.Errorf("%q was read as %+v", form, s)
		}
	}
	for name, s := range map[string]Schedule{
		"no kind": {Kind: "linear"}, "no interval": StepDecay(0, 0.5), "factor 0": StepDecay(1, 0), "factor 2": Plateau(1, 2, 0),
		"above the rate": Cosine(0.2), "NaN": Cosine(math.NaN()), "warm-up of the whole": Cosine(0).After(101), "negative patience": Plateau(-1, 0.5, 0),
		"infinite": StepDecay(math.Inf(1), 0.5), "warm-up of one cycle": {Kind: "onecycle", Warmup: 2},
	} {
		if s.Check(0.1, 100) == nil {
			t.Errorf("%s: %+v was accepted", name, s)
		}
	}
	if r := OneCycle().Rate(0.1, 0, 1); math.IsNaN(r) || r <= 0 {
		t.Errorf("one cycle of one step has the rate %v", r)
	}
	for _, steps := range []int64{1, 2, 3, 4} {
		for step := range steps + 3 {
			if r := OneCycle().Rate(0.1, step, steps); math.IsNaN(r) || r <= 0 || r > 0.1 {
				t.Errorf("one cycle of %d steps has the rate %v at step %d", steps, r, step)
			}
		}
	}
	var w Watch
	for range 5 {
		w.Observe(Plateau(1, 0.5, 0), math.NaN())
	}
	if w.Seen || w.Cuts != 2 {
		t.Errorf("five measurements of NaN leave %+v", w)
	}
}
