//go:build cuda && linux && cgo

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// lateArgs says when program late reads the losses of its steps, and after which iteration it fails
// (0 for never).
type lateArgs struct {
	Read string
	Fail int
}

// late trains two networks in a loop, one with a loss of the library and one with a loss of its
// own, and one of them also on the whole graph after each loop.
var late = gnb.Program("e2e.late", func(w *gnb.Worker, a lateArgs) error {
	sizes := gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 2}
	one, two := gnb.SAGE.New(w, sizes), gnb.SAGE.New(w, sizes)
	optOne, optTwo := w.Adam(one, 0.01), w.SGD(two, 0.001)
	full := w.FullGraph("train")
	var losses []gnb.StepLoss
	n := 0
	step := func(loss *nn.Loss, opt *gnb.Optimizer) {
		mean := math.NaN()
		if a.Read == "at once" {
			mean = loss.Mean()
		}
		l := w.Step(loss, opt)
		if a.Read == "at once" && l.Mean() != mean {
			w.Fail(fmt.Errorf("Step returned a loss of %v, want %v", l, mean))
		}
		losses = append(losses, l)
		switch a.Read {
		case "at once":
			l.Mean()
		case "printed":
			w.Printf("loss %.17g", l)
			w.Log("loss", l)
		}
	}
	for epoch := range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 2}, Batch: 8}) {
			cross := nn.CrossEntropy(one.Forward(b), b.Labels)
			cross.Sum = cross.Sum.Fwd().Scale(cross.Sum, 3) // a program may change the loss
			step(cross, optOne)
			h := two.Forward(b)
			own := &nn.Loss{Sum: h.Fwd().SumAll(h.Fwd().Mul(h, h)), Weight: float64(len(b.Seeds))}
			own.SetCorrect(1, int64(len(b.Seeds)))
			step(own, optTwo)
			if n++; n == a.Fail {
				return errors.New("the program fails on purpose")
			}
		}
		step(full.Loss(two.Forward(full)), optTwo)
		if a.Read == "by epoch" {
			w.Log("loss", w.EpochLoss())
		}
		w.Log("epoch", epoch)
	}
	for i, l := range losses { // long after the steps
		w.Result(fmt.Sprint("loss ", i), l.Mean())
	}
	return nil
})

// Losses and weights have the same bits, and losses belong to the same steps, whenever a program
// reads the losses, also in a run that resumes from a checkpoint.
func TestLossesReadLater(t *testing.T) {
	testneed.NotShort(t, "it trains five times on the interpreter")
	ds := load(t, "planted?nodes=64&classes=3&features=6&degree=4")
	var want []runs.Step
	var weights []byte
	for _, c := range []struct {
		name string
		a    lateArgs
		o    gnb.LaunchOptions
	}{
		{"at once", lateArgs{Read: "at once"}, gnb.LaunchOptions{}},
		{"never", lateArgs{}, gnb.LaunchOptions{}},
		{"printed", lateArgs{Read: "printed"}, gnb.LaunchOptions{}},
		{"by epoch", lateArgs{Read: "by epoch"}, gnb.LaunchOptions{}},
		{"resumed", lateArgs{Fail: 8}, gnb.LaunchOptions{CheckpointEvery: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster(t, 1, machine{})
			var text strings.Builder
			c.o.Data, c.o.Device, c.o.Workers, c.o.Quiet = ds, "cuda", 1, true
			c.o.RunDir = filepath.Join(t.TempDir(), "run")
			c.o.Events = func(e runs.Event) { text.WriteString(e.Text + "\n") }
			run, err := gnb.Launch(t.Context(), late, c.a, c.o)
			if c.a.Fail > 0 {
				if err == nil || !strings.Contains(err.Error(), "fails on purpose") {
					t.Fatalf("the run ended with %v", err)
				}
				c.a.Fail, c.o.Resume, c.o.RunDir, c.o.ResumeChanged = 0, c.o.RunDir, "", true
				run, err = gnb.Launch(t.Context(), late, c.a, c.o)
			}
			if err != nil {
				t.Fatal(err)
			}
			steps, err := run.Steps()
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(run.Weights())
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, weights = steps, file
				if len(want) < 20 {
					t.Fatalf("%d steps", len(want))
				}
			}
			if !slices.Equal(steps, want) {
				t.Errorf("steps are\n%v, want those read at once\n%v", steps, want)
			}
			if !bytes.Equal(file, weights) {
				t.Error("the weights differ")
			}
			for i, s := range steps {
				if v := run.Value(fmt.Sprint("loss ", i)); !math.IsNaN(v) && v != s.Loss && c.name != "resumed" {
					t.Errorf("step %d returned a loss of %v, but the run recorded %v", i, v, s.Loss)
				}
				if c.a.Read == "printed" && !strings.Contains(text.String(), fmt.Sprintf("loss %.17g\n", s.Loss)) {
					t.Errorf("the loss %v is not printed", s.Loss)
				}
			}
		})
	}
}
