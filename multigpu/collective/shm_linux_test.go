package collective_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// openShared returns the Comms of a run's ranks, each with its own mapping of the files.
func openShared(t testing.TB, world int) (*collective.Files, []collective.Comm) {
	t.Helper()
	files, err := collective.NewShared(world)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	comms := make([]collective.Comm, world)
	for r := range comms {
		if comms[r], err = collective.Open(files.Control, files.Data, r, world); err != nil {
			t.Fatal(err)
		}
	}
	return files, comms
}

func TestShared(t *testing.T) {
	commtest.Run(t, worlds(), func(t *testing.T, world int) []collective.Comm {
		_, comms := openShared(t, world)
		return comms
	})
}

// Waited returns the time that a rank has waited for a later rank; the later rank's own time is
// zero.
func TestWaited(t *testing.T) {
	files, comms := openShared(t, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			for r == 1 { // rank 1 joins only after rank 0 waits
				if _, ok := files.Waiting(0); ok {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if err := c.Barrier(collective.Site{Kind: "step"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	waited := func(r int) time.Duration { return comms[r].(collective.Waiter).Waited() }
	if waited(0) <= 0 || waited(1) != 0 {
		t.Errorf("rank 0 waited %v and rank 1, which came later, %v", waited(0), waited(1))
	}
}

func TestAbortWakesEveryWaiter(t *testing.T) {
	files, comms := openShared(t, 4)
	var wg sync.WaitGroup
	s := collective.Site{Kind: "step", Epoch: 1, Step: 2, At: "loop.go:7"}
	for _, c := range comms[:3] {
		wg.Go(func() {
			err := c.Barrier(s)
			if !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "rank 3 was killed") {
				t.Errorf("rank %d got %v", c.Rank(), err)
			}
		})
	}
	for r := range 3 {
		for {
			if got, ok := files.Waiting(r); ok {
				if got != s {
					t.Errorf("rank %d waits at %v, want %v", r, got, s)
				}
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if _, ok := files.Waiting(3); ok {
		t.Error("rank 3 has not arrived but is reported as waiting")
	}
	files.Abort("rank 3 was killed")
	files.Abort("something later")
	wg.Wait()
	if err := comms[3].Barrier(s); !errors.Is(err, collective.ErrAborted) {
		t.Errorf("a rank that joins after the abort got %v", err)
	}
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSecondGoroutineIsRefused(t *testing.T) {
	files, comms := openShared(t, 2)
	done := make(chan error)
	go func() { done <- comms[0].Barrier(collective.Site{Kind: "first"}) }()
	for {
		if _, ok := files.Waiting(0); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	err := comms[0].Barrier(collective.Site{Kind: "second"})
	if err == nil || !strings.Contains(err.Error(), "another goroutine") {
		t.Errorf("got %v", err)
	}
	if err := comms[1].Barrier(collective.Site{Kind: "first"}); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesWrongFiles(t *testing.T) {
	files, _ := openShared(t, 2)
	for name, open := range map[string]func() (collective.Comm, error){
		"another world": func() (collective.Comm, error) { return collective.Open(files.Control, files.Data, 0, 3) },
		"no such rank":  func() (collective.Comm, error) { return collective.Open(files.Control, files.Data, 2, 2) },
		"data first":    func() (collective.Comm, error) { return collective.Open(files.Data, files.Control, 0, 2) },
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, world := range []int{0, -1, collective.MaxRanks + 1} {
		if _, err := collective.NewShared(world); err == nil {
			t.Errorf("a run of %d ranks gave no error", world)
		}
	}
}

// Sites longer than a header has room for are truncated and never written past its end.
func TestLongSites(t *testing.T) {
	_, comms := openShared(t, 2)
	s := collective.Site{Kind: strings.Repeat("k", 5000), At: strings.Repeat("a", 5000) + ":12"}
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			if err := c.SumInt64(s, []int64{1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
