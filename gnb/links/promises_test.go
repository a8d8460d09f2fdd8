package links_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links/linkstest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Every batch of a run is clean, with every loader, decoder, loss and distribution of negatives; each
// training edge is predicted once per epoch, and training is better than chance.
func TestEveryBatchIsClean(t *testing.T) {
	for i, s := range linkstest.Settings() {
		t.Run(s.Name, func(t *testing.T) {
			if i > 0 {
				testneed.NotShort(t, "it trains several times")
			}
			run, err := launch(t, s.Setting, gnb.LaunchOptions{Workers: 1 + i%2})
			if err != nil {
				t.Fatal(err)
			}
			v := run.Value
			if v("checked") == 0 || v("predicted") != v("train_edges") {
				t.Errorf("%v batches were checked, and %v of %v edges predicted per epoch", v("checked"), v("predicted"), v("train_edges"))
			}
			// Some of these settings learn little in 3 epochs, so the bound is low: 0.5 is chance.
			if !(v("test_auc") > 0.55 && v("test_auc") <= 1) && !s.Whole {
				t.Errorf("the AUC is %v", v("test_auc"))
			}
			for _, name := range []string{"test_auc", "test_mrr", "test_hits_1", "shared_hits_20"} {
				if x := v(name); !(x >= 0 && x <= 1) {
					t.Errorf("%s is %v", name, x)
				}
			}
		})
	}
}

// Planted leaks are found with every loader: held-out edges among the messages, and, unless edges to
// predict are messages by the setting, a batch's own edges.
func TestPlantedLeaksAreFound(t *testing.T) {
	for i, s := range linkstest.Settings() {
		if i > 0 && testing.Short() {
			break
		}
		for want, plant := range map[string]func(*linkstest.Setting) bool{
			"which is an edge that the batch predicts, or the reverse of one": func(s *linkstest.Setting) bool {
				s.KeepEdges = true
				return !s.Whole && s.Disjoint == 0 // otherwise there is nothing to take out
			},
			"which is an edge of validation or test": func(s *linkstest.Setting) bool {
				s.HeldOut = true
				return true
			},
		} {
			s := s
			if !plant(&s.Setting) {
				continue
			}
			if _, err := launch(t, s.Setting, gnb.LaunchOptions{}); err == nil || !strings.Contains(err.Error(), "a leak: the messages of layer") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want a leak %q", s.Name, err, want)
			}
		}
	}
}

// With all known edges as messages of an evaluation, training is as without, and the metrics of the test
// are others; those of validation are others only if the split is disjoint. So it is on several workers.
func TestKnownMessages(t *testing.T) {
	testneed.NotShort(t, "it trains six times")
	for _, s := range []linkstest.Setting{{}, {Whole: true}, {Disjoint: 0.4}} {
		s.Epochs = 2
		without, err := launch(t, s, gnb.LaunchOptions{Workers: 1, VirtualRanks: 2})
		if err != nil {
			t.Fatal(err)
		}
		s.KnownMessages = true
		with, err := launch(t, s, gnb.LaunchOptions{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		sampledAs(t, "with known messages", with, without, s.Whole)
		if !bytes.Equal(weights(t, with), weights(t, without)) {
			t.Errorf("%+v: messages of evaluations change training", s)
		}
		for name, other := range map[string]bool{"test_auc": true, "val_auc": s.Disjoint > 0} {
			if a, b := with.Value(name), without.Value(name); (a != b) != other || !(a > 0 && a <= 1) {
				t.Errorf("%+v: %s is %v with them and %v without", s, name, a, b)
			}
		}
	}
}

// sampledAs compares what two runs sampled and predicted.
func sampledAs(t *testing.T, what string, got, want *runs.Run, whole bool) {
	t.Helper()
	if a, b := got.Result.Text["digest"], want.Result.Text["digest"]; a != b || a == "" && !whole {
		t.Errorf("%s: the digest is %q, want %q", what, a, b)
	}
	for _, name := range []string{"pairs", "predicted"} {
		if a, b := got.Value(name), want.Value(name); a != b || a == 0 {
			t.Errorf("%s: %s is %v, want %v", what, name, a, b)
		}
	}
}

// What a run samples and predicts does not depend on workers and threads, with every loader.
func TestOneDigest(t *testing.T) {
	testneed.NotShort(t, "it trains several times with each loader")
	for _, s := range linkstest.Settings() {
		t.Run(s.Name, func(t *testing.T) {
			s.Epochs, s.LastMetrics = 2, true
			var one *runs.Run
			for _, workers := range []int{1, 2, 4} {
				run, err := launch(t, s.Setting, gnb.LaunchOptions{Workers: workers, Threads: 1 + workers%2})
				if err != nil {
					t.Fatal(err)
				}
				if one == nil {
					one = run
				}
				sampledAs(t, fmt.Sprint(workers, " workers"), run, one, s.Whole)
			}
		})
	}
}

// After 200 small steps, runs with the same number of workers × virtual ranks have the same weights, losses and
// metrics to the bit.
func TestEqualBits(t *testing.T) {
	testneed.NotShort(t, "it takes 200 steps with up to eight workers")
	for _, s := range linkstest.Settings() {
		switch s.Name {
		case "labor", "in-batch", "disjoint", "full graph": // every way to make a batch and to divide it
		default:
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			s.Hidden, s.LastMetrics = 8, true
			if s.Batch, s.Epochs = 32, 7; s.Whole {
				s.Epochs = 200
			}
			var one *runs.Run
			var losses []float64
			for _, workers := range []int{1, 2, 4, 8} {
				run, err := launch(t, s.Setting, gnb.LaunchOptions{Workers: workers, VirtualRanks: 8 / workers, Threads: 1 + workers%2})
				if err != nil {
					t.Fatal(err)
				}
				got, err := run.Losses()
				if err != nil || len(got) < 200 {
					t.Fatalf("%d workers took %d steps, %v; want at least 200", workers, len(got), err)
				}
				if one == nil {
					one, losses = run, got
				}
				sampledAs(t, fmt.Sprint(workers, " workers"), run, one, s.Whole)
				if !bytes.Equal(weights(t, run), weights(t, one)) || !slices.Equal(got, losses) {
					t.Errorf("%d workers have other weights or losses than one", workers)
				}
				sameValues(t, fmt.Sprint(workers, " workers"), run, one)
			}
		})
	}
}

// sameValues compares the metrics and results of two runs, to the bit.
func sameValues(t *testing.T, what string, got, want *runs.Run) {
	t.Helper()
	for name, value := range want.Result.Values {
		if x, ok := got.Result.Values[name]; !ok || math.Float64bits(x) != math.Float64bits(value) {
			// The number of shares depends on the number of workers.
			if name != "checked" {
				t.Errorf("%s: %s is %v, want %v", what, name, x, value)
			}
		}
	}
}
