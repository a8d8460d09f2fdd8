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
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

var update = flag.Bool("update", false, "with GNB_SOAK=1, write docs/faults.md")

func TestMain(m *testing.M) { runtest.Main(m, map[string]func([]byte) error{"launch": launch}) }

// Ranks describes one way to start the two ranks of a run.
type Ranks struct {
	// Name is the name of this way in the page's table: "own workers", "mpirun".
	Name string
	// Command returns the command that starts exe, the test binary, with the argument -test.run=^$:
	// once if the program starts its own workers, else once for each rank. Ranks get the
	// environment of the command. hosts holds the hosts of rank 0 and rank 1; it is nil if both are
	// on this machine.
	Command func(t *testing.T, exe string) (cmd *exec.Cmd, hosts []*clustertest.Host)
	// Restarts reports whether the program itself restarts failed ranks.
	Restarts bool
	// Ended reports whether a launcher started the ranks. A launcher ends the remaining ranks when
	// one has ended.
	Ended bool
	// Waits reports whether the launcher, after the ranks have ended, waits until a cut network is
	// back.
	Waits bool
	// Cases reports whether a fault can happen to ranks started in this way.
	Cases func(Case) bool
}

var ownWorkers = Ranks{
	Name: "own workers",
	Command: func(_ *testing.T, exe string) (*exec.Cmd, []*clustertest.Host) {
		return exec.Command(exe, "-test.run=^$"), nil
	},
	Restarts: true,
	Cases:    func(c Case) bool { return !c.cuts() },
}

// Limits of the time of a run, which takes half a second without a fault.
const (
	endsWithin = 60 * time.Second // on a machine with other load
	goneWithin = 10 * time.Second
)

// stopFor returns the time for which a process is stopped.
func (r Ranks) stopFor() time.Duration {
	switch {
	case os.Getenv("GNB_SOAK") != "":
		return 30 * time.Second
	case r.Ended: // a rank of a launcher may be silent for 5 s
		return 8 * time.Second
	}
	return 3 * time.Second
}

// settle returns the time that a rank waits before a fault, until the other ranks wait for it and
// the launching process knows its position: ranks of a launcher report that ten times per second.
func (r Ranks) settle() time.Duration {
	if r.Ended {
		return 400 * time.Millisecond
	}
	return 150 * time.Millisecond
}

// ended describes the end of a run.
type ended struct {
	err    error
	output string
	run    *runs.Run
}

// do runs a plan to its end and checks that the run ends within a bounded time and leaves nothing
// behind.
func (r Ranks) do(t *testing.T, p plan) ended {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Settle = r.settle()
	cmd, hosts := r.Command(t, exe)
	c := runtest.StartCellBy(t, cmd, "launch", filepath.Dir(p.Dir), p)
	over := make(chan struct{})
	var helper sync.WaitGroup
	if p.Struck != "" && !p.Resume {
		helper.Go(func() { r.help(t, p, c, hosts, over) })
	}
	err = c.Wait(endsWithin + r.stopFor())
	close(over)
	helper.Wait()
	own, _ := filepath.Glob(filepath.Join(c.Tmp, "ompi.*")) // left by an mpirun that was killed
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

// help does the part of a fault that no process of the run can do itself: it continues a stopped
// process after a while, and cuts and reconnects the network.
func (r Ranks) help(t *testing.T, p plan, c *runtest.Cell, hosts []*clustertest.Host, over <-chan struct{}) {
	wait := func(d time.Duration) (on bool) {
		select {
		case <-over:
			return false
		case <-time.After(d):
			return true
		}
	}
	for !exists(p.Struck) {
		if !wait(time.Millisecond) {
			return
		}
	}
	switch p.Fault {
	case Stop:
		wait(r.stopFor())
		for _, pid := range c.Processes() {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	case Cut, ShortCut:
		at := hosts[map[string]int{Rank0: 0, Worker: 1}[p.Victim]]
		at.Cut()
		_ = os.WriteFile(p.happened(), nil, 0o600) // without this file the run would wait a minute
		switch {
		case p.Fault == ShortCut:
			wait(2 * time.Second) // TCP waits longer after each lost packet, up to twice as long as the cut
			at.Join()
		case r.Waits:
			for start := time.Now(); len(ranksOf(c)) > 0; {
				if time.Since(start) > 30*time.Second {
					t.Errorf("%d ranks still run 30 s after the network was cut", len(ranksOf(c)))
					break
				}
				wait(100 * time.Millisecond)
			}
			at.Join()
		}
	}
}

// ranksOf returns those processes of a cell that run the test binary.
func ranksOf(c *runtest.Cell) (pids []int) {
	for _, pid := range c.Processes() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && strings.HasSuffix(exe, ".test") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reference is the run without a fault.
var reference = struct {
	sync.Once
	weights, best []byte
	losses        []float64
}{}

// sameAsReference reports an error for each difference between a finished run and the run without a
// fault.
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
		t.Errorf("%s: the weights differ from those of the run without a fault", after)
	}
	if fmt.Sprint(losses) != fmt.Sprint(reference.losses) {
		t.Errorf("%s: losses %v, want %v", after, losses, reference.losses)
	}
}

// wholeFiles reports an error for each file of a run that cannot be read or that a killed writer
// left.
func wholeFiles(t *testing.T, dir string, left bool) {
	t.Helper()
	if _, _, damaged, err := checkpoint.Latest(filepath.Join(dir, "checkpoints")); len(damaged) > 0 || err != nil && !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("the damaged checkpoints are %v (%v)", damaged, err)
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

// want reports whether a run continues after a fault as if it had not happened. Otherwise it
// returns regular expressions for the run's output.
func (r Ranks) want(c Case) (continues bool, prints []string) {
	lost := map[string]string{ // the reason in the errors of a launcher's other ranks
		Kill: `its process or its connection has ended`, Panic: `its process or its connection has ended`, Memory: `its process or its connection has ended`,
		Stop: `it is silent: rank 0 \(\S+\) has received no heartbeat for`, Cut: `it is silent: rank 0 \(\S+\) has received no heartbeat for`,
	}[c.Fault]
	seen := map[string]string{
		Kill: "vanished", Panic: "vanished", Memory: "vanished", Stop: "is silent", Cut: "is silent",
	}[c.Fault]
	failed := func(rank int, why string) string {
		return fmt.Sprintf(`rank %d \(pid \d+( on \S+)?\) failed at %s: %s`, rank, c.at(rank), why)
	}
	gone := fmt.Sprintf(`rank 1 \(\S+\) ends, because rank 0 \(\S+\) %s at %s: `, seen, c.at(0))
	rank := map[string]int{Worker: 1, Rank0: 0}[c.Victim]
	switch {
	case c.Fault == Clock, c.Fault == ShortCut, c.Victim == Launcher && c.Fault == Stop:
		return true, nil
	case c.Victim == Launcher && r.Ended: // it prints nothing after the fault
		return false, nil
	case c.onDisk(): // rank 0 writes the run's files
		return false, []string{`rank 0 \(pid \d+( on \S+)?\) failed at .*stage \S+: .*no space left on device`}
	case c.Victim == Launcher:
		return false, []string{map[string]string{Kill: ``, Panic: `panic: the fault that the test provokes`, Memory: `out of memory|cannot allocate memory`}[c.Fault]}
	case c.Fault == Panic && (!r.Ended || c.Stage != Sum && (c.Stage != Checkpoint || rank == 0)): // the panic is in the program's goroutine
		return false, []string{failed(rank, `.*the fault that the test provokes`)}
	case !r.Ended:
		return false, []string{failed(rank, map[string]string{
			Kill: `it was killed by signal 9`, Stop: `it is silent: a signal \(SIGSTOP or SIGTSTP\) stopped it`, Memory: `it ran out of memory`,
		}[c.Fault])}
	case c.Fault == Cut && r.Waits: // mpirun has lost the other host's daemon and with it the message of rank 1
		return false, []string{failed(1, lost)}
	case c.Fault == Cut:
		return false, []string{failed(1, lost), gone}
	case rank == 1:
		return false, []string{failed(1, lost)}
	}
	return false, []string{gone}
}

// at returns a regular expression for a rank's position when the fault comes. On a busy machine a
// rank may not yet have reached the place where it will wait.
func (c Case) at(rank int) string {
	if rank != map[string]int{Worker: 1, Rank0: 0}[c.Victim] { // the other rank reaches the same step
		return map[string]string{
			Start: `(epoch 0, step 0, )?stage \S+`, Sampling: `epoch 0, step \d, stage \S+`, Sum: `epoch 0, step 7, stage \S+`, Evaluation: `epoch 0, step 9, stage \S+`, Checkpoint: `epoch 0, step [56], stage \S+`,
		}[c.Stage]
	}
	if c.Stage == Checkpoint && rank == 1 {
		return `epoch 0, step 6, stage \S+` // rank 1 waits for rank 0, which writes the checkpoint
	}
	return map[string]string{
		Start: `stage \S+`, Sampling: `epoch 0, step \d, stage \S+`, Sum: `epoch 0, step 7, stage \S+`, Evaluation: `epoch 0, step 9, stage evaluate`, Checkpoint: `epoch 0, step 5, stage checkpoint`,
	}[c.Stage]
}

// try makes a fault happen to a run and checks the run's end, its remains, and the end of the run
// that resumes it; restarts tries the fault again in a run that restarts its workers. It returns
// the run's output.
func (r Ranks) try(t *testing.T, c Case, restarts bool) string {
	dir := folder(t, c)
	p := plan{Case: c, Dir: filepath.Join(dir, "runs", "faulty"), Struck: filepath.Join(dir, "struck")}
	e := r.do(t, p)
	if !exists(p.Struck) {
		t.Fatalf("the fault did not happen:\n%s", e.output)
	}
	continues, prints := r.want(c)
	if continues {
		if e.err != nil {
			t.Errorf("the run ended with %v:\n%s", e.err, e.output)
		}
		sameAsReference(t, e.run, "continued")
		wholeFiles(t, p.Dir, true)
		return ""
	}
	for _, line := range prints {
		if e.err == nil || !regexp.MustCompile(line).MatchString(e.output) {
			t.Errorf("the run ended with %v and printed no match of %q:\n%s", e.err, line, e.output)
		}
	}
	// Writing a result needs a process, which a launcher may kill after a failure, and a disk; without a result the run counts
	// as killed.
	if r.Ended && c.Victim == Launcher && c.Fault == Panic {
		if s := e.run.Result.State; s != runs.StateKilled {
			t.Errorf("the run's state is %s, want killed", s)
		}
	} else if r.Ended && c.Victim == Launcher {
		if s := e.run.Result; s.State != runs.StateInterrupted || !strings.Contains(s.Error, "has lost its launcher: mpirun") {
			t.Errorf("the run's state is %s: %s", s.State, s.Error)
		}
	} else if s := e.run.Result.State; s != runs.StateFailed && (s != runs.StateKilled || c.Victim != Launcher && !c.onDisk() && !r.Ended) {
		t.Errorf("the run's state is %s", s)
	}
	wholeFiles(t, p.Dir, c.onDisk())
	_ = os.Remove(p.filler())
	p.Resume = true // the fault has happened and does not happen again
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

// tryRestarts makes a fault happen to a run that may restart its workers.
func (r Ranks) tryRestarts(t *testing.T, c Case) {
	t.Helper()
	dir := folder(t, c)
	p := plan{Case: c, Dir: filepath.Join(dir, "runs", "restarted"), Struck: filepath.Join(dir, "struck"), Restarts: 2}
	e := r.do(t, p)
	if c.onDisk() || c.Fault == Panic && c.Stage == Sampling { // these count as errors of the program
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
		t.Errorf("the run records the restarts %+v and the count %d", l, e.run.Result.Restarts)
	}
}

// matrix tries the faults and returns the runs' outputs. It tries all cases with GNB_SOAK,
// otherwise those of a pairwise cover over all ways.
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
		if r.Cases(c) {
			cases = append(cases, c)
		}
	}
	soak := os.Getenv("GNB_SOAK") != ""
	if !soak {
		cases = r.few()
	}
	if testing.Short() {
		cases = cases[:min(4, len(cases))]
	}
	var mu sync.Mutex
	out := map[Case]string{}
	t.Run("cases", func(t *testing.T) { // returns when its parallel tests have ended
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

// few returns the cases of a quick test: those of this way in a pairwise cover of ways, faults, stages and processes, so
// that a pair of fault and stage, which takes seconds under a launcher, is tried in one way only.
func (r Ranks) few() (out []Case) {
	for _, t := range cover(trials()) {
		if t.Way == r.Name {
			out = append(out, t.Case)
		}
	}
	return out
}

// The test tries all faults, in all processes and at all stages of a run with own workers; see the
// package's documentation.
func TestFaultsOfOwnWorkers(t *testing.T) {
	testneed.NotShort(t, "it starts workers and ends them")
	if withMounts(t, 4) {
		return
	}
	ownWorkers.document(t, ownWorkers.matrix(t))
}
