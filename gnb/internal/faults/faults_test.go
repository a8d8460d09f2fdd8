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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/clustertest"
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
	// environment of the command. hosts are those of rank 0 and of rank 1, nil for this machine.
	Command func(t *testing.T, exe string) (cmd *exec.Cmd, hosts []*clustertest.Host)
	// Restarts reports whether the program itself starts failed ranks again.
	Restarts bool
	// Ended reports whether a launcher started the ranks, which ends those that are left when one has
	// ended.
	Ended bool
	// Waits reports whether the launcher itself waits until a cut network is back, after the ranks have ended.
	Waits bool
	// Cases are the faults that can happen to ranks started so.
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

// Bounds on the time of a run, which takes half a second if nothing happens.
const (
	endsWithin = 60 * time.Second // on a machine that does much else
	goneWithin = 10 * time.Second
)

// stopFor is how long a process is stopped.
func (r Ranks) stopFor() time.Duration {
	switch {
	case os.Getenv("GNB_SOAK") != "":
		return 30 * time.Second
	case r.Ended: // a rank of a launcher may be silent for 5 s
		return 8 * time.Second
	}
	return 3 * time.Second
}

// settle is how long a rank waits before a fault, until the other ranks wait for it, and the launching process knows
// where it is: ranks of a launcher report that ten times per second.
func (r Ranks) settle() time.Duration {
	if r.Ended {
		return 400 * time.Millisecond
	}
	return 150 * time.Millisecond
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

// help does what a process of the run cannot do itself: it lets a stopped process continue after a while, and cuts and
// joins the network.
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
		_ = os.WriteFile(p.happened(), nil, 0o600) // else the run waits a minute
		switch {
		case p.Fault == ShortCut:
			wait(2 * time.Second) // TCP waits longer after each lost packet: up to twice as long as the cut
			at.Join()
		case r.Waits:
			for start := time.Now(); len(ranksOf(c)) > 0; {
				if time.Since(start) > 30*time.Second {
					t.Errorf("%d ranks are left 30 s after the network was cut", len(ranksOf(c)))
					break
				}
				wait(100 * time.Millisecond)
			}
			at.Join()
		}
	}
}

// ranksOf returns the processes of a cell that run the test binary.
func ranksOf(c *runtest.Cell) (pids []int) {
	for _, pid := range c.Processes() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && strings.HasSuffix(exe, ".test") {
			pids = append(pids, pid)
		}
	}
	return pids
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

// want returns whether a run continues after a fault as if it had not happened, and otherwise regular expressions of
// what it prints.
func (r Ranks) want(c Case) (continues bool, prints []string) {
	lost := map[string]string{ // as other ranks of a launcher see it
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
	case c.Victim == Launcher && r.Ended: // it prints nothing any more
		return false, nil
	case c.onDisk(): // rank 0 writes the run's files
		return false, []string{`rank 0 \(pid \d+( on \S+)?\) failed at .*stage \S+: .*no space left on device`}
	case c.Victim == Launcher:
		return false, []string{map[string]string{Kill: ``, Panic: `panic: the fault that the test provokes`, Memory: `out of memory|cannot allocate memory`}[c.Fault]}
	case c.Fault == Panic && (!r.Ended || c.Stage != Sum && (c.Stage != Checkpoint || rank == 0)): // in the program's goroutine
		return false, []string{failed(rank, `.*the fault that the test provokes`)}
	case !r.Ended:
		return false, []string{failed(rank, map[string]string{
			Kill: `it was killed by signal 9`, Stop: `it is silent: a signal \(SIGSTOP or SIGTSTP\) stopped it`, Memory: `it ran out of memory`,
		}[c.Fault])}
	case c.Fault == Cut && r.Waits: // it has no connection to the other host's daemon, which has the other message
		return false, []string{failed(1, lost)}
	case c.Fault == Cut:
		return false, []string{failed(1, lost), gone}
	case rank == 1:
		return false, []string{failed(1, lost)}
	}
	return false, []string{gone}
}

// at is where a rank is when the fault comes, as a regular expression. On a busy machine a rank may not yet be where it
// will wait.
func (c Case) at(rank int) string {
	if rank != map[string]int{Worker: 1, Rank0: 0}[c.Victim] { // the other rank comes to the same step
		return map[string]string{
			Start: `(epoch 0, step 0, )?stage \S+`, Sampling: `epoch 0, step \d, stage \S+`, Sum: `epoch 0, step 7, stage \S+`, Evaluation: `epoch 0, step 9, stage \S+`, Checkpoint: `epoch 0, step [56], stage \S+`,
		}[c.Stage]
	}
	if c.Stage == Checkpoint && rank == 1 {
		return `epoch 0, step 6, stage \S+` // it waits for rank 0, which writes the checkpoint
	}
	return map[string]string{
		Start: `stage \S+`, Sampling: `epoch 0, step \d, stage \S+`, Sum: `epoch 0, step 7, stage \S+`, Evaluation: `epoch 0, step 9, stage evaluate`, Checkpoint: `epoch 0, step 5, stage checkpoint`,
	}[c.Stage]
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
	// Without a result, which needs a process and a disk, the run counts as killed.
	if r.Ended && c.Victim == Launcher {
		if s := e.run.Result; s.State != runs.StateInterrupted || !strings.Contains(s.Error, "has lost its launcher: mpirun") {
			t.Errorf("the run's state is %s: %s", s.State, s.Error)
		}
	} else if s := e.run.Result.State; s != runs.StateFailed && (s != runs.StateKilled || c.Victim != Launcher && !c.onDisk() && !(r.Ended && c.Victim == Rank0)) {
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
		if r.Cases(c) {
			cases = append(cases, c)
		}
	}
	soak := os.Getenv("GNB_SOAK") != ""
	if !soak {
		cases = r.few(cases)
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

// few returns the cases of a quick test: a pairwise cover for own workers, and for ranks of a launcher, which take
// seconds to give each other up, a cover of the cuts and some others.
func (r Ranks) few(cases []Case) []Case {
	if !r.Ended {
		return cover(cases)
	}
	cuts := slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !c.cuts() })
	others := slices.DeleteFunc(slices.Clone(cases), Case.cuts)
	others = cover(others)
	return append(cover(cuts), others[:min(len(others), 6-min(len(cuts), 3))]...)
}

// All faults in all processes of a run by own workers, at all stages: see the package's comment.
func TestFaultsOfOwnWorkers(t *testing.T) {
	if withMounts(t, 4) {
		return
	}
	ownWorkers.document(t, ownWorkers.matrix(t))
}
