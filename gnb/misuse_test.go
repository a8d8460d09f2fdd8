package gnb_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)

// odd is a model whose layers have a mistake that the test chooses.
type odd struct {
	nn.SAGE
	layers int
	layer  func(f *nn.Fwd, h *nn.Tensor) *nn.Tensor
}

func (m *odd) NumLayers() int { return m.layers }

func (m *odd) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if m.layer != nil {
		return m.layer(f, h)
	}
	return m.SAGE.Layer(f, i, b, h)
}

var oddModel = gnb.Model("test.odd", func(s gnb.ModelConfig) *odd {
	return &odd{SAGE: *nn.NewSAGEModel(s), layers: s.Layers}
})

// stateless is a model without parameters.
type stateless struct{}

func (stateless) NumLayers() int                                               { return 1 }
func (stateless) Layer(_ *nn.Fwd, _ int, _ *nn.Block, h *nn.Tensor) *nn.Tensor { return h }

var (
	statelessModel = gnb.Model("test.stateless", func(gnb.ModelConfig) stateless { return stateless{} })
	nilModel       = gnb.Model("test.nil", func(gnb.ModelConfig) *nn.SAGE { return nil })
	_              = gnb.Model("test.twice", nn.NewMLPModel)
	twiceModel     = gnb.Model("test.twice", nn.NewMLPModel)
	noBuildModel   = gnb.Model[*nn.SAGE]("test.nobuild", nil)
	noRunProgram   = gnb.Program[int]("test.norun", nil)
	twiceProgram   = gnb.Program("test.twice", func(*gnb.Worker, int) error { return nil })
	_              = gnb.Program("test.twice", func(*gnb.Worker, int) error { return nil })
)

// misuses holds mistakes in programs, by name, each with the expected error.
var misuses = map[string]struct {
	want string
	run  func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer)
}{
	"other split": {`no such split "dev"; it has train, val, test`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Batches("dev", gnb.Loader{}) {
		}
	}},
	"evaluate other split": {`no such split "dev"; it has train, val, test`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.Evaluate(net, gnb.FullNeighbors, "dev")
	}},
	"evaluate nothing": {`Evaluate needs the names of splits`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.Evaluate(net, gnb.FullNeighbors)
	}},
	"evaluate no network": {`Evaluate got no network, at misuse_test`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.Evaluate(nil, gnb.FullNeighbors, "val")
	}},
	"evaluate nil network": {`Evaluate got no network, at misuse_test`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		var none *gnb.Net[*odd]
		w.Evaluate(none, gnb.FullNeighbors, "val")
	}},
	"fanouts and layers": {`model "test.odd".*2 layers.*3 blocks`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{2, 2, 2}}) {
			net.Forward(b)
		}
	}},
	"evaluate fanouts and layers": {`model "test.odd".*2 layers.*1 blocks`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.Evaluate(net, gnb.Sampled([]int{2}, 0, 1), "val")
	}},
	"zero fanout": {`fanout`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Batches("train", gnb.Loader{Fanouts: []int{-2, 3}}) {
		}
	}},
	"two batch sizes": {`Batch \(8.*BatchPerWorker \(4`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Batches("train", gnb.Loader{Batch: 8, BatchPerWorker: 4}) {
		}
	}},
	"wrong rows": {`model "test.odd".*layer 0.*returned \[`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		net.Model.layer = func(_ *nn.Fwd, h *nn.Tensor) *nn.Tensor { return h }
		for b := range w.Batches("train", gnb.Loader{}) {
			net.Forward(b)
		}
	}},
	"nil layer": {`model "test.odd".*layer 0.*nil tensor`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		net.Model.layer = func(*nn.Fwd, *nn.Tensor) *nn.Tensor { return nil }
		w.Evaluate(net, gnb.FullNeighbors, "val")
	}},
	"labels of another batch": {`misuse_test\.go:\d+.*CrossEntropy.*labels`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for b := range w.Batches("train", gnb.Loader{}) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels[1:]), opt)
		}
	}},
	"step twice": {`Step was called twice for one batch`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for b := range w.Batches("train", gnb.Loader{}) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
		}
	}},
	"loss of another network": {`loss of network "test.odd" and the optimiser of network "sage"`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		other := w.SGD(gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 4, Out: 2, Layers: 2}), 0.1)
		for b := range w.Batches("train", gnb.Loader{}) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), other)
		}
	}},
	"stale loss": {`backward pass of model`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		var loss *nn.Loss
		for b := range w.Batches("train", gnb.Loader{Batch: 32}) {
			if out := net.Forward(b); loss == nil {
				loss = nn.CrossEntropy(out, b.Labels)
			}
			w.Step(loss, opt)
		}
	}},
	"no loss":      {`loss without a Sum`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Step(nil, opt) }},
	"no optimiser": {`Step got no optimiser`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Step(&nn.Loss{}, nil) }},
	"weight NaN": {`weight NaN`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for b := range w.Batches("train", gnb.Loader{}) {
			loss := nn.CrossEntropy(net.Forward(b), b.Labels)
			loss.Weight = math.NaN()
			w.Step(loss, opt)
		}
	}},
	"optimiser of nothing": {`Optimizer got no network`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Adam(nil, 0.1) }},
	"nil optimiser":        {`Optimizer got no optimiser`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Optimizer(net, nil) }},
	"negative rate":        {`misuse_test\.go:\d+.*LR`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Adam(net, -1) }},
	"old batch": {`batch of an earlier iteration`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		var old *gnb.Batch
		for b := range w.Batches("train", gnb.Loader{Batch: 32}) {
			if old != nil {
				net.Forward(old)
			}
			old = b
		}
	}},
	"no batch": {`got no batch`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { net.Forward(nil) }},
	"nested loops": {`loop over batches at misuse_test\.go:\d+ begins inside the one at misuse_test\.go:\d+`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Batches("train", gnb.Loader{}) {
			for range w.Batches("val", gnb.Loader{}) {
			}
		}
	}},
	"network in a loop": {`make it before the loop`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Batches("train", gnb.Loader{}) {
			oddModel.New(w, gnb.ModelConfig{In: 8, Hidden: 4, Out: 2, Layers: 2})
		}
	}},
	"epochs twice": {`second loop over Epochs`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		for range w.Epochs(1) {
		}
		for range w.Epochs(1) {
		}
	}},
	"no layers": {`misuse_test\.go:\d+.*ModelConfig\.Layers is 0`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		gnb.SAGE.New(w, gnb.ModelConfig{In: 8, Hidden: 4, Out: 2})
	}},
	"no parameters": {`model "test.stateless".*no parameters`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		statelessModel.New(w, gnb.ModelConfig{})
	}},
	"nil model": {`model "test.nil".*nil`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { nilModel.New(w, gnb.ModelConfig{}) }},
	"two models": {`two models are named "test.twice", declared at misuse_test\.go:\d+ and at misuse_test\.go:\d+`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		twiceModel.New(w, gnb.ModelConfig{})
	}},
	"model without function": {`model "test.nobuild".*without a function`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		noBuildModel.New(w, gnb.ModelConfig{})
	}},
	"unknown model": {`there is no model "gat9"; declared are:.*sage`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.Network("gat9", gnb.ModelConfig{})
	}},
	"log a word":       {`got string for "loss"; values are numbers`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Log("loss", "high") }},
	"log a name alone": {`the name "loss" without a value`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Log("loss") }},
	"log a number":     {`got int where it takes a name`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Log(3, 4) }},
	"keep a value":     {`Keep got a int as "x".*pointer`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Keep("x", 3) }},
	"keep a function": {`Keep got a \*func\(\) as "x".*cannot be written into a checkpoint`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		f := func() {}
		w.Keep("x", &f)
	}},
	"keep twice": {`Keep was called twice with the name "x"`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		var x, y int
		w.Keep("x", &x)
		w.Keep("x", &y)
	}},
	"no best": {`LoadBest at misuse_test\.go:\d+ finds no weights`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.LoadBest(net) }},
	"no weights": {`no such file`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) {
		w.LoadWeights(net, "/nowhere/x.safetensors")
	}},
	"fail without": {`Fail was called without an error`, func(w *gnb.Worker, net *gnb.Net[*odd], opt *gnb.Optimizer) { w.Fail(nil) }},
}

var misuse = gnb.Program("test.misuse", func(w *gnb.Worker, name string) error {
	ds := w.Dataset()
	net := oddModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 4, Out: ds.Classes(), Layers: 2})
	misuses[name].run(w, net, w.Adam(net, 0.01))
	return nil
})

// readable checks that an error is fit for a user: one sentence with the expected words and without
// the stack of a panic.
func readable(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	text := err.Error()
	if !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("the error does not match %q: %s", want, text)
	}
	if strings.Contains(text, "goroutine ") || strings.Contains(text, "panicked") || strings.Contains(text, "\n") {
		t.Errorf("the error is not a sentence:\n%s", text)
	}
}

// A mistake in a program gives an error of one sentence.
func TestMisuseIsASentence(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	n := 0
	for name, m := range misuses {
		if n++; testing.Short() && n > 10 { // with -short, ten of them in the map's random order
			break
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gnb.Launch(t.Context(), misuse, name, gnb.LaunchOptions{Data: ds, Threads: 1, Quiet: true, RunDir: t.TempDir()})
			readable(t, err, m.want)
		})
	}
}

// A mistake in the arguments of a launch gives an error of one sentence and leaves no run behind.
func TestMisuseBeforeTheStart(t *testing.T) {
	whole := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	without := func(change func(ds *gnb.Dataset)) *gnb.Dataset {
		ds := &gnb.Dataset{Graph: whole.Graph, Features: whole.Features, Labels: whole.Labels, Splits: whole.Splits, Meta: whole.Meta}
		change(ds)
		return ds
	}
	trainOn := func(ds *gnb.Dataset, o gnb.TrainOptions) func(dir string) error {
		return func(dir string) error {
			o.RunDir, o.Quiet, o.Eval, o.Epochs = dir, true, "none", 1
			_, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
			return err
		}
	}
	launch := func(p *gnb.ProgramOf[int], o gnb.LaunchOptions) func(dir string) error {
		return func(dir string) error {
			o.RunDir, o.Quiet = dir, true
			_, err := gnb.Launch(t.Context(), p, 1, o)
			return err
		}
	}
	late := gnb.Program("test.tardy", func(*gnb.Worker, int) error { return nil })
	var noModel *gnb.ModelOf[*nn.SAGE]
	for name, tc := range map[string]struct {
		want string
		run  func(dir string) error
	}{
		"no dataset":  {`Train needs a dataset; get one from gnb.Load`, trainOn(nil, gnb.TrainOptions{})},
		"no features": {`no node features`, trainOn(without(func(ds *gnb.Dataset) { ds.Features = nil }), gnb.TrainOptions{})},
		"precision":   {`Precision is "fp8"; it is "float32", "bf16" or, on GPUs, "tf32"`, trainOn(whole, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Precision: "fp8"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})},
		"no labels":   {`no labels`, trainOn(without(func(ds *gnb.Dataset) { ds.Labels = nil }), gnb.TrainOptions{})},
		"no splits":   {`no such split "train"; it has none`, trainOn(without(func(ds *gnb.Dataset) { ds.Splits = nil }), gnb.TrainOptions{})},
		"empty split": {`split "train".*empty`, trainOn(without(func(ds *gnb.Dataset) {
			ds.Splits = map[string][]int32{"train": {}}
		}), gnb.TrainOptions{})},
		"no graph":         {`(?i)graph`, trainOn(without(func(ds *gnb.Dataset) { ds.Graph = nil }), gnb.TrainOptions{})},
		"label too large":  {`label`, trainOn(without(func(ds *gnb.Dataset) { ds.Labels = bytesOf(300, 9) }), gnb.TrainOptions{})},
		"node too large":   {`node`, trainOn(without(func(ds *gnb.Dataset) { ds.Splits = map[string][]int32{"train": {1, 4000}} }), gnb.TrainOptions{})},
		"layers, fanouts":  {`3 layers and 2 fanouts`, trainOn(whole, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Layers: 3, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{2, 2}}})},
		"cuda":             {`Device is "cuda" and there is none: no NVIDIA GPU found`, trainOn(whole, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Device: "cuda"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})},
		"negative workers": {`Workers is -1`, trainOn(whole, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: -1}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})},
		"many workers":     {`(?i)workers|ranks|world`, trainOn(whole, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 5000}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})},
		"other run":        {`not a run's directory`, trainOn(whole, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Resume: "/nowhere"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})},
		"file in the way": {`making the run's directory.*set RunDir or GNB_RUNS`, func(dir string) error {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				return err
			}
			return trainOn(whole, gnb.TrainOptions{})(filepath.Join(dir, "run"))
		}},
		"no file to write": {`gnb: writing config\.json: .*set RunDir`, func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Join(dir, "gone", "config.json"), filepath.Join(dir, "config.json")); err != nil {
				return err
			}
			return trainOn(whole, gnb.TrainOptions{})(dir)
		}},
		"no model": {`Train needs a model`, func(dir string) error {
			_, err := gnb.Train(t.Context(), whole, noModel, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{RunDir: dir, Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
			return err
		}},
		"no program":               {`Launch needs a program`, launch(nil, gnb.LaunchOptions{})},
		"two programs":             {`two programs are named "test.twice"`, launch(twiceProgram, gnb.LaunchOptions{})},
		"program without function": {`program "test.norun".*without a function`, launch(noRunProgram, gnb.LaunchOptions{})},
		"arguments": {`cannot be sent to workers`, func(dir string) error {
			_, err := gnb.Launch(t.Context(), funcs, map[string]func(){"x": nil}, gnb.LaunchOptions{RunDir: dir, Quiet: true})
			return err
		}},
		// The program is declared in a function that only the launching process calls.
		"declared late": {`there is no program "test.tardy"`, launch(late, gnb.LaunchOptions{})},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			readable(t, tc.run(dir), tc.want)
			if name == "declared late" {
				return // only a worker can find this mistake
			}
			if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
				t.Error("a run that could not start left a directory")
			}
		})
	}
}

var funcs = gnb.Program("test.funcs", func(*gnb.Worker, map[string]func()) error { return nil })

func bytesOf(n int, v int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// plainArgs configure a program without mistakes, for runs that are unusual in other ways.
type plainArgs struct {
	Loader gnb.Loader
	Hidden int
	LR     float64
}

var plain = gnb.Program("test.plain", func(w *gnb.Worker, a plainArgs) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: a.Hidden, Out: max(1, ds.Classes()), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, a.LR)
	for range w.Epochs(2) {
		for b := range w.Batches("train", a.Loader) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
		}
		m := w.Evaluate(net, gnb.FullNeighbors, "val")
		w.Log(m, "epoch loss", w.EpochLoss(), "kind", uint16(7))
		w.SaveBest(net, m.Of("val"))
	}
	return nil
})

// Unusual runs without a mistake train.
func TestOddRunsTrain(t *testing.T) {
	whole := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	without := func(change func(ds *gnb.Dataset)) *gnb.Dataset {
		ds := &gnb.Dataset{Graph: whole.Graph, Features: whole.Features, Labels: whole.Labels, Splits: whole.Splits, Meta: whole.Meta}
		change(ds)
		return ds
	}
	for name, tc := range map[string]struct {
		o     gnb.LaunchOptions
		a     plainArgs
		steps int
	}{
		"batch larger than the split": {gnb.LaunchOptions{Data: whole, Workers: 2}, plainArgs{gnb.Loader{Batch: math.MaxInt}, 4, 0.01}, 2},
		"far ahead":                   {gnb.LaunchOptions{Data: whole}, plainArgs{gnb.Loader{Batch: 64, Ahead: math.MaxInt - 10, MaxSteps: 2}, 4, 0.01}, 4},
		"more workers than seeds":     {gnb.LaunchOptions{Data: without(func(ds *gnb.Dataset) { ds.Splits = map[string][]int32{"train": {1, 2}, "val": {3}} }), Workers: 4}, plainArgs{gnb.Loader{}, 4, 0.01}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := tc.o
			o.RunDir, o.Quiet, o.Threads = t.TempDir(), true, 1
			run, err := gnb.Launch(t.Context(), plain, tc.a, o)
			if err != nil {
				t.Fatal(err)
			}
			if steps, err := run.Steps(); err != nil || len(steps) != tc.steps {
				t.Errorf("%d steps, %v; want %d", len(steps), err, tc.steps)
			}
		})
	}
}

// A run that resumes with other sizes fails, and the error says how to resume it.
func TestResumeWithOtherSizes(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	dir := t.TempDir()
	o := gnb.LaunchOptions{Data: ds, Threads: 1, Quiet: true, RunDir: dir, CheckpointEvery: 1}
	a := plainArgs{gnb.Loader{Batch: 64, MaxSteps: 2}, 4, 0.01}
	run, err := gnb.Launch(t.Context(), plain, a, o)
	if err != nil {
		t.Fatal(err)
	}
	before := weights(t, run)
	config := func() []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	was := config()
	o.Resume = dir
	a.Hidden = 5
	for _, c := range []struct {
		name, want string
		change     func()
	}{
		{"sizes", `Hidden was 4 and is 5; to resume it all the same set ResumeChanged`, func() {}},
		{"seed", `Hidden was 4 and is 5; the seed was 0 and is 4; to resume it`, func() { o.Seed = 4 }},
		{"data", `the data changed \(other structure, features, labels and splits\); Hidden`, func() { o.Seed, o.Data = 0, load(t, "planted?nodes=301&features=8&classes=3&seed=2") }},
		{
			"sizes all the same", `model "sage": parameter .* has \d+ values there and \d+ here; resume with the sizes the run had, or start anew`,
			func() { o.Data, o.ResumeChanged = ds, true },
		},
	} {
		c.change()
		_, err = gnb.Launch(t.Context(), plain, a, o)
		readable(t, err, c.want)
	}
	if !bytes.Equal(before, weights(t, run)) {
		t.Error("a failed resume changed the weights")
	}
	if !bytes.Equal(was, config()) {
		t.Errorf("a failed resume changed config.json to\n%s", config())
	}
	a.Hidden, a.Loader.MaxSteps, o.ResumeChanged = 4, 4, true // this change is compatible
	run, err = gnb.Launch(t.Context(), plain, a, o)
	if err != nil {
		t.Fatal(err)
	}
	if c := run.Config.Changes; len(c) != 1 || len(c[0].What) != 1 || !strings.Contains(c[0].What[0], "MaxSteps was 2 and is 4") || !bytes.Contains(config(), []byte("MaxSteps was 2 and is 4")) {
		t.Errorf("the changes are %v, and config.json is\n%s", c, config())
	}
}
