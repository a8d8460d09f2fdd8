//go:build cuda && linux && cgo

package e2e

import (
	"errors"
	"regexp"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// steadyArgs says which kind of loop program steady runs, and how often.
type steadyArgs struct {
	Loops string
	Times int
}

var steady = gnb.Program("e2e.steady", func(w *gnb.Worker, a steadyArgs) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	l := gnb.Loader{Fanouts: []int{4, 4}, Batch: 20}
	train := func(b *gnb.Batch) { w.Step(b.Loss(net.Forward(b)), opt) }
	switch a.Loops {
	case "to its end":
		for range a.Times {
			for b := range w.Batches("train", l) {
				train(b)
			}
		}
	case "broken off":
		for range a.Times {
			for b := range w.Batches("train", l) {
				train(b)
				if b.Step%20 == 1 {
					break
				}
			}
		}
	case "used after it was broken off":
		l.MaxSteps = 1
		for range a.Times {
			var kept *gnb.Batch
			for b := range w.Batches("train", l) {
				kept = b
				break
			}
			if len(kept.Blocks) != 2 || len(kept.Labels) != 20 {
				return errors.New("the batch of a loop that was broken off was released before the next loop")
			}
			train(kept)
		}
	case "nested":
		for range a.Times {
			for b := range w.Batches("train", l) {
				train(b)
				w.Evaluate(net, gnb.Sampled([]int{3, 3}, 20, 2), "val")
				if b.Step%20 == 2 {
					break
				}
			}
		}
	case "with a sampler each":
		for i := range a.Times {
			l.Fanouts = []int{4, 1 + i%6}
			for b := range w.Batches("train", l) {
				train(b)
				if b.Step%20 == 1 {
					break
				}
			}
		}
	case "by weight":
		l.Fanouts, l.Sampler = nil, sample.Weighted{Fanouts: sample.Fanouts{4, 4}}
		for range a.Times {
			for b := range w.Batches("train", l) {
				train(b)
				break
			}
		}
	}
	return nil
})

// number returns the value of name in a device's line of the log.
func number(t *testing.T, line, name string) int {
	t.Helper()
	m := regexp.MustCompile(` ` + name + `=(\d+)`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("the log has no %s: %s", name, line)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The peak of device memory does not grow with the number of steps, however loops end.
// GNB_CUDA_EXACT makes each buffer an allocation of its own, so that a leaked batch (5 KB) shows.
// Batches differ in size, and the memory kept for them grows with the largest, so the test allows
// some slack, which four leaked batches exceed.
func TestMemoryStandsStill(t *testing.T) {
	testneed.NotShort(t, "it takes twenty seconds on the interpreter")
	const slack = 20 << 10
	ds := load(t, "planted?nodes=400&classes=4&features=8&degree=8")
	for _, c := range []struct {
		loops     string
		data      *gnb.Dataset
		few, many int
		slack     int
	}{
		{"to its end", ds, 1, 4, slack},
		{"broken off", ds, 4, 11, slack},
		{"used after it was broken off", ds, 4, 11, slack},
		{"nested", ds, 3, 9, slack},
		{"with a sampler each", ds, 6, 18, 6 * slack}, // a sampler takes 36 KB, and different sets of four samplers are kept
		{"by weight", weighted(ds), 4, 11, slack},
	} {
		// Each takes seconds on the interpreter. The loops that are used after they were broken off are broken off too.
		if (c.loops == "broken off" || c.loops == "nested" || c.loops == "with a sampler each") && !testneed.Soak.Here() {
			continue
		}
		t.Run(c.loops, func(t *testing.T) {
			t.Setenv("GNB_CUDA_EXACT", "1")
			var peak [2]int
			for i, times := range []int{c.few, c.many} {
				log := cluster(t, 1, machine{})
				if _, err := gnb.Launch(t.Context(), steady, steadyArgs{c.loops, times}, gnb.LaunchOptions{
					Data:            c.data,
					Device:          "cuda",
					Workers:         1,
					Quiet:           true,
					Resume:          gnb.Never,
					CheckpointEvery: -1,
				}); err != nil {
					t.Fatal(err)
				}
				peak[i] = number(t, devices(t, log)[0], "peak_bytes")
			}
			if peak[1] > peak[0]+c.slack {
				t.Errorf("%d loops take %d bytes, %d loops %d", c.few, peak[0], c.many, peak[1])
			}
		})
	}
	t.Run("gnb.Sample", func(t *testing.T) {
		t.Setenv("GNB_CUDA_EXACT", "1")
		var peak [2]int
		for i, steps := range []int{5, 25} {
			log := cluster(t, 1, machine{})
			if _, err := gnb.Sample(t.Context(), ds, gnb.SampleOptions{Fanouts: []int{5, 5}, Split: "train", Batch: 4, Steps: steps, Device: "cuda", Quiet: true}); err != nil {
				t.Fatal(err)
			}
			peak[i] = number(t, devices(t, log)[0], "peak_bytes")
		}
		if peak[1] > peak[0]+slack {
			t.Errorf("5 steps take %d bytes, 25 steps %d", peak[0], peak[1])
		}
	})
}
