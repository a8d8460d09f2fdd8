package gnb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The workers of a machine have one window: a row that several of them need within it is asked for by one of them. The
// counters show that, in the run's own trace: the workers ask for fewer rows than they could with a window each, however
// large, and for no row again that one of the batches just before needed. A row that the worker has which gets it for all
// is not asked for.
func TestOneWindowForAMachine(t *testing.T) {
	testneed.Raced(t, "it trains several times")
	ds := load(t, "planted?nodes=2000&features=12&classes=4&seed=2")
	const n = 4
	const kept = 4 // batches that are surely not gathered on all workers when a row is asked for
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 250, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	parts, sim := newCacheRun(t, ds, n, o)
	var want partsRun
	for i, workers := range []int{1, 2, 4} {
		var traces []hotness.Trace
		var reads, alone int64
		for r := range workers {
			here := func(v int32) bool { return int(sim.job.Of[v])*workers/n == r }
			var trace hotness.Trace
			for step := range sim.traces[0] {
				for p := r * n / workers; p < (r+1)*n/workers; p++ {
					trace = append(trace, sim.traces[p][step])
				}
			}
			trace = trace.Without(here)
			reads += trace.Rows()
			alone += trace.Windowed(len(trace), nil)
			copied := func(v int32) bool { return int(sim.job.Of[v])*workers/n == int(v)%workers } // by the worker that has it
			traces = append(traces, trace.Without(copied))
		}
		together := hotness.Merge(traces...)
		most, fewest := together.Windowed(kept, nil), together.Windowed(len(together), nil)
		if workers == n && most >= alone {
			t.Fatalf("%d workers ask for at most %d rows together and at least %d alone, which shows nothing", workers, most, alone)
		}
		for _, topology := range []string{"replicated", "divided"} {
			o.Workers, o.Topology, o.Prefetch = workers, topology, 3
			run := tradivideWell(t, parts, o)
			if want.run == nil {
				want = run
			}
			if run.run.Result.Text["digest"] != want.run.Result.Text["digest"] || !bytes.Equal(run.weights, want.weights) || !bytes.Equal(run.logits, want.logits) {
				t.Errorf("%d workers, %s: the digest, the weights or the outputs differ from those of one worker", workers, topology)
			}
			if i == 0 {
				continue // it has all rows
			}
			got := rowsOf(t, run.run)
			if got.Remote < fewest || got.Remote > most || got.Window+got.Remote != reads || got.Bytes != 48*got.Remote {
				t.Errorf("%d workers, %s: the rows are %+v; once each are %d, once in %d batches %d, and %d are read", workers, topology, got, fewest, kept, most, reads)
			}
			t.Logf("%d workers, %s: %d rows asked for, of %d read; with a window each at least %d", workers, topology, got.Remote, reads, alone)
		}
	}
}

// killedInWindow trains on parts; one rank ends itself by SIGKILL in the middle, once, while its machine's window has rows
// of later batches.
var killedInWindow = gnb.Program("test.window.killed", func(w *gnb.Worker, kill bool) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.3})
	opt := w.Adam(net, 0.02)
	for range w.Epochs(3) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 64}) {
			w.Step(b.Loss(net.Forward(b)), opt)
			if !kill || w.Rank() != 1 || b.Epoch != 1 || b.Step != 2 || !b.EndsStep {
				continue
			}
			if f, err := os.OpenFile(filepath.Join(w.RunDir(), "killed"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				_ = f.Close()
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}
	return nil
})

// sharedFiles lists the shared memory that this process knows: files without names that it has open, and named ones.
func sharedFiles(t *testing.T) (files []string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc")
	}
	for _, f := range open {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "/memfd:gnb") {
			files = append(files, to)
		}
	}
	named, _ := filepath.Glob("/dev/shm/*gnb*")
	return append(files, named...)
}

// A run one of whose workers is killed while they share a window leaves no shared memory behind, and restarts with the
// bits of a run without a failure.
func TestKilledInAWindow(t *testing.T) {
	testneed.Raced(t, "it waits for restarts")
	ds := load(t, "planted?nodes=900&features=12&classes=3&seed=2")
	parts := divideWell(t, ds, 4, divided.Options{})
	onDisk := stored(t, ds, dataset.WriteOptions{})
	before := sharedFiles(t)
	var want []byte
	for i, o := range []gnb.LaunchOptions{{}, {Restarts: 1}, {Restarts: 1, PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}, {PlaneOptions: gnb.PlaneOptions{Features: "disk"}}, {PlaneOptions: gnb.PlaneOptions{Features: "disk"}, Restarts: 1}} {
		kill := o.Restarts > 0
		if o.Data = parts; o.Features != "" {
			o.Data = onDisk
		}
		if i == 3 {
			want = nil // other seeds of each worker
		}
		o.Workers, o.Threads, o.Seed, o.CheckpointEvery, o.Prefetch = 4, 1, 8, 2, 3
		o.Quiet, o.Resume, o.RunDir, o.Device = true, gnb.Never, filepath.Join(t.TempDir(), "run"), "cpu"
		run, err := gnb.Launch(t.Context(), killedInWindow, kill, o)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = weights(t, run)
		}
		if got := run.Result.Restarts; got != o.Restarts || !bytes.Equal(weights(t, run), want) {
			t.Errorf("%s topology, %s: the run was restarted %d times, or has other weights than one without a failure", o.Topology, o.Features, got)
		}
		if after := sharedFiles(t); !slices.Equal(after, before) {
			t.Errorf("the shared memory %v is left, of %v before", after, before)
		}
	}
}

// leftEarly leaves its loops over batches at steps that differ from epoch to epoch, as a program that has seen enough does.
var leftEarly = gnb.Program("test.window.left", func(w *gnb.Worker, epochs int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.02)
	for epoch := range w.Epochs(epochs) {
		left := epoch % 7
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 16}) {
			w.Step(b.Loss(net.Forward(b)), opt)
			if b.EndsStep && b.Step == left {
				break
			}
		}
	}
	return nil
})

// Workers that leave loops in the middle, while their machine's window gets rows of later batches, begin the next loop, and
// have the weights of a run whose features are in memory.
func TestLoopsLeftInAWindow(t *testing.T) {
	testneed.NotShort(t, "it begins many loops")
	onDisk := stored(t, load(t, "planted?nodes=900&features=12&classes=3&seed=2"), dataset.WriteOptions{})
	parts := divideWell(t, load(t, "planted?nodes=900&features=12&classes=3&seed=2"), 4, divided.Options{})
	var want []byte
	for _, o := range []gnb.LaunchOptions{
		{Data: onDisk},
		{Data: onDisk, PlaneOptions: gnb.PlaneOptions{Features: "disk"}},
		{Data: onDisk, PlaneOptions: gnb.PlaneOptions{Features: "disk", Cache: "10%", Prefetch: 9}},
		{Data: parts},
		{Data: parts, PlaneOptions: gnb.PlaneOptions{Topology: "divided"}},
	} {
		o.Workers, o.Threads, o.Seed, o.CheckpointEvery = 4, 1, 8, -1
		o.Quiet, o.Resume, o.RunDir, o.Device = true, gnb.Never, filepath.Join(t.TempDir(), "run"), "cpu"
		run, err := gnb.Launch(t.Context(), leftEarly, 60, o)
		if err != nil {
			t.Fatal(err)
		}
		got := weights(t, run)
		if o.Data == parts && o.Topology == "" {
			want = nil // other seeds of each worker
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s, %s topology: the weights are not those of a run with features in memory", o.Features, o.Topology)
		}
	}
}
