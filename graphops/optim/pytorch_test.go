package optim

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/internal/expect"
)

// pyValues returns the numbers that values of pytorch.py returns.
func pyValues(n, k int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*37+k*11)%29-14) / 8
	}
	return x
}

func TestOptimizersArePyTorch(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../nn/testdata/pytorch.json") // written by pytorch.py beside it
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Optimizers map[string]struct {
			Steps int
			W     []float64
			State map[string][]float64
		}
		Clip struct {
			Norm float64
			G    []float64
		}
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	for _, tc := range optimizers() {
		want, ok := py.Optimizers[tc.name]
		if !ok {
			t.Errorf("pytorch.json has no optimiser %q", tc.name)
			continue
		}
		w := pyValues(7, 1)
		opt := tc.make()
		for step := range want.Steps {
			opt.Step(w, pyValues(7, step), 1)
		}
		expect.Near(t, tc.name, w, want.W, 1e-6, 1e-6)
		var names []string
		for _, s := range opt.State() {
			names = append(names, s.Name)
			expect.Near(t, tc.name+" "+s.Name, s.Data, want.State[s.Name], 1e-6, 1e-6)
		}
		if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(want.State))) {
			t.Errorf("%s has the state %v", tc.name, names)
		}
	}
	g := pyValues(7, 3)
	norm := ClipNorm(g, 1, 1.5)
	expect.Near(t, "norm", []float32{float32(norm)}, []float64{py.Clip.Norm}, 0, 1e-6)
	expect.Near(t, "clipped", g, py.Clip.G, 1e-6, 1e-6)
}
