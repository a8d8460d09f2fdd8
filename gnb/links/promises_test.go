package links_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

var update = flag.Bool("update", false, "write the table of promises into bench/notes/links.md")

// promised returns the settings that have a promise.
func promised(p linkstest.Promise) (some []linkstest.Named) {
	for _, s := range linkstest.Settings() {
		if s.Has(p) {
			some = append(some, s)
		}
	}
	return some
}

// Every batch of a run is clean, with every loader, decoder, loss and distribution of negatives; each
// training edge is predicted once per epoch, and training is better than chance. The other tests verify the
// batches of more workers.
func TestEveryBatchIsClean(t *testing.T) {
	for i, s := range promised(linkstest.Clean) {
		t.Run(s.Name, func(t *testing.T) {
			if i > 0 {
				testneed.NotShort(t, "it trains several times")
			}
			v := undivided(t, s.Setting).Value
			if v("checked") == 0 || v("predicted") != v("train_edges") {
				t.Errorf("%v batches were checked, and %v of %v edges predicted per epoch", v("checked"), v("predicted"), v("train_edges"))
			}
			// Some of these settings learn little in 2 epochs, so the bound is low: 0.5 is chance.
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

// inTurn reports whether a test tries the i-th setting: the first and every sixth, which differ by turn, with GNB_SOAK
// all. TestOneDigest, TestEveryBatchIsClean and TestPlantedLeaksAreFound try all settings always.
func inTurn(i, turn int) bool { return i == 0 || i%6 == turn || envknob.Soak.On() }

// What a run samples and predicts does not depend on workers and threads, with every loader.
func TestOneDigest(t *testing.T) {
	testneed.NotShort(t, "it trains several times with each loader")
	for i, s := range promised(linkstest.Digest) {
		t.Run(s.Name, func(t *testing.T) {
			want := undivided(t, s.Setting)
			s.Epochs = 2
			counts := []int{1, 2, 4}
			if i > 0 && !envknob.Soak.On() {
				counts = []int{2 + 2*(i%2)}
			}
			for _, workers := range counts {
				run := launched(t, "", s.Setting, gnb.LaunchOptions{Workers: workers, Threads: 1 + i%2})
				sampledAs(t, fmt.Sprint(workers, " workers"), run, want, s.Whole)
			}
		})
	}
}

// Runs with the same number of workers × virtual ranks have the same weights, losses and metrics to the bit: with
// a sixth of the loaders after two epochs on some number of workers, and on 1 and 8 workers after 200 small steps with
// one loader; with GNB_SOAK with each loader, and on 2 and 4 workers too.
func TestEqualBits(t *testing.T) {
	testneed.NotShort(t, "it takes 200 steps with up to eight workers")
	for i, s := range promised(linkstest.Bits) {
		if s.Name != "labor" && !inTurn(i, 4) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Name != "labor" && !envknob.Soak.On() {
				workers := []int{2, 4, 8}[i%3]
				want := undivided(t, s.Setting)
				s.Epochs = 2
				equalBits(t, fmt.Sprint(workers, " workers"), launched(t, "", s.Setting, gnb.LaunchOptions{Workers: workers, VirtualRanks: 8 / workers, Threads: 1 + i%2}), want, s.Whole)
				return
			}
			const steps = 200
			s.Hidden, s.LastMetrics, s.Batch = 8, true, 32
			if s.Epochs = (steps + 19) / 20; s.Whole {
				s.Epochs = steps
			} else if s.Disjoint == 0 {
				s.Epochs = (steps + 29) / 30
			}
			counts := []int{1, 8}
			if envknob.Soak.On() {
				counts = []int{1, 2, 4, 8}
			}
			var one *runs.Run
			for _, workers := range counts {
				run := launched(t, "", s.Setting, gnb.LaunchOptions{Workers: workers, VirtualRanks: 8 / workers, Threads: 1 + workers%2})
				if one == nil {
					one = run
				}
				if n := equalBits(t, fmt.Sprint(workers, " workers"), run, one, s.Whole); n < steps {
					t.Fatalf("%d workers took %d steps; want at least %d", workers, n, steps)
				}
			}
		})
	}
}

// equalBits compares all that two runs sampled, learned and measured, and returns the number of their steps.
func equalBits(t *testing.T, what string, got, want *runs.Run, whole bool) int {
	t.Helper()
	alike(t, what, got, want, whole)
	sampledAs(t, what, got, want, whole)
	losses, err := got.Losses()
	if err != nil {
		t.Fatal(err)
	}
	return len(losses)
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

// A run that is killed, and resumes from a checkpoint within an epoch, ends with the pairs,
// weights, losses and metrics of a run that nothing disturbed, to the bit: with a sixth of the settings, and with GNB_SOAK
// with all. See also TestKilledRunsResumeExactly.
func TestEachResumesExactly(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	kills := 1
	if envknob.Soak.On() {
		kills = 10
	}
	for i, s := range promised(linkstest.Resume) {
		if !inTurn(i, 5) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			s.Model, s.Hidden, s.Batch, s.Epochs, s.NoDigest = "test.mortal", 8, 100, 2+kills, true
			switch { // for enough steps
			case s.Whole:
				s.Epochs *= 10
			case s.Disjoint > 0:
				s.Epochs += kills
			}
			o := gnb.LaunchOptions{Workers: 2, VirtualRanks: 2, CheckpointEvery: 3}
			whole := launched(t, "undisturbed", s.Setting, o)
			losses, err := whole.Losses()
			if err != nil || len(losses) < 10*(1+kills) {
				t.Fatalf("%d steps, %v; want more, so that kills come at different steps", len(losses), err)
			}
			random := rand.New(rand.NewPCG(23, uint64(i)))
			o.RunDir = t.TempDir()
			var killed *runs.Run
			for k := 0; ; k++ {
				t.Setenv(killEnv, "")
				if k < kills {
					// A step has a pass for each of the worker's two virtual ranks, and evaluations have more.
					t.Setenv(killEnv, fmt.Sprint(random.IntN(2), 7+random.IntN(max(6, 2*len(losses)/(kills+1)-6)), 0))
				}
				killed, err = launch(t, s.Setting, o)
				if err == nil {
					if k == 0 {
						t.Error("no kill came before the run's end")
					}
					break
				}
				if k >= kills || !strings.Contains(err.Error(), "killed") {
					t.Fatalf("kill %d: the run ended with %v", k, err)
				}
				o.RunDir, o.Resume = "", cmp.Or(o.Resume, o.RunDir)
			}
			alike(t, "killed and resumed", killed, whole, true)
			if a, b := killed.Value("pairs"), whole.Value("pairs"); a != b || a == 0 {
				t.Errorf("the pairs are %v, want %v", a, b)
			}
		})
	}
}

// The table of bench/notes/links.md has the settings of these tests and their promises.
func TestPromisesAreDocumented(t *testing.T) {
	const from, to = "<!-- promises: written by go test ./gnb/links -run Documented -update -->\n", "<!-- end of promises -->"
	var want strings.Builder
	want.WriteString("| batches | sampler | negatives |")
	for _, p := range linkstest.Promises() {
		fmt.Fprintf(&want, " %s |", p)
	}
	want.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(linkstest.Promises())) + "\n")
	row := func(batches, sampler, negatives string, has func(linkstest.Promise) string) {
		fmt.Fprintf(&want, "| %s | %s | %s |", batches, sampler, negatives)
		for _, p := range linkstest.Promises() {
			fmt.Fprintf(&want, " %s |", has(p))
		}
		want.WriteString("\n")
	}
	for _, s := range linkstest.Settings() {
		batches := "edges"
		if s.Whole {
			batches = "the whole graph"
		}
		if s.Disjoint > 0 {
			batches += ", disjoint split"
		}
		if s.KnownMessages {
			batches += ", known messages"
		}
		if s.Decoder == "structural" {
			batches += ", `structural`"
		}
		row(batches, s.Sampler, s.Negatives, func(p linkstest.Promise) string {
			if s.Has(p) {
				return "yes"
			}
			return "refused"
		})
	}
	for _, e := range embeddings() {
		row("walks, "+e.name, e.sampler, cmp.Or(e.o.NegativesFrom, "uniform"), e.has)
	}
	file := filepath.Join("..", "..", "bench", "notes", "links.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), from)
	got, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", file, from, to)
	}
	if got == want.String() {
		return
	}
	if !*update {
		t.Fatalf("the table of %s has other promises than the tests; run go test ./gnb/links -run Documented -update", file)
	}
	if err := os.WriteFile(file, []byte(before+from+want.String()+to+after), 0o644); err != nil { //nolint:gosec // a page that everybody reads
		t.Fatal(err)
	}
}
