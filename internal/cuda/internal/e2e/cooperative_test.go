//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Workers that train on cooperative batches on GPUs have the losses of one worker on the CPU.
func TestCooperativeHasTheCPUsLosses(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "planted?nodes=600&classes=4&features=12&degree=5")
	t.Setenv("GNB_RUNS", t.TempDir())
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5, Layers: 3, InputDropout: 0.1, Residual: true}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 50, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, LaunchOptions: gnb.LaunchOptions{Device: "cpu"}, Cooperative: true}
	want, _, err := train(t, ds, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Device = "cuda"
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			log := cluster(t, n, machine{})
			got, _, err := train(t, ds, o)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
			lines := devices(t, log)
			if len(lines) != n {
				t.Errorf("%d of %d devices were closed", len(lines), n)
			}
			for _, l := range lines { // devices have exchanged rows and gradients
				if !strings.Contains(l, "add_rows_f32=") || !strings.Contains(l, " 0 left behind") {
					t.Errorf("a device ended with %s", l)
				}
			}
		})
	}
}
