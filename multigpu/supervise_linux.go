package multigpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	pollEvery = 100 * time.Millisecond
	// gonbPatience is the time after an interrupt at which GoNB kills a cell.
	gonbPatience = 5 * time.Second
	// termGrace is how long workers may take to stop after SIGTERM.
	termGrace = 1 * time.Second
	// failGrace is how long the other workers may take to leave after one has failed.
	failGrace = 500 * time.Millisecond
	// stoppedFor is how long a worker may be stopped by a signal.
	stoppedFor = 2 * time.Second
)

// runtimeStatus is the exit status of a process that the Go runtime ended.
const runtimeStatus = 2

// watch is the supervisor's record of a worker's progress.
type watch struct {
	beats        uint64
	lastBeat     time.Time // under processes.mu; the rest is the supervisor's
	stoppedSince time.Time
	stallSince   time.Time
	stallAt      [2]int
	stallStage   string
}

func newWatch(now time.Time) watch { return watch{lastBeat: now} }

// forgive restarts all clocks.
func (w *watch) forgive(now time.Time) {
	w.lastBeat, w.stoppedSince, w.stallSince = now, time.Time{}, time.Time{}
}

// supervision is the state of the supervisor's loop.
type supervision struct {
	*processes
	ctx     context.Context
	running int

	failed *WorkerError // the first failure
	echo   *WorkerError // the end of a worker that another worker's failure caused

	interrupted   bool
	interruptedAt time.Time
	stopBy        time.Time // of an interrupted run: when it is aborted
	cause         error
	sentTerm      bool
	sentKill      bool
	killAt        time.Time // zero: not planned
	forced        []int
}

// supervise returns when all workers are reaped, with the run's end.
func (w *processes) supervise(ctx context.Context) error {
	s := &supervision{processes: w, ctx: ctx, running: len(w.children)}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	cancelled, asked, killed := ctx.Done(), w.asked, w.killed
	last := now()
	for s.running > 0 {
		select {
		case c := <-w.exits:
			c.exited = true
			s.running--
			s.judge(c)
		case <-cancelled:
			cancelled = nil
			s.stop(context.Cause(ctx))
		case <-asked:
			asked = nil
			s.stop(nil)
		case <-killed:
			killed = nil
			s.stop(nil)
			s.killAll()
		case <-tick.C:
			t := now()
			if gap := t.Sub(last); gap > ownGap || gap < 0 { // gap < 0: a clock that was set back
				s.forgiveAll(t)
			}
			last = t
			s.deadlines(t)
			s.look(t)
		}
	}
	return s.result()
}

func (s *supervision) result() error {
	failed := s.failed
	if failed == nil {
		failed = s.echo
	}
	if s.interrupted {
		return interruption(s.spec, s.page, s.forced, s.cause, failed)
	}
	return asError(failed)
}

func (s *supervision) stop(cause error) {
	if s.failed != nil || s.interrupted {
		return
	}
	s.interrupted, s.interruptedAt, s.cause = true, now(), cause
	atomic.StoreUint32(s.page.stop(), 1)
}

// deadlines sends the signals that are due.
func (s *supervision) deadlines(now time.Time) {
	if s.interrupted {
		if _, _, stage := s.page.rank(0).position(); stage == stageCheckpoint && now.Sub(s.interruptedAt) < saveGrace() {
			s.stopBy = now.Add(stopGrace)
			if inCell() {
				s.stopBy = now.Add(pollEvery)
			}
		}
		s.stopBy = later(s.stopBy, s.interruptedAt.Add(stopGrace))
		if !now.Before(s.stopBy) && !s.sentTerm {
			s.sentTerm = true
			s.shared.Abort("it did not stop in time after an interrupt")
			s.signal(syscall.SIGTERM)
		}
		if !now.Before(s.stopBy.Add(termGrace)) {
			s.killAll()
		}
	}
	if !s.killAt.IsZero() && now.After(s.killAt) {
		s.killAll()
	}
}

// saveGrace is the time after an interrupt within which rank 0 may write a checkpoint.
func saveGrace() time.Duration {
	if inCell() { // GoNB kills a cell, and the checkpoint with it
		return min(checkpointGrace, gonbPatience-termGrace-4*pollEvery)
	}
	return checkpointGrace
}

// inCell reports whether the launching process is a cell of GoNB.
func inCell() bool { return os.Getenv("GONB_PIPE") != "" }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *supervision) killAll() {
	if !s.sentKill {
		s.sentKill = true
		s.signal(syscall.SIGKILL)
	}
}

func (s *supervision) signal(sig syscall.Signal) {
	for _, c := range s.children {
		if !c.exited {
			_ = c.proc.Signal(sig) // it may have ended by itself
		}
	}
}

// fail records the first failure, tells the other workers and plans their end. If the run is being
// interrupted, the others keep the time that they were given.
func (s *supervision) fail(e *WorkerError) {
	if s.failed == nil {
		s.failed = e
	}
	s.shared.Abort(e.Error())
	if !s.interrupted && s.killAt.IsZero() {
		s.killAt = now().Add(failGrace)
	}
}

// failure is the error of a worker at the place where it is now.
func (s *supervision) failure(c *child, reason string) *WorkerError {
	epoch, step, stage := s.page.rank(c.rank).position()
	lines, _, _ := c.tail.get()
	return &WorkerError{Rank: c.rank, PID: c.pid, Epoch: epoch, Step: step, Stage: stage, Reason: reason, Stderr: lines}
}

// judge determines why a worker ended, and shows its last output unless the error already contains
// it.
func (s *supervision) judge(c *child) {
	if told := s.judgeEnd(c); told {
		_ = c.tail.release()
		return
	}
	for _, line := range c.tail.release() {
		s.queue.output(c.rank, "stderr", line)
	}
}

// judgeEnd determines why a worker ended; told reports whether the Go runtime printed the reason.
func (s *supervision) judgeEnd(c *child) (told bool) {
	rank := s.page.rank(c.rank)
	state := rank.state()
	if c.state == nil {
		s.fail(s.failure(c, "another part of the program reaped it (by waiting for any child), so its exit status is unknown"))
		return false
	}
	status, _ := c.state.Sys().(syscall.WaitStatus)
	if status.Exited() && status.ExitStatus() == 0 && state == stateDone {
		return false
	}
	if state == stateFailed {
		var words lastWords
		if err := json.Unmarshal(rank.words(), &words); err != nil {
			words = lastWords{Error: "its last words cannot be read: " + err.Error()}
		}
		e := s.failure(c, words.Error)
		e.Stack, e.Err, e.Cause = words.Stack, words.carried(), words.cause()
		if words.Aborted { // it left because another worker failed, which is reported separately
			if s.interrupted {
				s.forced = append(s.forced, c.rank)
			} else if s.echo == nil && s.failed == nil {
				s.echo = e
				s.killAt = now().Add(failGrace)
			}
			return false
		}
		s.fail(e)
		return false
	}
	if status.Signaled() {
		sig := status.Signal()
		if (s.sentKill && sig == syscall.SIGKILL) || (s.sentTerm && sig == syscall.SIGTERM) {
			s.forced = append(s.forced, c.rank)
			return false
		}
		if sig == syscall.SIGINT || sig == syscall.SIGHUP { // from a terminal, before the worker could ignore it
			s.stop(nil)
			return false
		}
		if _, why, stack := c.tail.get(); why != "" && sig == syscall.SIGABRT { // GOTRACEBACK=crash
			e := s.failure(c, why)
			e.Stack, e.Cause = stack, runtimeCause(why)
			s.fail(e)
			return true
		}
		reason := "it was killed by " + signalName(sig)
		if sig == syscall.SIGKILL {
			reason += ", from outside the run: by a user, or by the kernel because memory ran out (smaller batches and fewer workers need less)"
		}
		s.fail(s.failure(c, reason))
		return false
	}
	_, reason, stack := c.tail.get()
	code := status.ExitStatus()
	if code != runtimeStatus {
		stack = ""
	}
	switch {
	case reason != "" && code == runtimeStatus:
		// The Go runtime ended it: a panic outside the handler's goroutine, a signal.
	case state == stateStarting && code == 0:
		reason = "it ended without entering its handler: its program must call flag.Parse or multigpu.EnterIfWorker first"
	case code == 0:
		reason = "it ended with status 0 before its program returned: something called os.Exit"
	case state == stateStarting:
		reason = fmt.Sprintf("it ended with status %d before it entered its handler", code)
	default:
		reason = fmt.Sprintf("it ended with status %d: something called os.Exit, or log.Fatal", code)
	}
	e := s.failure(c, reason)
	e.Stack, e.Cause = stack, runtimeCause(reason)
	s.fail(e)
	return stack != ""
}

// runtimeCause returns the cause of a failure if the worker's process ended with a status. reason
// may be a text that the Go runtime printed (see reasonOf).
func runtimeCause(reason string) Cause {
	if strings.Contains(reason, "ran out of memory") || strings.Contains(reason, sentFromOutside) {
		return CauseLost
	}
	return CauseProgram
}

func (s *supervision) forgiveAll(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.children {
		c.watch.forgive(now)
	}
}

// look finds workers that are silent or stalled.
func (s *supervision) look(now time.Time) {
	if s.failed != nil || s.sentKill {
		return
	}
	for _, c := range s.children {
		if c.exited {
			continue
		}
		if reason := s.silent(c, now); reason != "" {
			s.fail(s.failure(c, reason))
			return
		}
	}
	if c := s.stalled(now); c != nil {
		e := s.failure(c, fmt.Sprintf("it has stalled: it is alive, but has been in this stage for %v while all the others wait for it", s.spec.Stall))
		e.Cause = CauseStalled
		s.fail(e)
	}
}

func (s *supervision) silent(c *child, now time.Time) (reason string) {
	rank := s.page.rank(c.rank)
	s.mu.Lock()
	if b := rank.beats(); b != c.watch.beats {
		c.watch.beats, c.watch.lastBeat = b, now
	}
	age := now.Sub(c.watch.lastBeat)
	s.mu.Unlock()
	if age < 3*heartbeat {
		c.watch.stoppedSince = time.Time{}
		return ""
	}
	st := procState(c.pid)
	if st != 'T' {
		c.watch.stoppedSince = time.Time{}
	} else if c.watch.stoppedSince.IsZero() {
		c.watch.stoppedSince = now
	}
	if st == 'T' && now.Sub(c.watch.stoppedSince) >= min(stoppedFor, s.spec.Silent) {
		return fmt.Sprintf("it is silent: a signal (SIGSTOP or SIGTSTP) stopped it %.1f s ago", age.Seconds())
	}
	if rank.state() == stateStarting && c.watch.beats == 0 {
		if age >= s.spec.StartTimeout {
			return fmt.Sprintf("it did not enter its handler within %v: its program must call flag.Parse or multigpu.EnterIfWorker first, and its init functions must be quick", s.spec.StartTimeout)
		}
		return ""
	}
	if age < s.spec.Silent {
		return ""
	}
	reason = fmt.Sprintf("it is silent: it has sent no heartbeat for %.1f s", age.Seconds())
	if st == 'D' {
		reason += " and waits in the kernel for a disk or a driver"
	}
	return reason
}

// stalled finds the one worker that all others have waited for, at one place,
// for too long.
func (s *supervision) stalled(now time.Time) *child {
	if s.spec.Stall < 0 || len(s.children) < 2 {
		return nil
	}
	var busy *child
	for _, c := range s.children {
		if _, waiting := s.shared.Waiting(c.rank); waiting || c.exited {
			continue
		}
		if busy != nil {
			s.clearStalls(nil)
			return nil
		}
		busy = c
	}
	s.clearStalls(busy)
	if busy == nil {
		return nil
	}
	w := &busy.watch
	if now.Sub(w.lastBeat) >= 3*heartbeat { // silent, which is handled separately
		w.stallSince = time.Time{}
		return nil
	}
	epoch, step, stage := s.page.rank(busy.rank).position()
	if at := [2]int{epoch, step}; w.stallSince.IsZero() || w.stallAt != at || w.stallStage != stage {
		w.stallSince, w.stallAt, w.stallStage = now, at, stage
		return nil
	}
	if now.Sub(w.stallSince) < s.spec.Stall {
		return nil
	}
	return busy
}

// clearStalls forgets the stall of every worker but one.
func (s *supervision) clearStalls(but *child) {
	for _, c := range s.children {
		if c != but {
			c.watch.stallSince = time.Time{}
		}
	}
}
