package optim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
)

// averages is testdata/averages.json, which averages.py beside it writes by PyTorch.
type averages struct {
	Steps    int
	Sizes    map[string]int
	Averages map[string][][]float64
	Groups   map[string]struct {
		Rates, W []float64
	}
}

// The parameters of averages.py, in its order.
var averagedNames, averagedSizes = []string{"convs.0.lin.weight", "convs.0.bias", "convs.1.lin.weight", "convs.1.bias"}, []int{6, 3, 4, 2}

func readAverages(t *testing.T) (py averages) {
	t.Helper()
	raw, err := os.ReadFile("testdata/averages.json")
	if err == nil {
		err = json.Unmarshal(raw, &py)
	}
	if err != nil || len(py.Averages) != 4 || len(py.Groups) != 4 {
		t.Fatalf("averages.json has %d averages and %d optimisers with groups: %v", len(py.Averages), len(py.Groups), err)
	}
	return py
}

// flatValues are the values of averages.py: of parameter i with the number k+i.
func flatValues(k int) (w []float32) {
	for i, n := range averagedSizes {
		w = append(w, pyValues(n, k+i)...)
	}
	return w
}

// An average agrees with torch.optim.swa_utils.AveragedModel after each step, and goes on from its state to the bit.
func TestAveragesArePyTorch(t *testing.T) {
	t.Parallel()
	py := readAverages(t)
	for form, want := range py.Averages {
		how, err := ParseAveraging(form)
		if err != nil || how.String() != strings.TrimSuffix(form, ":1") {
			t.Fatalf("%s is read as %s, %v", form, how, err)
		}
		made := func() *Averaged { return NewAveraged(NewAdam(AdamOptions{LR: 0.02, WeightDecay: 0.01}), how) }
		o, w := made(), flatValues(0)
		for step := range py.Steps {
			o.Step(w, flatValues(step), 1)
			expect.Near(t, fmt.Sprintf("%s, step %d", form, step), o.Average(), want[step], 1e-6, 1e-6)
			if step%5 == 4 { // go on as a resumed run does
				state := map[string][]float32{}
				for _, s := range o.State() {
					state[s.Name] = slices.Clone(s.Data)
				}
				again := made()
				if err := again.SetState(o.Steps(), state); err != nil {
					t.Fatal(err)
				}
				o = again
			}
		}
		if slices.Equal(o.Average(), w) {
			t.Errorf("%s: the average is the last weights", form)
		}
	}
}

// Groups train as torch.optim's parameter groups do, under a schedule.
func TestGroupsArePyTorch(t *testing.T) {
	t.Parallel()
	py := readAverages(t)
	groups := []Group{{Match: "*.bias", WeightDecay: None}, {Match: "convs.0", LR: 0.05, WeightDecay: 0.2}}
	for name, o := range map[string]Optimizer{
		"adam": NewAdam(AdamOptions{LR: 0.02, WeightDecay: 0.1}), "adamw": NewAdamW(AdamOptions{LR: 0.02, WeightDecay: 0.1}),
		"sgd": NewSGD(SGDOptions{LR: 0.02, WeightDecay: 0.1}), "momentum": NewSGD(SGDOptions{LR: 0.02, WeightDecay: 0.1, Momentum: 0.9}),
	} {
		want := py.Groups[name]
		g := NewGrouped(o, groups...)
		if err := Bind(NewAveraged(g, EMA(0.5)), averagedNames, averagedSizes); err != nil {
			t.Fatal(err)
		}
		w := flatValues(0)
		for step, rate := range want.Rates {
			g.SetLR(rate)
			g.Step(w, flatValues(step), 1)
		}
		expect.Near(t, name, w, want.W, 1e-6, 1e-6)
	}
}

// A group with the rate None keeps its parameters to the bit, and groups without settings change nothing.
func TestGroupsKeep(t *testing.T) {
	t.Parallel()
	run := func(groups ...Group) []float32 {
		g := NewGrouped(NewAdamW(AdamOptions{LR: 0.1}), groups...)
		if err := Bind(g, averagedNames, averagedSizes); err != nil {
			t.Fatal(err)
		}
		w := flatValues(0)
		for step := range 5 {
			g.Step(w, flatValues(step), 1)
		}
		return w
	}
	plain, w := NewAdamW(AdamOptions{LR: 0.1}), flatValues(0)
	for step := range 5 {
		plain.Step(w, flatValues(step), 1)
	}
	if got := run(Group{Match: "convs.?.bias"}); !slices.Equal(got, w) {
		t.Errorf("a group without settings has the weights %v, not %v", got, w)
	}
	got := run(Group{Match: "convs.0", LR: None})
	if !slices.Equal(got[:9], flatValues(0)[:9]) || !slices.Equal(got[9:], w[9:]) {
		t.Errorf("with convs.0 frozen the weights are %v", got)
	}
}

func TestGroupsAndAveragesMisuse(t *testing.T) {
	t.Parallel()
	for _, g := range []Group{{}, {Match: "[a"}, {Match: "a", LR: -2}, {Match: "a", WeightDecay: -0.5}} {
		if err := g.Check(0.1); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", g, err)
		}
	}
	if err := (Group{Match: "a", LR: 1}).Check(0); err == nil {
		t.Error("a group has a rate where the optimiser's is 0")
	}
	for _, groups := range [][]Group{{{Match: "lin"}}, {{Match: "*"}, {Match: "convs.0"}}} {
		if err := Bind(NewGrouped(NewAdam(AdamOptions{}), groups...), averagedNames, averagedSizes); err == nil || !strings.Contains(err.Error(), "convs.1.lin.weight") {
			t.Errorf("%+v: %v", groups, err)
		}
	}
	for _, s := range []string{"convs.0", "convs.0:", "convs.0:lr", "convs.0:lr=x", ":lr=1", "a:rate=1", "a:lr=-1", "a:lr=NaN", "[:lr=1"} {
		if g, err := ParseGroup(s); err == nil {
			t.Errorf("%q is read as %+v", s, g)
		}
	}
	if g, err := ParseGroup("*.bias:lr=0.5,decay=0"); err != nil || g != (Group{Match: "*.bias", LR: 0.5, WeightDecay: None}) || g.String() != "*.bias:lr=0.5,decay=0" {
		t.Errorf("%+v, %s, %v", g, g, err)
	}
	for _, s := range []string{"ema", "ema:1", "ema:0", "ema:x", "swa", "swa:-1", "swa:1:0", "swa:1:2:3", "mean:1", "ema:0.5:2"} {
		if a, err := ParseAveraging(s); err == nil {
			t.Errorf("%q is read as %+v", s, a)
		}
	}
	if err := SWA(5).Check(5); err == nil {
		t.Error("an average begins at the end")
	}
	refused := func(what string, fn func()) {
		t.Helper()
		defer func() {
			var te *tensor.Error
			if err, ok := recover().(error); !ok || !errors.As(err, &te) || !strings.Contains(te.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}()
		fn()
	}
	refused("before the first step", func() {
		NewGrouped(NewAdam(AdamOptions{}), Group{Match: "a"}).Step(make([]float32, 3), make([]float32, 3), 1)
	})
	refused("no groups", func() { NewGrouped(NewAveraged(NewAdam(AdamOptions{}), EMA(0.5))) })
	refused("averaging", func() { NewAveraged(NewAdam(AdamOptions{}), Averaging{}) })
	a := NewAveraged(NewAdam(AdamOptions{}), EMA(0.5))
	a.Step(make([]float32, 3), make([]float32, 3), 1)
	three := make([]float32, 3)
	for name, state := range map[string]map[string][]float32{
		"none":  {"exp_avg": three, "exp_avg_sq": three},
		"empty": {"exp_avg": three, "exp_avg_sq": three, "average": nil},
		"short": {"exp_avg": three, "exp_avg_sq": three, "average": make([]float32, 2)},
	} {
		if err := a.SetState(1, state); err == nil {
			t.Errorf("a state with an average that is %s is taken", name)
		}
	}
}
