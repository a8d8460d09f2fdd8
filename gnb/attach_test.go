package gnb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

type slowArgs struct {
	Epochs int
	Fail   bool
}

// slowly is a slow program, so that other processes can attach to its run: it trains until the
// run's directory has a file "go on".
var slowly = gnb.Program("test.slowly", func(w *gnb.Worker, a slowArgs) error {
	for epoch := range w.Epochs(a.Epochs) {
		w.Log("epoch", epoch)
	}
	w.Result("answer", 42)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(w.RunDir(), "go on")); err == nil {
			break
		}
	}
	if a.Fail {
		return errors.New("the cat stepped on the keyboard")
	}
	return nil
})

// watched starts slowly. It returns the run's directory once that exists, a function that ends the
// run, and the error of the launching call.
func watched(t *testing.T, a slowArgs) (run *runs.Run, goOn func(), ended chan error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	ended = make(chan error, 1)
	go func() {
		_, err := gnb.Launch(t.Context(), slowly, a, gnb.LaunchOptions{RunDir: dir, Workers: 2, Threads: 1, Quiet: true, Resume: gnb.Never})
		ended <- err
	}()
	goOn = func() {
		if err := os.WriteFile(filepath.Join(dir, "go on"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl")); err == nil && strings.Contains(string(b), `"log"`) {
			break
		}
		if time.Now().After(deadline) {
			b, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
			t.Fatalf("the run did not begin: %s", b)
		}
	}
	run, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run, goOn, ended
}

// Attach follows a running run to its end and returns its result. Cancelling the context ends
// Attach and leaves the run alone.
func TestAttach(t *testing.T) {
	testneed.Raced(t, "it follows a run for a second")
	run, goOn, ended := watched(t, slowArgs{Epochs: 5})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if r, err := gnb.Attach(ctx, run); !errors.Is(err, context.DeadlineExceeded) || r == nil {
		t.Fatalf("run %v, error %v; want the deadline", r, err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the end of Attach ended the run: %v", err)
	default:
	}
	_, err := gnb.Launch(t.Context(), slowly, slowArgs{Epochs: 5}, gnb.LaunchOptions{Resume: run.Dir, Workers: 2, Quiet: true})
	if err == nil || !strings.Contains(err.Error(), "still running in another process") {
		t.Errorf("resuming a run that is still running gave %v", err)
	}
	time.AfterFunc(200*time.Millisecond, goOn)
	r, err := gnb.Attach(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if r.Result.State != runs.StateDone || r.Value("answer") != 42 || r.Result.Epochs != 5 {
		t.Errorf("%s after %d epochs, answer %v", r.Result.State, r.Result.Epochs, r.Value("answer"))
	}
	if err := <-ended; err != nil {
		t.Errorf("the run: %v", err)
	}
	// Attach to a run that has ended returns its result.
	if r, err := gnb.Attach(t.Context(), run); err != nil || r.Value("answer") != 42 {
		t.Errorf("attaching to a run that has ended gave %v", err)
	}
}

func TestAttachToTheEnd(t *testing.T) {
	run, goOn, ended := watched(t, slowArgs{Epochs: 1, Fail: true})
	goOn()
	if r, err := gnb.Attach(t.Context(), run); err == nil || !strings.Contains(err.Error(), "the cat") || r.Result.State != runs.StateFailed {
		t.Errorf("attaching to a run that fails gave %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the run did not fail")
	}
	// The state after kill -9: the run is recorded as running, but no process runs it.
	if err := os.Remove(filepath.Join(run.Dir, "result.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := gnb.Attach(t.Context(), run); err == nil || !strings.Contains(err.Error(), "without writing a result") {
		t.Errorf("attaching to a run whose process is gone gave %v", err)
	}
	for _, r := range []*runs.Run{nil, {}, {Dir: t.TempDir()}} {
		if _, err := gnb.Attach(t.Context(), r); err == nil {
			t.Errorf("Attach took %v", r)
		}
	}
}
