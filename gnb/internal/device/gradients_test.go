package device

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// line is a model of one weight.
type line struct{ W *nn.Param }

// newLine returns its parameters, with the weight 2.
func newLine(t *testing.T) *Parameters {
	t.Helper()
	params, err := nn.Collect(&line{nn.NewParam(1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	params.Flat()[0] = 2
	return &Parameters{Params: params, Model: "line"}
}

func sites(kind string) collective.Site { return collective.Site{Kind: kind} }

// The gradients of a step's batches, their losses and counts are added; an empty batch adds nothing, and
// nothing is left of the step before.
func TestGradientsInHostMemory(t *testing.T) {
	p := newLine(t)
	g, err := p.Gradients(GradientOptions{Comm: collective.NewSingle(), Site: sites, Virtual: 3})
	if err != nil {
		t.Fatal(err)
	}
	f := nn.NewFwd(nn.Config{Train: true})
	defer f.Close()
	for range 2 {
		for micro, x := range []float32{3, 5} {
			f.Reset(nn.Config{Train: true})
			g.Begin(micro)
			in := f.Input(1, 1, []float32{x}, &nn.Space{})
			loss := &nn.Loss{Sum: f.MatMul(in, f.Param(p.Get("w"))), Weight: float64(micro + 1)}
			loss.SetCorrect(int64(micro), 7)
			g.Note(micro, loss)
			if l, known := g.Loss(micro); !known || l != 2*x {
				t.Errorf("batch %d: loss %v, known %v; want %v", micro, l, known, 2*x)
			}
			loss.Backward()
			if own := g.Own(micro); !slices.Equal(own, []float32{x}) {
				t.Errorf("batch %d: gradient %v, want [%v]", micro, own, x)
			}
		}
		g.Empty(2)
		grad, totals, late, err := g.Sum()
		if want := (Totals{Weight: 3, Loss: 16, Correct: 1, Count: 14}); err != nil || late != nil || totals != want || !slices.Equal(grad, []float32{8}) {
			t.Errorf("%v, %+v, %v, %v; want [8] and %+v", grad, totals, late, err, want)
		}
	}
	if norm, err := p.Step(optim.NewSGD(optim.SGDOptions{LR: 1}), []float32{8}, 0.5, Bound{Norm: 2}, true); err != nil || norm != 4 || math.Abs(float64(p.Flat()[0])) > 1e-6 || p.Applied() != 0 {
		t.Errorf("norm %v, error %v, weight %v, %d steps kept; want 4, no error, 0, none", norm, err, p.Flat()[0], p.Applied())
	}
}

// recorder are weights of a device that records the calls to it.
type recorder struct {
	calls []string
	err   error
}

func (w *recorder) call(name string) error { w.calls = append(w.calls, name); return w.err }
func (w *recorder) ZeroGrad()              { _ = w.call("zero") }
func (w *recorder) Reduce()                { _ = w.call("reduce") }
func (w *recorder) ClipScale(scale float32, limit float64) (float32, float64, error) {
	return scale / 2, 2 * limit, w.call("clip")
}
func (w *recorder) Step(optim.Optimizer, float32) error { return w.call("step") }
func (w *recorder) Remember(int64) error                { return w.call("remember") }
func (w *recorder) Recall(int64) error                  { return w.call("recall") }
func (w *recorder) Put() error                          { return w.call("put") }
func (w *recorder) Pull(optim.Optimizer) error          { return w.call("pull") }
func (w *recorder) PutFixed() error                     { return w.call("put fixed") }
func (w *recorder) PullFixed() error                    { return w.call("pull fixed") }

// Host memory is copied from the device only after it has become stale.
func TestParametersOnADevice(t *testing.T) {
	p, d := newLine(t), &recorder{}
	p.Device = d
	adam := optim.NewAdam(optim.AdamOptions{})
	for _, f := range []func() error{
		p.ToHost,
		func() error { _, err := p.Step(adam, nil, 1, Bound{Norm: 3}, true); return err },
		p.ToHost, p.ToHost,
		func() error { return p.Recall(0) },
		p.ToHost,
		func() error { _, err := p.Step(adam, nil, 1, Bound{}, false); return err },
		p.ToDevice, p.ToHost,
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"clip", "remember", "step", "pull", "recall", "pull", "step", "put"}; !slices.Equal(d.calls, want) || p.Applied() != 1 {
		t.Errorf("%v and %d steps kept, want %v and 1", d.calls, p.Applied(), want)
	}
	d.err = errors.New("lost")
	if err := p.ToDevice(); !errors.Is(err, d.err) {
		t.Errorf("ToDevice after the device was lost: %v", err)
	}
}

// One rank's losses are read after the step; their totals are those of the step's batches that were not empty.
func TestLateLosses(t *testing.T) {
	p, d := newLine(t), &recorder{}
	p.Device = d
	g, err := p.Gradients(GradientOptions{Comm: collective.NewSingle(), Site: sites, Virtual: 2})
	if err != nil {
		t.Fatal(err)
	}
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	step := func(first float32) *Late {
		f.Reset(nn.Config{})
		g.Begin(0)
		loss := &nn.Loss{Sum: f.Input(1, 1, []float32{first}, &nn.Space{}), Weight: 2}
		loss.SetCorrect(1, 4)
		g.Note(0, loss)
		g.Empty(1)
		_, totals, late, err := g.Sum()
		if err != nil || late == nil || totals.Weight != 2 || totals.Count != 4 {
			t.Fatalf("%+v, %v, %v", totals, late, err)
		}
		return late
	}
	a, err := step(3).Wait()
	if want := (Totals{2, 3, 1, 4}); err != nil || a != want {
		t.Errorf("%+v, %v, want %+v", a, err, want)
	}
	late := step(float32(math.Inf(1)))
	if _, err := late.Wait(); err != nil || !slices.Equal(late.Losses(), []float32{float32(math.Inf(1)), 0}) {
		t.Errorf("losses %v, %v; want infinity and 0", late.Losses(), err)
	}
	if want := []string{"zero", "reduce", "zero", "reduce"}; !slices.Equal(d.calls, want) {
		t.Errorf("%v, want %v", d.calls, want)
	}
}
