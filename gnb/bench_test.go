package gnb

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu"
)

// within runs body as a program of one worker inside this process.
func within(tb testing.TB, ds *Dataset, body func(w *Worker)) {
	tb.Helper()
	insideBody = body
	f, err := ds.Share(tb.Context(), dataset.CheckOnceOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	job := job{
		Program: "test.inside", Args: []byte("0"), Virtual: 1,
		jobData: jobData{DataInMemory: true}, recordFiles: recordFiles{RunDir: tb.TempDir(), KeepCheckpoints: 3},
	}
	g, err := multigpu.Start(tb.Context(), multigpu.Spec{World: 1, InProcess: true, Job: job, Files: []*os.File{f}})
	if err == nil {
		err = g.Wait()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

var (
	insideBody func(w *Worker)
	_          = Program("test.inside", func(w *Worker, _ int) error {
		insideBody(w)
		return nil
	})
)

func planted(tb testing.TB, nodes int) *Dataset {
	tb.Helper()
	ds, err := datasets.Load(fmt.Sprintf("planted?nodes=%d&features=32&classes=8&seed=1", nodes))
	if err != nil {
		tb.Fatal(err)
	}
	return ds
}

// BenchmarkStep measures a training step in the middle of a loop, including sampling and fetching:
// seeds per second, and allocations.
func BenchmarkStep(b *testing.B) {
	ds := planted(b, 20000)
	within(b, ds, func(w *Worker) {
		net := SAGE.New(w, ModelConfig{In: 32, Hidden: 64, Out: 8, Layers: 2, Dropout: 0.5})
		opt := w.Adam(net, 0.01)
		loader := Loader{Fanouts: []int{10, 5}, Batch: 256}
		seeds, steps := 0, -10 // the first ten steps warm up
		var start time.Time
		var before, after runtime.MemStats
		for steps < b.N {
			for batch := range w.Batches("train", loader) {
				if steps == 0 {
					seeds, start = 0, time.Now()
					runtime.ReadMemStats(&before)
					b.ResetTimer()
				}
				if steps == b.N {
					break
				}
				seeds += len(batch.Seeds)
				w.Step(nn.CrossEntropy(net.Forward(batch), batch.Labels), opt)
				steps++
			}
		}
		b.StopTimer()
		runtime.ReadMemStats(&after)
		n := float64(b.N)
		b.ReportMetric(float64(seeds)/time.Since(start).Seconds(), "seeds/s")
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/step")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/step")
	})
}

// A run with thousands of steps in hundreds of loops, with evaluations and checkpoints, ends with
// about the goroutines and memory that it had after a third of its steps.
func TestLongRunsDoNotGrow(t *testing.T) {
	loops := 300
	if testing.Short() {
		loops = 60
	}
	within(t, planted(t, 1000), func(w *Worker) {
		net := SAGE.New(w, ModelConfig{In: 32, Hidden: 16, Out: 8, Layers: 2, Dropout: 0.5})
		opt := w.Adam(net, 0.01)
		n := 0
		w.Keep("n", &n)
		// A goroutine that was told to end may need a moment on a busy machine: up to ten seconds
		// pass until no more than most of them are left.
		measure := func(most int) (goroutines int, heap uint64) {
			var m runtime.MemStats
			for range 1000 {
				if goroutines = runtime.NumGoroutine(); goroutines <= most {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return goroutines, m.HeapAlloc
		}
		var g0 int
		var h0 uint64
		for epoch := range w.Epochs(loops) {
			for b := range w.Batches("train", Loader{Fanouts: []int{4, 4}, Batch: 64}) {
				w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
				n++
				if epoch%3 == 1 && b.Step == 4 {
					break
				}
			}
			w.Evaluate(net, FullNeighbors, "val")
			w.Evaluate(net, Sampled([]int{3, 3}, 100, 0), "test")
			if epoch == loops/3 {
				g0, h0 = measure(math.MaxInt)
			}
		}
		if g, h := measure(g0); g > g0 || h > h0+h0/4+1<<20 {
			t.Errorf("%d goroutines and %d KB after %d steps, %d and %d KB after a third of the steps", g, h>>10, n, g0, h0>>10)
		}
		if n := w.feed.samplers.Len(); n != 2 {
			t.Errorf("the worker keeps %d samplers, want one for training and one for evaluation", n)
		}
	})
}
