package multigpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buffer collects a process's output and can be read while the process runs.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startLauncher runs a group in its own process.
func startLauncher(t *testing.T, s Spec, job testJob) (*exec.Cmd, *buffer) {
	t.Helper()
	spec, err := json.Marshal(map[string]any{
		"Spec": map[string]any{"World": s.World, "RunID": s.RunID, "Silent": s.Silent}, "Job": job,
	})
	if err != nil {
		t.Fatal(err)
	}
	out := &buffer{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envLauncher+"="+string(spec))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func waitFor(t *testing.T, out *buffer, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), text); {
		if time.Now().After(end) {
			t.Fatalf("%q was not printed in 30 s:\n%s", text, out.String())
		}
		time.Sleep(time.Millisecond)
	}
}

// gone waits until no process of a run is left and returns the time that this took. Package
// multigpu promises 5 s on a machine that is not loaded.
func gone(t *testing.T, runID string) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		left := processesOf(runID)
		if len(left) == 0 {
			return time.Since(start)
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("a minute after the end, processes %v are left", left)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// moments returns times after the start of a run: some fall within the start of its workers, which
// takes about 10 ms, and some later.
func moments(t *testing.T) []time.Duration {
	n := 20
	if testing.Short() {
		n = 3
	}
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(rng.IntN(30_000)) * time.Microsecond
		if i%2 == 1 {
			out[i] = time.Duration(rng.IntN(250)) * time.Millisecond
		}
	}
	return out
}

// If the launching process is killed with SIGKILL, its workers end. Memory and descriptors are
// freed with them, because none has a name.
func TestKillOfTheLauncherAtAnyMoment(t *testing.T) {
	left := before(t)
	worst := time.Duration(0)
	for _, after := range moments(t) {
		id := randomID()
		cmd, out := startLauncher(t, Spec{World: 3, RunID: id}, testJob{Kind: "train", Rank: -1, Steps: 1 << 30})
		time.Sleep(after)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it returns the error of the kill, once no process holds the output
		worst = max(worst, gone(t, id))
		if strings.Contains(out.String(), "panic") {
			t.Errorf("killed after %v, the launcher printed %s", after, out.String())
		}
		if l := left(id); len(l) > 0 {
			t.Errorf("killed after %v, left behind: %q", after, l)
		}
	}
	t.Logf("slowest: %v", worst)
}

// A worker may be killed or stopped, or the run interrupted, at any moment, including while workers
// are being started. The error names the rank, the run ends within a bounded time, and nothing is
// left behind. A kill is an event, so the run need not wait for Silent, which is an hour here.
func TestWorkerLostAtAnyMoment(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		if testing.Short() && sig == syscall.SIGSTOP {
			continue
		}
		t.Run(sig.String(), func(t *testing.T) {
			at := moments(t)
			concurrently(t, len(at), func(i int, id string) {
				rank := i % 3
				s := Spec{World: 3, RunID: id, Job: testJob{Kind: "train", Rank: -1, Steps: 1 << 30}}
				if sig == syscall.SIGKILL {
					s.Silent = time.Hour
				}
				g, err := Start(t.Context(), s)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(at[i])
				if err := syscall.Kill(g.Status()[rank].PID, sig); err != nil {
					t.Error(err)
				}
				sent := time.Now()
				err = g.Wait()
				took := time.Since(sent)
				e, ok := errors.AsType[*WorkerError](err)
				if !ok || e.Rank != rank || e.PID != g.Status()[rank].PID {
					t.Errorf("after %v: got %v, want rank %d", at[i], err, rank)
				}
				want := map[syscall.Signal]string{syscall.SIGKILL: "signal 9", syscall.SIGSTOP: "stopped it"}[sig]
				if ok && !strings.Contains(e.Reason, want) {
					t.Errorf("after %v: %v", at[i], e)
				}
				t.Logf("after %v: the run's end took %v", at[i], took)
			})
		})
	}
}

func TestInterruptAtAnyMoment(t *testing.T) {
	at := moments(t)
	concurrently(t, len(at), func(i int, id string) {
		g, err := Start(t.Context(), Spec{World: 3, RunID: id, Job: testJob{Kind: "train", Rank: -1, Steps: 1 << 30}})
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(at[i])
		g.Interrupt()
		err = g.Wait()
		if e, ok := errors.AsType[*Interrupted](err); !ok || e.Err != nil {
			t.Errorf("after %v: got %v", at[i], err)
		}
	})
}

// Cancelling while workers are being started ends those that have started.
func TestCancelWhileStarting(t *testing.T) {
	at := moments(t)
	concurrently(t, len(at), func(i int, id string) {
		ctx, cancel := context.WithTimeout(t.Context(), at[i]/4)
		defer cancel()
		g, err := Start(ctx, Spec{World: 4, RunID: id, Job: testJob{Kind: "train", Rank: -1, Steps: 1 << 30}})
		if err == nil {
			err = g.Wait()
		}
		if _, ok := errors.AsType[*Interrupted](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: got %v", at[i], err)
		}
	})
}

// A launcher that ends by SIGTERM without a handler, or normally, also leaves nothing behind.
func TestEndsOfTheLauncher(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT} {
		id := randomID()
		cmd, out := startLauncher(t, Spec{World: 2, RunID: id}, testJob{Kind: "train", Rank: -1, Steps: 1 << 30})
		waitFor(t, out, `{"step":5}`)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		gone(t, id)
	}
	id := randomID()
	cmd, out := startLauncher(t, Spec{World: 2, RunID: id}, testJob{Kind: "train", Rank: -1, Steps: 20})
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	gone(t, id)
	if !strings.Contains(out.String(), fmt.Sprintf(`{"step":%d}`, 19)) {
		t.Errorf("it printed %s", out.String())
	}
}
