package gnb_test

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Failures caused by the program itself do not use up Restarts: an error ends the run at once, and
// a panic ends it when it recurs at the same step.
func TestProgramsOwnFailuresAreNotRepeated(t *testing.T) {
	testneed.NotShort(t, "it starts a dozen workers")
	for _, tc := range []struct {
		kind     string
		restarts int
		want     string
	}{
		{"error", 0, "the program gave up; it is not started again: it is an error of the program"},
		{"panic", 1, "it failed at the same step as before"},
		{"exit", 1, "it failed at the same step as before"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			c := startCell(t, tc.kind, cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 1, Every: 4, FailRank: 1, FailStep: 6, Restarts: 5})
			if err := c.wait(60 * time.Second); err == nil {
				t.Error("the cell ended without an error")
			}
			c.gone(5 * time.Second)
			if out := c.out.String(); !strings.Contains(out, tc.want) {
				t.Errorf("the cell's error does not contain %q:\n%s", tc.want, out)
			}
			r, err := runs.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if r.Result.State != runs.StateFailed || r.Result.Restarts != tc.restarts || len(r.Config.Restarts) != tc.restarts {
				t.Errorf("state %s with %d restarts, and %v in config.json; want %d", r.Result.State, r.Result.Restarts, r.Config.Restarts, tc.restarts)
			}
			for _, s := range r.Config.Restarts {
				if s.Rank != 1 || s.Step != 6 || s.From != 4 || s.Workers != 2 {
					t.Errorf("restart %+v, want one of rank 1 at step 6 from step 4", s)
				}
			}
		})
	}
}

// A run without a checkpoint restarts from the beginning and reports it. Another process that
// watches the run continues to watch through the restart, and an interrupt ends the run as usual.
func TestRestartWithoutCheckpoint(t *testing.T) {
	testneed.Raced(t, "it waits for a restart")
	dir := filepath.Join(t.TempDir(), "run")
	c := startCell(t, "plain", cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 100, Every: 1 << 30, SlowMS: 10, Restarts: 2})
	c.waitSteps(dir, 5)
	r, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	type watched struct {
		r   *runs.Run
		err error
	}
	ended := make(chan watched, 1)
	go func() {
		r, err := gnb.Attach(t.Context(), r)
		ended <- watched{r, err}
	}()
	if err := syscall.Kill(c.workers()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	restarts := func() []runs.Restart {
		r, err := runs.Open(dir)
		if err != nil {
			return nil
		}
		return r.Config.Restarts
	}
	for end := time.Now().Add(30 * time.Second); len(restarts()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no restart in 30 s:\n%s", c.out.String())
		}
	}
	c.waitSteps(dir, 5)
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.wait(10 * time.Second)
	c.gone(5 * time.Second)
	w := <-ended
	if w.r == nil || w.r.Result.State != runs.StateInterrupted || w.r.Result.Restarts != 1 {
		t.Errorf("the watching process got %v, %v; want an interrupted run with one restart", w.r, w.err)
	}
	if got := restarts(); len(got) != 1 || got[0].Rank != 0 || got[0].From != 0 || !strings.Contains(got[0].String(), "from the beginning, because there is no checkpoint yet") {
		t.Errorf("restarts %v", got)
	}
	r, err = runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Steps()
	for i := range s {
		if s[i].Total != int64(i+1) {
			t.Fatalf("line %d of the metrics has step %d", i, s[i].Total)
		}
	}
	if err != nil || len(s) == 0 {
		t.Errorf("%d steps, %v", len(s), err)
	}
}

// A run whose workers are killed at random moments restarts with fewer and fewer workers and ends
// with the weights and the digest of an undisturbed run.
func TestRestartsAtRandomMoments(t *testing.T) {
	testneed.NotShort(t, "it kills workers for seconds")
	o := cellOptions{Workers: 4, Threads: 1, Epochs: 4, Every: 3, SlowMS: 5, Digest: true}
	o.Dir = filepath.Join(t.TempDir(), "whole")
	if c := startCell(t, "plain", o); c.wait(60*time.Second) != nil {
		t.Fatal(c.out.String())
	}
	whole, err := runs.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	kills := moments(t) + 1
	o.Dir, o.Restarts = filepath.Join(t.TempDir(), "killed"), 1000
	c := startCell(t, "plain", o)
	done := 0
	for range kills {
		if done = steps(o.Dir) + rand.IntN(20); done > 85 {
			break
		}
		c.waitSteps(o.Dir, done)
		pids := c.workers()
		if pid, ok := pids[rand.IntN(max(1, len(pids)))]; ok {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the worker may have ended already
		}
	}
	if err := c.wait(120 * time.Second); err != nil {
		t.Fatalf("%v\n%s", err, c.out.String())
	}
	c.gone(5 * time.Second)
	killed, err := runs.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d restarts, %d workers at the end", killed.Result.Restarts, killed.Config.Workers)
	if killed.Result.Restarts == 0 || len(killed.Config.Restarts) != killed.Result.Restarts || killed.Config.Workers*killed.Config.VirtualRanks != 4 {
		t.Errorf("%d restarts, %d in config.json, %d workers × %d virtual ranks", killed.Result.Restarts, len(killed.Config.Restarts), killed.Config.Workers, killed.Config.VirtualRanks)
	}
	if !bytes.Equal(weights(t, whole), weights(t, killed)) {
		t.Error("the restarted run has other weights than the undisturbed one")
	}
	if a, b := whole.Result, killed.Result; a.Text["digest"] != b.Text["digest"] || a.Text["digest"] == "" || a.Values["unique_edges"] != b.Values["unique_edges"] {
		t.Errorf("the restarted run has the digest %q of %v edges, want %q of %v", b.Text["digest"], b.Values["unique_edges"], a.Text["digest"], a.Values["unique_edges"])
	}
	a, errA := whole.Losses()
	b, errB := killed.Losses()
	if errA != nil || errB != nil || !slices.Equal(a, b) {
		t.Errorf("losses %v, want %v; %v %v", b, a, errA, errB)
	}
}

// An interrupt between a worker's failure and the restart, or during it, ends the run as interrupted;
// the same program started again resumes it.
func TestInterruptDuringRestart(t *testing.T) {
	testneed.Raced(t, "it interrupts runs for seconds")
	for range moments(t) {
		dir := filepath.Join(t.TempDir(), "run")
		o := cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 8, Every: 3, SlowMS: 10, Restarts: 3}
		c := startCell(t, "plain", o)
		c.waitSteps(dir, 5)
		if err := syscall.Kill(c.workers()[1], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
		if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := c.wait(10 * time.Second); err == nil {
			t.Error("an interrupted cell ended without an error")
		}
		c.gone(5 * time.Second)
		r, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Result.State != runs.StateInterrupted || !strings.Contains(c.out.String(), "interrupted") {
			t.Errorf("the run is %s:\n%s", r.Result.State, c.out.String())
		}
		c = startCell(t, "plain", o)
		if err := c.wait(60 * time.Second); err != nil {
			t.Fatalf("%v\n%s", err, c.out.String())
		}
		if r, err = runs.Open(dir); err != nil || r.Result.State != runs.StateDone {
			t.Errorf("resumed: %v, %v", r, err)
		}
	}
}
