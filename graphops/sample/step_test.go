package sample_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// seedsOnly picks the edges whose sources are seeds of the step.
type seedsOnly struct {
	steps *int
	bad   string
}

func (seedsOnly) Pick(*sample.Hop, int32, []int32, []int32) []int32 { panic("not of a step") }

func (s seedsOnly) ForStep(_ *sample.Hop, _ *graphops.Graph, seeds []int32, last sample.Picker) (sample.Picker, error) {
	*s.steps++
	switch s.bad {
	case "error":
		return nil, errors.New("no seeds today")
	case "none":
		return nil, nil
	case "panic":
		panic("oh")
	}
	p, _ := last.(from)
	if p == nil {
		p = from{}
	}
	clear(p)
	for _, v := range seeds {
		p[v] = true
	}
	return p, nil
}

type from map[int32]bool

func (f from) Pick(_ *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	for i, u := range nbrs {
		if f[u] {
			out = append(out, int32(i))
		}
	}
	return out
}

// A StepPicker sees the seeds of the whole step, once for each step: those that ForStep says, else those of the batch.
func TestStepPicker(t *testing.T) {
	// 0 → 1 → 2 → 3 → 0, and 0 → 2.
	g, err := graphops.FromEdges(4, []int32{0, 1, 2, 3, 0}, []int32{1, 2, 3, 0, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	s := newSampler(t, g, sample.Config{Picker: seedsOnly{steps: &steps}, Hops: 1})
	edges := func(step int, seeds ...int32) int {
		b := mustSample(t, s, 0, step, seeds)
		defer b.Release()
		return b.Edges()
	}
	if n := edges(0, 2); n != 0 || steps != 1 {
		t.Errorf("a step of node 2 has %d edges after %d calls, want none after 1", n, steps)
	}
	for range 2 { // the second call is of the same step
		if err := s.ForStep(0, 1, sample.Seeds{IDs: []int32{0, 2, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := edges(1, 2), edges(1, 1, 0); a != 2 || b != 1 || steps != 2 {
		t.Errorf("shares have %d and %d edges after %d calls, want 2, 1 and 2", a, b, steps)
	}
	if n := edges(2, 2); n != 0 || steps != 3 {
		t.Errorf("the next step has %d edges after %d calls, want none after 3", n, steps)
	}
	if n := edges(1, 2); n != 0 { // what ForStep said is forgotten
		t.Errorf("the step before, alone, has %d edges, want none", n)
	}
	for bad, want := range map[string]string{"error": "failed: no seeds today", "none": "returned no picker", "panic": "panicked"} {
		s := newSampler(t, g, sample.Config{Picker: seedsOnly{&steps, bad}, Hops: 1})
		_, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{1}})
		var of *sample.PickError
		if !errors.As(err, &of) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", bad, err, want)
		}
	}
	c := sample.Config{Picker: seedsOnly{steps: &steps}, Hops: 1}
	if _, err := sample.NewCooperative(g, c, sample.Peers{World: 2}); err == nil || !strings.Contains(err.Error(), "picks by all seeds of a step") {
		t.Errorf("cooperative: %v", err)
	}
	if _, err := sample.NewDivided(sample.Division{}, c); err == nil || !strings.Contains(err.Error(), "needs the whole graph") {
		t.Errorf("divided: %v", err)
	}
	if _, err := sample.New(g, sample.Config{Picker: &sample.Excluding{Picker: c.Picker, Of: func(int, int) *sample.EdgeSet { return nil }}, Hops: 1}); err == nil || !strings.Contains(err.Error(), "exclude edges from another picker's") {
		t.Errorf("excluding: %v", err)
	}
}
