package gnb_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// moments returns the number of random moments at which a fault is tried.
func moments(t *testing.T) int {
	switch {
	case os.Getenv("GNB_SOAK") != "":
		return 20
	case testing.Short():
		return 1
	}
	return 3
}

// If the cell's process is killed with SIGKILL at a random moment, even while workers are being
// started, all workers end within 5 s.
func TestKilledCellLeavesNothing(t *testing.T) {
	testneed.Raced(t, "it waits for processes to end")
	for range moments(t) {
		dir := filepath.Join(t.TempDir(), "run")
		c := startCell(t, "plain", cellOptions{Dir: dir, Workers: 3, Threads: 1, Epochs: 1000, Every: 7})
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.wait(5 * time.Second)
		c.gone(5 * time.Second)
	}
}

// An error names a fault in the user's own code, at any step, with rank, epoch, step, and stage or
// place.
func TestFaultyProgramIsNamed(t *testing.T) {
	testneed.NotShort(t, "it starts a run for each fault")
	const place = `programs_test\.go:\d+`
	cases := []struct{ kind, want string }{
		{"panic", `(?s)rank 1\b.*epoch 0.*step %d\b.*forward.*the user's layer went wrong`},
		{"break", `epoch 0, step %d\b.*rank 0 is at step \(` + place + `.*rank 1 at evaluate \(` + place},
		{"exit", `(?s)rank 1\b.*step %d\b.*(status|exit).*7`},
		{"error", `the program gave up`},
	}
	for _, tc := range cases {
		t.Run(tc.kind, func(t *testing.T) {
			for range moments(t) {
				step := 1 + rand.IntN(20)
				dir := filepath.Join(t.TempDir(), "run")
				c := startCell(t, tc.kind, cellOptions{Dir: dir, Workers: 3, Threads: 1, Epochs: 2, FailRank: 1, FailStep: step})
				if err := c.wait(30 * time.Second); err == nil {
					t.Error("the cell ended without an error")
				}
				c.gone(5 * time.Second)
				want := strings.ReplaceAll(tc.want, "%d", strconv.Itoa(step))
				if out := c.out.String(); !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("the cell's error does not match %q:\n%s", want, out)
				}
				r, err := runs.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if r.Result.State != runs.StateFailed || r.Result.Error == "" {
					t.Errorf("the run's state is %q with error %q, want failed with a reason", r.Result.State, r.Result.Error)
				}
			}
		})
	}
}

// An interrupt writes a checkpoint and ends all processes within 5 s, and the next execution
// resumes the run.
func TestInterruptedRunGoesOn(t *testing.T) {
	testneed.Raced(t, "it interrupts and resumes runs for seconds")
	for _, slow := range []int{30, 3000} { // the interrupt comes between short steps, or in the middle of a long one
		dir := filepath.Join(t.TempDir(), "run")
		o := cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 3, Every: 1 << 30, SlowMS: slow}
		c := startCell(t, "plain", o)
		want := 10
		if slow > 1000 {
			want = 1
		}
		c.waitSteps(dir, want)
		if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := c.wait(5 * time.Second); err == nil {
			t.Error("an interrupted cell ended without an error")
		}
		c.gone(5 * time.Second)
		if out := c.out.String(); !strings.Contains(out, "interrupted") || !strings.Contains(out, "checkpoint") {
			t.Errorf("slow %d: the cell's output lacks the interrupt or the checkpoint's path:\n%s", slow, out)
		}
		r, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Result.State != runs.StateInterrupted {
			t.Errorf("the run's state is %q, want interrupted", r.Result.State)
		}
		if slow > 1000 {
			continue // with slow steps the resumed run would take too long
		}
		had := steps(dir)
		c = startCell(t, "plain", o) // the same cell again, with no option to resume
		if err := c.wait(60 * time.Second); err != nil {
			t.Fatalf("%v\n%s", err, c.out.String())
		}
		if got, all := steps(dir), 3*steps1(t); got != all {
			t.Errorf("%d steps before the interrupt and %d in all, want %d", had, got, all)
		}
	}
}

// steps1 returns the number of steps per epoch of the tests' program.
func steps1(t *testing.T) int {
	t.Helper()
	ids, err := load(t, smallSet).Split("train")
	if err != nil {
		t.Fatal(err)
	}
	return (len(ids) + 63) / 64
}

// Cancelling the context interrupts a run, as the notebook's ■ does.
func TestCancelledContextInterrupts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		<-first
		cancel()
	}()
	once := false
	run, err := gnb.Train(ctx, load(t, smallSet), gnb.SAGE, gnb.TrainOptions{
		LaunchOptions: gnb.LaunchOptions{
			Workers: 2,
			Quiet:   true,
			RunDir:  t.TempDir(),
			Events: func(e runs.Event) {
				if e.Kind == "epoch" && !once {
					once = true
					close(first)
				}
			},
		},
		OptimizerOptions: gnb.OptimizerOptions{Epochs: 10000},
		ModelOptions:     gnb.ModelOptions{Dropout: 0.5},
	})
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("error %v, want ErrInterrupted", err)
	}
	if run.Result.State != runs.StateInterrupted {
		t.Errorf("state %q, want interrupted", run.Result.State)
	}
}
