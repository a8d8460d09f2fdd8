//go:build linux

package faults

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

var update = flag.Bool("update", false, "with GNB_SOAK=1, write docs/faults.md")

func TestMain(m *testing.M) { runtest.Main(m, map[string]func([]byte) error{"launch": launch}) }

// Ranks is a way to start the two ranks of a run.
type Ranks struct {
	// Name is the way's name in the table: "own workers", "mpirun".
	Name string
	// Command returns the command that starts exe, the test binary, with the argument -test.run=^$:
	// once if the program starts its own workers, else once for each rank. Ranks get the
	// environment of the command.
	Command func(exe string) *exec.Cmd
	// Restarts reports whether the program itself starts failed ranks again.
	Restarts bool
	// Ended reports whether a launcher started the ranks, which ends those that are left when one has
	// ended.
	Ended bool
	// Cases are the faults that can happen to ranks started so; nil means all.
	Cases func(Case) bool
}

var ownWorkers = Ranks{
	Name:     "own workers",
	Command:  func(exe string) *exec.Cmd { return exec.Command(exe, "-test.run=^$") },
	Restarts: true,
}

// Bounds on the time of a run, which takes half a second if nothing happens.
const (
	endsWithin = 60 * time.Second // on a machine that does much else
	goneWithin = 10 * time.Second
)

// stopFor is how long a process is stopped.
func (r Ranks) stopFor() time.Duration {
	switch {
	case r.Ended: // a rank of a launcher may be silent for 5 s
		return 8 * time.Second
	case os.Getenv("GNB_SOAK") != "":
		return 30 * time.Second
	}
	return 3 * time.Second
}

// ended is the end of a run.
type ended struct {
	err    error
	output string
	run    *runs.Run
}

// do runs a plan to its end, and checks that the run ends in bounded time and leaves nothing.
func (r Ranks) do(t *testing.T, p plan) ended {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := runtest.StartCellBy(t, r.Command(exe), "launch", filepath.Dir(p.Dir), p)
	if p.Fault == Stop && p.Struck != "" {
		go func() { // the stopped process continues after a while
			for !exists(p.Struck) {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(r.stopFor())
			for _, pid := range c.Processes() {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}()
	}
	err = c.Wait(endsWithin + r.stopFor())
	own, _ := filepath.Glob(filepath.Join(c.Tmp, "ompi.*")) // of an mpirun that was killed
	for _, dir := range own {
		_ = os.RemoveAll(dir)
	}
	c.Gone(goneWithin)
	run, openErr := runs.Open(p.Dir)
	if openErr != nil {
		t.Fatalf("%v\n%s", openErr, c.Out.String())
	}
	return ended{err, strings.TrimSpace(c.Out.String()), run}
}

// reference is the run to which nothing happens.
var reference = struct {
	sync.Once
	weights, best []byte
	losses        []float64
}{}

// sameAsReference reports as errors what differs between a finished run and the run to which nothing
// happened.
func sameAsReference(t *testing.T, run *runs.Run, after string) {
	t.Helper()
	if run.Result.State != runs.StateDone {
		t.Errorf("%s: the run is %s, want done", after, run.Result.State)
		return
	}
	weights, err1 := os.ReadFile(run.Weights())
	best, err2 := os.ReadFile(run.BestWeights())
	losses, err3 := run.Losses()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Errorf("%s: %v", after, err)
		return
	}
	if !bytes.Equal(weights, reference.weights) || !bytes.Equal(best, reference.best) {
		t.Errorf("%s: the weights are not those of the run to which nothing happened", after)
	}
	if fmt.Sprint(losses) != fmt.Sprint(reference.losses) {
		t.Errorf("%s: losses %v, want %v", after, losses, reference.losses)
	}
}

// wholeFiles reports as errors the files of a run that cannot be read, and those that a killed
// writer left.
func wholeFiles(t *testing.T, dir string, left bool) {
	t.Helper()
	if _, _, damaged, err := checkpoint.Latest(filepath.Join(dir, "checkpoints")); len(damaged) > 0 || err != nil && !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("checkpoints: damaged %v, %v", damaged, err)
	}
	for _, name := range []string{"best.safetensors", "model.safetensors"} {
		if _, meta, err := safetensors.ReadFile(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) && (err != nil || !safetensors.Sealed(meta)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{".*tmp*", "checkpoints/.*tmp*"} {
		if files, _ := filepath.Glob(filepath.Join(dir, pattern)); len(files) > 0 && left {
			t.Errorf("%v are left", files)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// want returns whether a run continues after a fault as if it had not happened, and what it prints
// otherwise. Of the ranks of a launcher no process sees more than that a connection has ended.
func (r Ranks) want(c Case) (continues bool, prints string) {
	switch {
	case !r.Ended || c.Fault == Clock || c.onDisk():
		return c.want()
	case c.Victim == Launcher:
		return true, ""
	case c.Victim == Worker:
		return false, `rank 1 \(pid \d+ on \S+\) failed at .*stage \S+: (its process or its connection has ended|.*the fault that the test provokes|it is silent|.*ran out of memory)|process rank 1 .* exited on signal`
	}
	return false, `rank 0 \(pid \d+ on \S+\) failed at .*stage \S+: .*the fault that the test provokes|rank 1 \(\S+\) ends, because rank 0 \(\S+\) (vanished|is silent)|process rank 0 .* exited on signal`
}

// want returns whether a run continues after a fault as if it had not happened, and what it prints
// otherwise.
func (c Case) want() (continues bool, prints string) {
	switch {
	case c.Fault == Clock, c.Fault == Stop && c.Victim == Launcher:
		return true, ""
	case c.onDisk(): // rank 0 writes the run's files
		return false, `rank 0 \(pid \d+( on \S+)?\) failed at .*stage \S+: .*no space left on device`
	case c.Victim == Launcher:
		return false, map[string]string{
			Kill: ``, Panic: `panic: the fault that the test provokes`, Memory: `out of memory|cannot allocate memory`,
		}[c.Fault]
	}
	rank := map[string]string{Worker: "rank 1", Rank0: "rank 0"}[c.Victim]
	// On a busy machine a rank may not yet be where it will wait.
	at := map[string]string{
		Start: `stage \S+`, Sampling: `epoch 0, step \d, stage \S+`, Sum: `epoch 0, step 7, stage \S+`, Evaluation: `epoch 0, step 9, stage evaluate`, Checkpoint: `epoch 0, step 5, stage checkpoint`,
	}[c.Stage]
	if c.Stage == Checkpoint && c.Victim == Worker {
		at = `epoch 0, step 6, stage \S+` // it waits for rank 0, which writes the checkpoint
	}
	return false, rank + ` \(pid \d+( on \S+)?\) failed at ` + at + ": " + map[string]string{
		Kill: `it was killed by signal 9`, Stop: `it is silent: a signal \(SIGSTOP or SIGTSTP\) stopped it`,
		Panic: `.*the fault that the test provokes`, Memory: `it ran out of memory`,
	}[c.Fault]
}

// try lets a fault happen to a run and checks its end, what is left of it, and the end of the run
// that resumes from it; restarts runs again with restarts. It returns what the run printed.
func (r Ranks) try(t *testing.T, c Case, restarts bool) string {
	dir := folder(t, c)
	p := plan{Case: c, Dir: filepath.Join(dir, "runs", "faulty"), Struck: filepath.Join(dir, "struck")}
	e := r.do(t, p)
	if !exists(p.Struck) {
		t.Fatalf("the fault did not happen:\n%s", e.output)
	}
	continues, prints := r.want(c)
	if continues {
		if e.err != nil && !(r.Ended && c.Victim == Launcher && c.Fault == Kill) { // the killed launcher's status
			t.Errorf("the run ended with %v:\n%s", e.err, e.output)
		}
		sameAsReference(t, e.run, "continued")
		wholeFiles(t, p.Dir, true)
		return ""
	}
	if e.err == nil || !regexp.MustCompile(prints).MatchString(e.output) {
		t.Errorf("the run ended with %v and printed no match of %q:\n%s", e.err, prints, e.output)
	}
	// Without a result, which needs a process and a disk, the run counts as killed.
	if s := e.run.Result.State; s != runs.StateFailed && (s != runs.StateKilled || c.Victim != Launcher && !c.onDisk() && !(r.Ended && c.Victim == Rank0)) {
		t.Errorf("the run's state is %s", s)
	}
	wholeFiles(t, p.Dir, c.onDisk())
	_ = os.Remove(p.filler())
	p.Resume = true // and the fault has happened
	again := r.do(t, p)
	if again.err != nil {
		t.Errorf("resuming: %v\n%s", again.err, again.output)
	}
	sameAsReference(t, again.run, "resumed")
	wholeFiles(t, p.Dir, true)
	if restarts && (c.Victim != Launcher || c.onDisk()) {
		r.tryRestarts(t, c)
	}
	return e.output
}

// tryRestarts lets a fault happen to a run that may start its workers again.
func (r Ranks) tryRestarts(t *testing.T, c Case) {
	t.Helper()
	dir := folder(t, c)
	p := plan{Case: c, Dir: filepath.Join(dir, "runs", "restarted"), Struck: filepath.Join(dir, "struck"), Restarts: 2}
	e := r.do(t, p)
	if c.onDisk() || c.Fault == Panic && c.Stage == Sampling { // errors of the program
		if e.err == nil || !strings.Contains(e.output, "it is not started again") {
			t.Errorf("an error of the program was restarted: %v\n%s", e.err, e.output)
		}
		return
	}
	if e.err != nil {
		t.Errorf("with restarts: %v\n%s", e.err, e.output)
		return
	}
	sameAsReference(t, e.run, "restarted")
	wholeFiles(t, p.Dir, true)
	if l := e.run.Config.Restarts; len(l) != 1 || e.run.Result.Restarts != 1 || l[0].Rank != map[string]int{Worker: 1, Rank0: 0}[c.Victim] || l[0].Stage == "" || l[0].Reason == "" {
		t.Errorf("the run records the restarts %+v, and %d", l, e.run.Result.Restarts)
	}
}

// matrix tries the faults, all with GNB_SOAK, else a pairwise cover, and returns what they print.
func (r Ranks) matrix(t *testing.T) map[Case]string {
	reference.Do(func() {
		e := ownWorkers.do(t, plan{Dir: filepath.Join(t.TempDir(), "runs", "whole")})
		if e.err != nil {
			t.Fatalf("%v\n%s", e.err, e.output)
		}
		var err error
		if reference.weights, err = os.ReadFile(e.run.Weights()); err != nil {
			t.Fatal(err)
		}
		if reference.best, err = os.ReadFile(e.run.BestWeights()); err != nil {
			t.Fatal(err)
		}
		if reference.losses, err = e.run.Losses(); err != nil || len(reference.losses) != epochs*steps {
			t.Fatalf("%d steps, %v", len(reference.losses), err)
		}
	})
	var cases []Case
	for _, c := range all() {
		if r.Cases == nil || r.Cases(c) {
			cases = append(cases, c)
		}
	}
	soak := os.Getenv("GNB_SOAK") != ""
	if !soak {
		cases = cover(cases)
	}
	if r.Ended && !soak {
		cases = cases[:min(6, len(cases))]
	}
	if testing.Short() {
		cases = cases[:min(4, len(cases))]
	}
	var mu sync.Mutex
	out := map[Case]string{}
	t.Run("cases", func(t *testing.T) { // waits for its parallel tests
		for i, c := range cases {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				text := r.try(t, c, r.Restarts && (soak || i%2 == 0))
				mu.Lock()
				defer mu.Unlock()
				out[c] = text
			})
		}
	})
	return out
}

// All faults in all processes of a run by own workers, at all stages: see the package's comment.
func TestFaultsOfOwnWorkers(t *testing.T) {
	if withMounts(t) {
		return
	}
	ownWorkers.document(t, ownWorkers.matrix(t))
}
