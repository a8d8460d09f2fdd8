// Package multigpu runs one program as several worker processes and supervises them: processes that it
// starts on a machine, or the ranks that a launcher started on one or many.
// It does not depend on graphs.
//
// # Basics
//
// The launching process calls [Start]. Each worker is a new process of the same executable
// (/proc/self/exe), so no other file is needed and the declarations of a notebook's cell exist in
// it. A worker never runs main: [Handle], called from an init function, registers a flag whose
// parsing enters the handler and ends the process. GoNB puts flag.Parse first in main and package
// testing calls it before the first test; a program that parses no flags calls [EnterIfWorker].
//
//	func init() {
//		multigpu.Handle(func(p *multigpu.Process) error {
//			var job struct{ Steps int }
//			if err := p.Job(&job); err != nil {
//				return err
//			}
//			for step := range job.Steps {
//				p.SetPosition(0, step)
//				…
//			}
//			return nil
//		})
//	}
//
//	group, err := multigpu.Start(ctx, multigpu.Spec{World: 4, Job: job})
//	err = group.Wait()
//
// # Supervision
//
// The run ends with its first failure, a [*WorkerError]. It names the rank, its position (epoch,
// step, stage) and the cause: an error, a panic with its stack, the signal or exit status, silence
// (no heartbeat), or a stall (the others wait for it). The supervisor then asks the other workers
// to leave, and kills them if they do not. Cancelling the context, or [Group.Interrupt], asks all
// workers to stop and then kills those that do not; the run then ends with an [*Interrupted].
//
// # Launchers
//
// If a launcher such as Slurm or mpirun started this process as one of several ranks ([Launcher]),
// Start runs the job on those ranks, one worker inside each process, instead of starting workers.
// Ranks above 0 serve rank 0's jobs from [EnterIfWorker] on, until rank 0 ends. World must be the
// launcher's. One job runs at a time. After the loss of a rank no other job can run.
//
// # Nothing left behind
//
// Workers and launcher share only descriptors: a socket pair for events, pipes for output, a pipe
// that closes when the launcher ends, and memory files without names. Workers are tied to the
// launcher by Pdeathsig as well, and started from one goroutine on an operating system thread that
// never ends, since the signal is sent when that thread does. When [Group.Wait] returns,
// no worker and no process that a worker started is left (they are found by a variable in their
// environment), and all descriptors are closed. One goroutine stays: the one that starts workers.
//
// # Caveats
//
// Package-level variables have their declared values in a worker, whatever main assigned to them;
// pass the values that a run needs as its job. Workers ignore SIGINT and SIGHUP. On systems other
// than Linux a run has one worker, inside the process.
package multigpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Spec describes a run. Only World is required.
type Spec struct {
	// World is the number of workers.
	World int

	// Job is given to every worker as JSON.
	Job any

	// Files are inherited by every worker, in this order; the caller keeps and
	// closes its own.
	Files []*os.File

	// Threads is GOMAXPROCS of a worker; 0 means its share of the launcher's,
	// at least 1.
	Threads int

	// MemLimit is GOMEMLIMIT of a worker in bytes; 0 sets none.
	MemLimit int64

	// RunID is GNB_RUN_ID in the workers' environment; empty means a random one.
	RunID string

	// Silent is the longest time without a heartbeat. Each worker sends ten per second, whatever
	// its program does. 0 means 5 s. A worker stopped by a signal (SIGSTOP) is allowed at most 2 s.
	Silent time.Duration

	// Stall is the longest time that a worker may stay in one stage of one step while all others
	// wait for it. 0 means 5 minutes; a negative value means no limit.
	Stall time.Duration

	// StartTimeout is the longest time from the start of a worker to its handler, in which the
	// program's init functions run. 0 means 60 s.
	StartTimeout time.Duration

	// InProcess runs the one worker of World 1 in a goroutine of the launcher: for debugging, and
	// on systems other than Linux. The environment variable GNB_IN_PROCESS sets it for World 1.
	InProcess bool

	// OnEvent is called for each [Process.Emit], in order for each rank. OnOutput is called for
	// each line that a worker prints, stream being "stdout" or "stderr"; lines that arrive faster
	// than they are handled are dropped, and one line reports their number. Both are called from
	// one goroutine, never at the same time, and must return. A slow OnEvent makes workers wait in
	// Emit.
	OnEvent  func(rank int, data json.RawMessage)
	OnOutput func(rank int, stream, line string)
}

func (s Spec) withDefaults() Spec {
	if s.RunID == "" {
		s.RunID = randomID()
	}
	if s.Silent <= 0 {
		s.Silent = 5 * time.Second
	}
	if s.Stall == 0 {
		s.Stall = 5 * time.Minute
	}
	if s.StartTimeout <= 0 {
		s.StartTimeout = 60 * time.Second
	}
	return s
}

func (s Spec) check() error {
	if s.World < 1 {
		return fmt.Errorf("multigpu: a run needs at least one worker, not %d", s.World)
	}
	if s.InProcess && s.World != 1 {
		return fmt.Errorf("multigpu: %d workers cannot run inside one process; only one can", s.World)
	}
	if strings.ContainsRune(s.RunID, 0) {
		return fmt.Errorf("multigpu: the run's id %q holds a zero byte", s.RunID)
	}
	if s.Threads < 0 || s.MemLimit < 0 {
		return fmt.Errorf("multigpu: %d threads and a memory limit of %d bytes a worker; neither can be negative", s.Threads, s.MemLimit)
	}
	for i, f := range s.Files {
		if f == nil {
			return fmt.Errorf("multigpu: file %d of the run is nil", i)
		}
		if _, err := f.Stat(); err != nil { // a closed file would be a missing descriptor
			return fmt.Errorf("multigpu: file %d of the run cannot be inherited: %w", i, err)
		}
	}
	return nil
}

// Status is one worker as the launcher sees it.
type Status struct {
	Rank, PID   int
	Epoch, Step int // -1 before the first SetPosition
	Stage       string
	// HeartbeatAge is the time since its last heartbeat.
	HeartbeatAge time.Duration
	// Waiting reports whether it waits in a collective for the others.
	Waiting bool
	// Seconds is the time in each stage so far, by name; together the time since
	// the handler was entered, up to a heartbeat (0.1 s).
	Seconds map[string]float64
}

// Start starts the workers and returns; [Group.Wait] waits for their end. If a worker cannot be
// started, Start ends those already started and returns an error. Cancelling ctx interrupts the
// run, see [Group.Interrupt].
//
// Cost: about 5 ms per worker, plus the program's init functions.
func Start(ctx context.Context, s Spec) (*Group, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if registered() == nil {
		return nil, errors.New("multigpu: there is nothing to run: Handle must be called from an init function before Start")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, &Interrupted{RunID: s.RunID, Epoch: -1, Step: -1, Cause: err}
	}
	job, err := json.Marshal(s.Job)
	if err != nil {
		return nil, fmt.Errorf("multigpu: the job cannot be written as JSON: %w", err)
	}
	s = s.withDefaults()
	s.InProcess = s.InProcess || s.World == 1 && envknob.InProcess.On()
	if s.InProcess {
		return startInProcess(ctx, s, job)
	}
	switch p, err := place(); {
	case err != nil:
		return nil, err
	case p != nil:
		return startRanks(ctx, s, job)
	}
	return startProcesses(ctx, s, job)
}

// Group is a run: its workers and their supervisor. Its methods may be called from any goroutine.
type Group struct {
	spec Spec
	impl runner
	page *statusPage
	done chan struct{} // closed when nothing of the run remains
	err  error         // set before done is closed
}

// runner abstracts over worker processes and a worker inside the launcher.
type runner interface {
	interrupt()
	kill()
	pid(rank int) int
	waiting(rank int) bool
	age(rank int) time.Duration
	pss() int64
	peakPss() int64
}

// Wait waits until every process and goroutine of the run has ended. It returns nil if every
// worker's handler returned nil, else the first [*WorkerError], or an [*Interrupted]. It must not
// be called from OnEvent or OnOutput.
func (g *Group) Wait() error {
	<-g.done
	return g.err
}

// Done returns a channel that is closed when [Group.Wait] returns.
func (g *Group) Done() <-chan struct{} { return g.done }

// Interrupt asks every worker to stop ([Process.StopRequested]). Those that
// still run after 2 s get SIGTERM, and SIGKILL 1 s later. It returns at once.
func (g *Group) Interrupt() { g.impl.interrupt() }

// Kill ends every worker at once; Wait then returns an [*Interrupted]. A worker
// inside the process cannot be killed: it is asked to stop.
func (g *Group) Kill() { g.impl.kill() }

// RunID is the run's id, in the workers' environment as GNB_RUN_ID.
func (g *Group) RunID() string { return g.spec.RunID }

// Status returns every worker's state, by rank.
func (g *Group) Status() []Status {
	g.page.mu.RLock()
	defer g.page.mu.RUnlock()
	out := make([]Status, g.spec.World)
	for r := range out {
		p := g.page.rank(r)
		epoch, step, stage := p.position()
		out[r] = Status{
			Rank: r, PID: g.impl.pid(r), Epoch: epoch, Step: step, Stage: stage,
			HeartbeatAge: g.impl.age(r), Waiting: g.impl.waiting(r),
			Seconds: map[string]float64{},
		}
		for name, d := range p.times() {
			out[r].Seconds[name] = d.Seconds()
		}
	}
	return out
}

// MemoryPss is the memory of all workers, in bytes: the sum of their proportional set sizes, in
// which a shared page counts once. The value may be slightly old, because a measurement takes
// milliseconds per gigabyte. It is 0 if the system does not report it.
func (g *Group) MemoryPss() int64 { return g.impl.pss() }

// PeakPss is the largest sum seen so far: sampled during the run, and once when
// the workers have finished and wait for each other.
func (g *Group) PeakPss() int64 { return g.impl.peakPss() }
