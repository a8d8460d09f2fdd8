package sweep_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/internal/testneed"
)

// smallSweep returns a sweep with three finished trials and a function that resumes and extends it
// to six.
func smallSweep(t *testing.T) (dir string, again func() (*sweep.Study, error)) {
	t.Helper()
	t.Setenv("GNB_RUNS", filepath.Join(t.TempDir(), "runs"))
	ds, err := gnb.Load(t.Context(), sweepSet)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "sweep")
	run := func(trials int) (*sweep.Study, error) {
		return sweep.Run(t.Context(), ds, gnb.SAGE, func(tr *sweep.Trial) gnb.TrainOptions {
			return gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{LR: tr.LogFloat("lr", 1e-3, 1e-1), Epochs: 1}, ModelOptions: gnb.ModelOptions{Hidden: sweep.Choice(tr, "hidden", 4, 8), Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1}}
		}, sweep.Options{Method: "random", Trials: trials, Seed: 2, Dir: dir, Quiet: true})
	}
	if s, err := run(3); err != nil || len(s.Trials) != 3 {
		t.Fatalf("%v, %v", s, err)
	}
	return dir, func() (*sweep.Study, error) { return run(6) }
}

// values returns the values of a sweep's trials.
func values(s *sweep.Study) string {
	var b strings.Builder
	for _, t := range s.Trials {
		fmt.Fprintf(&b, "%d %v %s %v; ", t.Number, t.Params, t.State, t.Value)
	}
	return b.String()
}

// A second sweep in the directory of a running one is refused, and leaves it undisturbed; a probe
// of the lock does not block a sweep from starting.
func TestTwoSweepsInOneDirectory(t *testing.T) {
	testneed.Raced(t, "it runs two sweeps")
	dir := filepath.Join(t.TempDir(), "sweep")
	o := cellOptions{Dir: dir, Workers: 1, Epochs: 3, Every: 5}
	whole := filepath.Join(t.TempDir(), "whole")
	c := startCell(t, cellOptions{Dir: whole, Workers: 1, Epochs: 3, Every: 5})
	if err := c.Wait(120 * time.Second); err != nil {
		t.Fatalf("%v\n%s", err, c.Out.String())
	}
	var cells []*runtest.Cell
	for range 3 {
		cells = append(cells, startCell(t, o))
	}
	refused := 0
	for _, c := range cells {
		if err := c.Wait(120 * time.Second); err != nil {
			refused++
			if out := c.Out.String(); !strings.Contains(out, dir) || !strings.Contains(out, "is still running in another process") && !strings.Contains(out, "already holds a sweep") {
				t.Errorf("a second sweep printed:\n%s", out)
			}
		}
	}
	if refused == len(cells) {
		t.Error("all were refused")
	}
	a, err := sweep.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sweep.Open(dir)
	if err != nil || values(a) != values(b) {
		t.Errorf("%v: alone %s\nthree at a time %s", err, values(a), values(b))
	}
	lines, err := os.ReadFile(filepath.Join(dir, "trials.jsonl"))
	if err != nil || bytes.Count(lines, []byte("\n")) != len(a.Trials) {
		t.Errorf("%d trials are recorded in %d lines, %v", len(a.Trials), bytes.Count(lines, []byte("\n")), err)
	}
}

// A running sweep holds the lock of its directory; readers do not block it.
func TestSweepHoldsItsDirectory(t *testing.T) {
	testneed.Raced(t, "it starts sweeps in other processes")
	dir := filepath.Join(t.TempDir(), "sweep")
	o := cellOptions{Dir: dir, Workers: 1, Epochs: 3, Every: 5, Hold: true}
	c := startCell(t, o)
	deadline := time.Now().Add(60 * time.Second)
	for {
		if s, err := sweep.Open(dir); err == nil && len(s.Trials) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no trial in a minute; the cell printed:\n%s", c.Out.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	second := startCell(t, o)
	if err := second.Wait(60 * time.Second); err == nil || !strings.Contains(second.Out.String(), "sweep "+dir+" is still running in another process") {
		t.Errorf("a second sweep gave %v\n%s", err, second.Out.String())
	}
	if err := c.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait(10 * time.Second)
	c.Gone(5 * time.Second)
	stop := make(chan struct{})
	var probes sync.WaitGroup
	probes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = runs.Open(filepath.Join(dir, "trial-0000"))
			}
		}
	})
	o.Hold = false
	third := startCell(t, o)
	if err := third.Wait(120 * time.Second); err != nil {
		t.Errorf("going on: %v\n%s", err, third.Out.String())
	}
	close(stop)
	probes.Wait()
}

// A damaged or forged line of trials.jsonl is ignored and its trial runs again; the sweep soon
// finds the same as without the damage.
func TestDamagedTrialsAreRunAgain(t *testing.T) {
	testneed.Raced(t, "it resumes a dozen damaged sweeps")
	dir, again := smallSweep(t)
	whole := filepath.Join(t.TempDir(), "whole")
	runtest.CopyTree(t, dir, whole)
	clean, err := again()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trials.jsonl")
	original, err := os.ReadFile(filepath.Join(whole, "trials.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(original, []byte("\n"))
	unsummed := func(line []byte, old, new string) []byte { // a user edits the line and removes its checksum
		i := bytes.LastIndex(line, []byte(`,"sum":`))
		return append(bytes.Replace(append(bytes.Clone(line[:i]), '}'), []byte(old), []byte(new), 1), '\n')
	}
	for name, b := range map[string][]byte{
		"trial -3":            bytes.Join([][]byte{unsummed(lines[0], `"trial":0`, `"trial":-3`), lines[1]}, nil),
		"trial of a far day":  bytes.Join([][]byte{unsummed(lines[0], `"trial":0`, `"trial":9000000000000000000`), lines[1]}, nil),
		"trial 4294967296":    unsummed(lines[0], `"trial":0`, `"trial":4294967296`),
		"a choice of none":    unsummed(lines[1], `"choices":["4","8"]`, `"choices":[]`),
		"a kind of its own":   unsummed(lines[1], `"kind":"choice"`, `"kind":"chance"`),
		"a state of its own":  unsummed(lines[1], `"state":"done"`, `"state":"dome"`),
		"a line without end":  original[:len(original)-20],
		"no text at all":      {0xff, 0, '\n', '{', '\n'},
		"a very long number":  unsummed(lines[0], `"trial":0`, `"trial":1`+strings.Repeat("0", 400)),
		"nothing":             nil,
		"the same line twice": append(bytes.Clone(lines[0]), lines[0]...),
	} {
		t.Run(name, func(t *testing.T) {
			runtest.CopyTree(t, whole, dir)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			runtest.Within(t, "the sweep", func() {
				s, err := again()
				if err != nil || values(s) != values(clean) {
					t.Errorf("%v: %s\nwant %s", err, values(s), values(clean))
				}
			})
		})
	}
	for _, bit := range runtest.Flips(int64(len(original))) {
		b := bytes.Clone(original)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sweep.Open(dir)
		if err != nil || strings.Contains(s.String(), "PANIC") {
			t.Errorf("bit %d of byte %d: %v, %v", bit%8, bit/8, s, err)
			continue
		}
		for _, tr := range s.Trials {
			if tr.Number > 2 || fmt.Sprint(tr.Params, tr.Value) != fmt.Sprint(clean.Trials[tr.Number].Params, clean.Trials[tr.Number].Value) {
				t.Errorf("bit %d of byte %d changes the result of trial %d without an error", bit%8, bit/8, tr.Number)
			}
		}
		if bit%1024 == 5 || os.Getenv("GNB_SOAK") == "" && len(s.Trials) < 3 {
			runtest.CopyTree(t, whole, dir)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err = again(); err != nil || values(s) != values(clean) {
				t.Errorf("resuming with bit %d of byte %d flipped gave %v, %v", bit%8, bit/8, s, err)
			}
		}
	}
	path = filepath.Join(dir, "sweep.json")
	runtest.CopyTree(t, whole, dir)
	if original, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	for _, bit := range runtest.Flips(int64(len(original))) {
		b := bytes.Clone(original)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := sweep.Open(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("sweep.json, bit %d of byte %d: %v, %v", bit%8, bit/8, s, err)
		}
	}
}

// Nothing hangs if one of a sweep's files is a pipe, a device or a directory.
func TestNoFileOfASweepHangs(t *testing.T) {
	testneed.NotShort(t, "it resumes a sweep for each of its files")
	dir, again := smallSweep(t)
	whole := filepath.Join(t.TempDir(), "whole")
	runtest.CopyTree(t, dir, whole)
	for i, name := range []string{"sweep.json", "trials.jsonl", filepath.Join("trial-0001", "config.json"), filepath.Join("trial-0001", "metrics.jsonl"), filepath.Join("trial-0001", "result.json")} {
		for _, kind := range runtest.Specials(i) {
			t.Run(name+" is a "+kind, func(t *testing.T) {
				runtest.CopyTree(t, whole, dir)
				runtest.Plant(t, filepath.Join(dir, name), kind)
				runtest.Within(t, "opening the sweep", func() {
					s, err := sweep.Open(dir)
					if filepath.Dir(name) == "." && (err == nil || !strings.Contains(err.Error(), name)) {
						t.Errorf("%v, %v", s, err)
					}
				})
				runtest.Within(t, "listing", func() {
					if _, err := runs.List(t.Context(), runs.Options{Dir: filepath.Dir(dir), Damaged: true, Trials: true}); err != nil {
						t.Error(err)
					}
				})
				runtest.Within(t, "going on", func() {
					s, err := again()
					if filepath.Dir(name) == "." && err == nil {
						t.Errorf("the sweep was resumed: %v", s)
					}
					if filepath.Dir(name) != "." && (err != nil || len(s.Trials) != 6) {
						t.Errorf("%v, %v", s, err)
					}
				})
			})
		}
	}
	// For trials without a recorded result, the sweep reads the trials' directories.
	for i, name := range []string{"config.json", "metrics.jsonl", "result.json"} {
		kind := runtest.Specials(i)[0]
		t.Run("lost trial, "+name+" is a "+kind, func(t *testing.T) {
			runtest.CopyTree(t, whole, dir)
			if err := os.Remove(filepath.Join(dir, "trials.jsonl")); err != nil {
				t.Fatal(err)
			}
			runtest.Plant(t, filepath.Join(dir, "trial-0001", name), kind)
			runtest.Within(t, "going on", func() {
				s, err := again()
				if err != nil || len(s.Trials) != 6 || s.Trials[1].State != runs.StateDone {
					t.Errorf("%v, %v", s, err)
				}
			})
		})
	}
}
