//go:build cuda && linux && cgo

package e2e

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
)

// finiteFiles fails the test if a file of weights in a run's directory holds a number that is not
// finite.
func finiteFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".safetensors" {
			return err
		}
		ts, _, err := safetensors.ReadFile(path)
		for _, x := range ts {
			for _, v := range x.F32 {
				if v-v != 0 {
					return fmt.Errorf("%s: %s holds %v", path, x.Name, v)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The host reads a device's loss after it has submitted later steps. A diverging run nevertheless
// ends with the step, the rank and the layer where numbers stopped being finite, with one rank and
// with several, and saves no weights that are not finite.
func TestDivergenceOnADevice(t *testing.T) {
	testneed.NotShort(t, "it trains four times on the interpreter")
	for _, c := range []struct{ gpus, virtual int }{{1, 1}, {2, 1}, {1, 2}, {2, 2}} {
		t.Run(fmt.Sprintf("%d-%d", c.gpus, c.virtual), func(t *testing.T) {
			cluster(t, c.gpus, machine{})
			o := small
			o.Batch, o.LR, o.VirtualRanks, o.CheckpointEvery, o.Eval, o.RunDir = 24, 1e30, c.virtual, 1, "none", t.TempDir()
			_, _, err := train(t, load(t, "planted?nodes=120&classes=3&features=8&degree=4"), o)
			want := `stopped being finite at epoch 0, step 1, on rank \d: layer \d \(\*nn\.SAGEConv\) of model "sage" gives .*(Inf|NaN) for node \d+ in column \d, of finite input; the usual ways out are a lower learning rate \(it is 1e\+30\)`
			if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || !errors.Is(err, gnb.ErrNotFinite) {
				t.Errorf("%v", err)
			}
			finiteFiles(t, o.RunDir)
		})
	}
}

// lateFinite makes the loss infinite at a step of epoch 1, in training on the whole graph ("full")
// or on batches ("loop").
var lateFinite = gnb.Program("e2e.finite", func(w *gnb.Worker, where string) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, 0.01)
	full := w.FullGraph("train")
	for epoch := range w.Epochs(3) {
		if where == "full" {
			step(w, net, opt, full, epoch == 1)
		} else {
			for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 2}, Batch: 24}) {
				step(w, net, opt, b, epoch == 1 && b.Step == 1)
			}
		}
		w.SaveBest(net, float64(epoch))
	}
	return nil
})

func step(w *gnb.Worker, net *gnb.Net[*nn.SAGE], opt *gnb.Optimizer, b *gnb.Batch, spoil bool) {
	l := nn.CrossEntropy(net.Forward(b), b.Labels)
	if spoil {
		f := l.Sum.Fwd()
		l.Sum = f.Scale(f.Scale(l.Sum, math.MaxFloat32), math.MaxFloat32)
	}
	w.Step(l, opt)
}

func TestLateLossIsNamed(t *testing.T) {
	testneed.NotShort(t, "it trains four times on the interpreter")
	for _, where := range []string{"full", "loop"} {
		for _, gpus := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s-%d", where, gpus), func(t *testing.T) {
				cluster(t, gpus, machine{})
				dir := t.TempDir()
				_, err := gnb.Launch(t.Context(), lateFinite, where, gnb.LaunchOptions{Data: load(t, "planted?nodes=120&classes=3&features=8&degree=4"), Device: "cuda", Quiet: true, RunDir: dir, CheckpointEvery: 1})
				at := map[string]string{"full": "epoch 1, step 0", "loop": "epoch 1, step 1"}[where]
				want := `stopped being finite at ` + at + `, on rank 0: the loss is \+Inf, though every layer of model "sage" has finite output.*the best epoch before that, 0, is kept in best\.safetensors`
				if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) || !errors.Is(err, gnb.ErrNotFinite) {
					t.Errorf("%v", err)
				}
				finiteFiles(t, dir)
			})
		}
	}
}
