package multigpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/multigpu/cluster"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Launcher returns the place of this process among the ranks that a launcher started, nil if none
// did; see [cluster.Detect]. Under a launcher a run's World is the launcher's, and each rank's
// worker runs inside its process.
func Launcher() (*cluster.Place, error) { return place() }

var place = sync.OnceValues(func() (*cluster.Place, error) {
	if worker {
		return nil, nil
	}
	return cluster.Detect()
})

// session is rank 0's connection with the other ranks, made by the first call.
var session = sync.OnceValue(func() *cluster.Session {
	p, err := place()
	if p == nil || err != nil || p.Rank != 0 {
		return nil
	}
	return cluster.Lead(p)
})

// following is set in ranks above 0 once they serve rank 0.
var following atomic.Bool

// enterRank serves rank 0, and never returns, on ranks above 0 of a launcher; on rank 0 it begins to
// wait for the others.
func enterRank() {
	p, err := place()
	if p == nil || err != nil || registered() == nil { // Start returns the error
		return
	}
	if p.Rank == 0 {
		session()
		return
	}
	if following.Swap(true) {
		return // within the worker's program
	}
	status, err := cluster.Follow(p, serveTask)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// Leave ends the other ranks of a launcher, on rank 0, before its process ends with the exit
// status; without a launcher it does nothing. They also end when the process of rank 0 does, but an
// engine such as MPI must be told. After an error at the start, Leave waits some seconds for ranks
// that have not joined yet.
func Leave(status int) {
	p, err := place()
	if p == nil || err != nil || p.Rank != 0 {
		return
	}
	if s := session(); s != nil {
		s.Leave(status, leavePatience)
	}
}

// leavePatience is the time that Leave waits for ranks that have not joined yet.
const leavePatience = 5 * time.Second

// ExitStatus is the exit status of a program whose run ended with an error: 1 or, if a launcher started the program,
// [ExitResumable] after a run that was interrupted and [ExitLost] after a failure of a rank, a machine or the network.
func ExitStatus(err error, interrupted bool) int {
	if p, _ := place(); p == nil {
		return exitFailed
	}
	return StatusOf(err, interrupted)
}

// StatusOf is [ExitStatus] of a program that a launcher has started.
func StatusOf(err error, interrupted bool) int {
	if interrupted {
		return ExitResumable
	}
	if e, ok := errors.AsType[*WorkerError](err); ok {
		switch e.Cause {
		case CauseLost, CauseStalled:
			return ExitLost
		}
		return exitFailed
	}
	if _, ok := errors.AsType[*cluster.Lost](err); ok {
		return ExitLost
	}
	return exitFailed
}

// rankJob is the job as the ranks of a launcher get it.
type rankJob struct {
	RunID    string          `json:"run_id"`
	Threads  int             `json:"threads"`
	MemLimit int64           `json:"mem_limit"`
	Job      json.RawMessage `json:"job"`
}

// rankProcess is the worker of a job inside this process.
func rankProcess(t *cluster.Task, page *statusPage, mine rankStatus) (*Process, error) {
	var j rankJob
	if err := json.Unmarshal(t.Data, &j); err != nil {
		return nil, fmt.Errorf("multigpu: rank %d: reading the job: %w", t.Rank, err)
	}
	p := &Process{
		Rank: t.Rank, World: t.World, LocalRank: t.LocalRank, LocalWorld: t.LocalWorld, Machine: t.Machine, Machines: t.Machines,
		Host: t.Member(t.Rank).Host, Threads: j.Threads, RunID: j.RunID, job: j.Job, page: page, mine: mine,
	}
	if p.Threads == 0 {
		p.Threads = t.Threads
	}
	p.SetPosition(-1, -1)
	p.clock = startClock(mine)
	mine.setState(stateEntered)
	return p, nil
}

// runRank connects the ranks and runs the handler; failed is nil on success. During the job, the Go
// runtime has the job's settings.
func (p *Process) runRank(t *cluster.Task, memLimit int64) (failed *lastWords) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p.Threads))
	if memLimit > 0 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memLimit))
	}
	files, comm, err := t.Open()
	if err != nil {
		return errorWords(err)
	}
	p.files, p.Comm = files, comm
	p.connected(comm)
	return p.run(registered())
}

// pulse is a rank's state as it travels to rank 0: whether the rank waits in a collective (1 byte),
// and the part of its status page before its last words.
const pulseLen = 1 + rankName + maxStages*stageName

func (p *Process) pulse(waiting bool) []byte {
	b := make([]byte, pulseLen)
	if waiting {
		b[0] = 1
	}
	for off := 0; off+8 <= rankName; off += 8 {
		binary.NativeEndian.PutUint64(b[1+off:], atomic.LoadUint64(p.mine.u64(off)))
	}
	p.clock.mu.Lock() // names are written under it
	copy(b[1+rankName:], p.mine.mem[rankName:])
	p.clock.mu.Unlock()
	return b
}

// take sets a rank's part of rank 0's page from its pulse.
func (s rankStatus) take(b []byte) (waiting bool) {
	if len(b) != pulseLen {
		return false
	}
	// A name does not change once it is counted, and others read only counted names.
	counted := min(int(atomic.LoadUint32(s.u32(rankNames))), maxStages)
	names := rankName + counted*stageName
	copy(s.mem[names:], b[1+names:])
	for off := 0; off+8 <= rankName; off += 8 {
		atomic.StoreUint64(s.u64(off), binary.NativeEndian.Uint64(b[1+off:]))
	}
	return b[0] == 1
}

// waits reports whether this rank waits in a collective.
func waits(c *collective.Comm) bool {
	if c == nil {
		return false
	}
	_, yes := (*c).Waiting()
	return yes
}

// serveTask runs a job on a rank above 0. A program that does not end after the job was aborted ends
// with its process.
func serveTask(t *cluster.Task) {
	page := newStatusPage(1)
	p, err := rankProcess(t, page, page.rank(0))
	if err != nil {
		_ = t.Over(errorWords(err).encode()) // the end of rank 0 is noticed elsewhere
		return
	}
	p.emit = t.Message
	ended := make(chan *lastWords, 1)
	var comm atomic.Pointer[collective.Comm]
	p.connected = func(c collective.Comm) { comm.Store(&c) }
	var j rankJob
	_ = json.Unmarshal(t.Data, &j) // rankProcess has read it
	go func() { ended <- p.runRank(t, j.MemLimit) }()
	var memory meter
	beat := func() {
		p.clock.beat()
		atomic.StoreInt64(p.mine.i64(rankPss), memory.read(func() int64 { return pssOf(os.Getpid()) }))
		_ = t.Pulse(p.pulse(waits(comm.Load()))) // the end of rank 0 is noticed elsewhere
	}
	beat()
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	stopped, aborted := t.Stopped(), t.Aborted()
	var giveUp <-chan time.Time
	for {
		select {
		case <-tick.C:
			beat()
		case <-stopped:
			atomic.StoreUint32(page.stop(), 1)
			stopped = nil
		case <-aborted:
			aborted, giveUp = nil, time.After(stuckGrace)
		case words := <-ended:
			beat()
			text := []byte("null")
			if words != nil {
				text = words.encode()
			}
			_ = t.Over(text)
			return
		case <-giveUp:
			epoch, step, stage := p.mine.position()
			w := lastWords{Error: fmt.Sprintf("its program did not end when the run did, so its process was ended%s", where(epoch, step, stage)), Stuck: true}
			_ = t.Over(w.encode())
			fmt.Fprintf(os.Stderr, "multigpu: rank %d (%s): %s\n", t.Rank, p.Host, w.Error)
			os.Exit(cmp.Or(t.Status(), exitFailed))
		}
	}
}

// stageCheckpoint is the stage in which rank 0 writes a checkpoint.
const stageCheckpoint = "checkpoint"

// checkpointGrace is the time after an interrupt within which rank 0 may write a checkpoint: less
// than the 60 s for which docker/slurm/train.sbatch asks. Tests shorten it.
var checkpointGrace = 50 * time.Second

// tellAfter is how long rank 0 waits after a failure for its program, before it prints the failure itself.
const tellAfter = 200 * time.Millisecond

// stuckGrace is how long a program may take to end after its run was aborted.
const stuckGrace = 2 * time.Second

var _ cluster.Hub = (*rankRun)(nil)

// rankRun is a run on the ranks of a launcher, as rank 0 sees it.
type rankRun struct {
	spec  Spec
	task  *cluster.Task
	page  *statusPage
	queue *queue
	comm  atomic.Pointer[collective.Comm]
	meter meter

	asked    chan string   // signals of other ranks
	killed   chan struct{} // closed by kill
	stopping chan struct{} // closed by interrupt
	askOnce  sync.Once
	killOnce sync.Once

	mu    sync.Mutex
	ranks []rankView
	news  chan struct{} // something in ranks has changed
}

// rankView is what rank 0 knows of a rank.
type rankView struct {
	lastBeat time.Time
	busy     bool // its message is being handled, so its pulses wait
	waiting  bool
	ended    bool
	words    *lastWords // of ended, nil for success
	lost     error
	judged   bool

	stallSince time.Time
	stallAt    [2]int
	stallStage string
}

func startRanks(ctx context.Context, s Spec, job json.RawMessage) (*Group, error) {
	p, err := place()
	if err != nil {
		return nil, err
	}
	if s.World != p.World {
		return nil, fmt.Errorf("multigpu: a run of %d workers under %s, which started %d ranks; each rank is a worker", s.World, p.Launcher, p.World)
	}
	data, err := json.Marshal(rankJob{s.RunID, s.Threads, s.MemLimit, job})
	if err != nil {
		return nil, fmt.Errorf("multigpu: the job cannot be written as JSON: %w", err)
	}
	r := &rankRun{
		spec: s, page: newStatusPage(s.World), queue: newQueue(s), asked: make(chan string, s.World), killed: make(chan struct{}), stopping: make(chan struct{}),
		ranks: make([]rankView, s.World), news: make(chan struct{}, 1),
	}
	r.task, err = session().Begin(ctx, data, s.Files, s.Silent, r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
			return nil, &Interrupted{RunID: s.RunID, Epoch: -1, Step: -1, Cause: cause}
		}
		if e, ok := errors.AsType[*cluster.Signalled](err); ok {
			return nil, &Interrupted{RunID: s.RunID, Epoch: -1, Step: -1, Why: e.What, Cause: e}
		}
		return nil, err
	}
	r.mu.Lock()
	for i := range r.ranks { // Begin may have waited for a rank for minutes
		r.ranks[i].lastBeat = time.Now()
	}
	r.mu.Unlock()
	g := &Group{spec: s, page: r.page, impl: r, done: make(chan struct{})}
	own, err := rankProcess(r.task, r.page, r.page.rank(0))
	if err != nil {
		r.task.Abort(err.Error())
		r.task.End(exitFailed, err)
		return nil, err
	}
	own.emit = func(lines []byte) error {
		r.lines(0, lines)
		return nil
	}
	own.connected = func(c collective.Comm) { r.comm.Store(&c) }
	var helpers sync.WaitGroup
	helpers.Go(r.queue.deliver)
	ended := make(chan struct{}) // the program of rank 0
	go func() {
		words := own.runRank(r.task, s.MemLimit)
		own.clock.times()
		close(ended) // first: supervise believes the view that it has ended
		r.set(0, func(st *rankView) { st.ended, st.words = true, words })
	}()
	go func() {
		g.err = r.supervise(ctx, own, ended)
		r.queue.close()
		helpers.Wait()
		close(g.done)
	}()
	return g, nil
}

// set changes the recorded state of a rank.
func (r *rankRun) set(rank int, f func(*rankView)) {
	r.mu.Lock()
	f(&r.ranks[rank])
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// lines passes on events, one a line.
func (r *rankRun) lines(rank int, b []byte) {
	for line := range bytes.Lines(b) {
		r.queue.event(rank, bytes.Clone(bytes.TrimSpace(line)))
	}
}

// The methods below make it a [cluster.Hub].

func (r *rankRun) Pulse(rank int, state []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &r.ranks[rank]
	st.lastBeat = time.Now()
	st.waiting = r.page.rank(rank).take(state)
}

func (r *rankRun) Message(rank int, m []byte) {
	busy := func(yes bool) func(*rankView) {
		return func(st *rankView) { st.busy, st.lastBeat = yes, time.Now() }
	}
	r.set(rank, busy(true))
	r.lines(rank, m)
	r.set(rank, busy(false))
}

func (r *rankRun) Ended(rank int, text []byte) {
	var words *lastWords
	if err := json.Unmarshal(text, &words); err != nil {
		words = &lastWords{Error: "its last words cannot be read: " + err.Error()}
	}
	r.set(rank, func(st *rankView) { st.ended, st.words, st.waiting = true, words, false })
}

func (r *rankRun) Signal(what string) {
	select {
	case r.asked <- what:
	default: // another one is waiting
	}
}

func (r *rankRun) Lost(rank int, err error) {
	r.set(rank, func(st *rankView) {
		if !st.ended {
			st.ended, st.lost, st.waiting = true, err, false
		}
	})
}

func (r *rankRun) Place() string {
	return cmp.Or(strings.TrimPrefix(where(r.page.rank(0).position()), " at "), "stage "+firstStage)
}

// The methods below make it a runner.

func (r *rankRun) interrupt()       { r.askOnce.Do(func() { close(r.stopping) }) }
func (r *rankRun) kill()            { r.killOnce.Do(func() { close(r.killed) }) }
func (r *rankRun) pid(rank int) int { return r.task.Member(rank).PID }

func (r *rankRun) waiting(rank int) bool {
	if rank == 0 {
		return waits(r.comm.Load())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ranks[rank].waiting
}

func (r *rankRun) age(rank int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.ranks[rank].lastBeat)
}

// pss adds up the memory that the ranks have measured for themselves.
func (r *rankRun) pss() int64 {
	own := r.page.rank(0).i64(rankPss)
	return r.meter.read(func() int64 {
		atomic.StoreInt64(own, pssOf(os.Getpid()))
		var sum int64
		for i := range r.ranks {
			sum += atomic.LoadInt64(r.page.rank(i).i64(rankPss))
		}
		return sum
	})
}

func (r *rankRun) peakPss() int64 { return r.meter.highest() }

var _ cluster.Hub = rankSupervision{}

// rankSupervision is the state of the supervisor's loop.
type rankSupervision struct {
	*rankRun
	failed *WorkerError // the first failure
	echo   *WorkerError // the end of a rank that another rank's failure caused

	interrupted   bool
	interruptedAt time.Time
	stopBy        time.Time // when the interrupted run is aborted
	unsaved       bool      // the interrupted run was given up while rank 0 wrote a checkpoint
	cause         error
	aborted       bool
	giveUpAt      time.Time // when ranks that have not ended count as stuck; zero: not planned
	forced        []int

	tellAt time.Time // when this process prints the failure, because its launcher may kill it before its program ends; zero: not planned

	stoppedFor time.Duration // how long this process last stood still, if other ranks may have given it up
	stoppedAt  time.Time     // when it went on
}

// supervise returns when the job has ended on all ranks, with the run's end.
func (r *rankRun) supervise(ctx context.Context, own *Process, ended <-chan struct{}) error {
	s := &rankSupervision{rankRun: r}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	cancelled, stopping, killed := ctx.Done(), r.stopping, r.killed
	last := time.Now()
	for !s.allEnded() {
		ticked := false
		select {
		case <-r.news:
		case <-cancelled:
			cancelled = nil
			s.stop(context.Cause(ctx))
		case <-stopping:
			stopping = nil
			s.stop(nil)
		case why := <-r.asked:
			s.stop(askedError(why))
		case <-killed:
			killed = nil
			s.stop(nil)
			s.abort("the run was ended")
		case <-tick.C:
			ticked = true
		}
		now := time.Now()
		if gap := now.Sub(last); gap > ownGap { // this process was stopped for a while
			s.forgive(now)
			if gap >= s.spec.Silent*3/4 { // the last sign of life was before it
				s.stoppedFor, s.stoppedAt = gap, now
			}
		}
		last = now
		if ticked {
			own.clock.beat()
			r.set(0, func(st *rankView) { st.lastBeat = now })
			r.pss()
			s.look(now)
		}
		s.judge()
		if s.due(time.Now()) {
			break
		}
		s.tell(time.Now())
	}
	s.judge()
	broken := error(nil)
	select {
	case <-ended:
		r.comm.Store(nil)
		r.task.Release()
	default:
		broken = errors.New("multigpu: the program of an earlier run still runs in this process; start the program again")
	}
	err := s.result()
	status := 0
	if err != nil {
		status = StatusOf(err, s.interrupted && !s.unsaved)
	}
	r.task.End(status, broken)
	return err
}

func (s *rankSupervision) allEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.ranks, func(st rankView) bool { return !st.ended })
}

func (s *rankSupervision) result() error {
	failed := s.failed
	if failed == nil {
		failed = s.echo
	}
	if s.unsaved {
		return s.failure(0, CauseLost, fmt.Sprintf("it had not written its checkpoint %v after the run was interrupted; the checkpoint before it is whole, so resume the run from there", time.Since(s.interruptedAt).Round(time.Second)))
	}
	if s.interrupted {
		return interruption(s.spec, s.page, s.forced, s.cause, failed)
	}
	return asError(failed)
}

func (s *rankSupervision) stop(cause error) {
	if s.failed != nil || s.interrupted {
		return
	}
	now := time.Now()
	s.interrupted, s.interruptedAt, s.stopBy, s.cause = true, now, now.Add(stopGrace), cause
	atomic.StoreUint32(s.page.stop(), 1)
	s.task.Stop()
}

// abort ends the collectives of all ranks. A rank whose program does not end then ends its process.
func (s *rankSupervision) abort(reason string) {
	if !s.aborted {
		s.aborted = true
		s.giveUpAt = time.Now().Add(stuckGrace + time.Second)
		s.task.Abort(reason)
	}
}

// due aborts an interrupted run that does not end in time, and reports whether to give up ranks that
// have not ended after an abort.
func (s *rankSupervision) due(now time.Time) (giveUp bool) {
	_, _, stage := s.page.rank(0).position()
	saves := stage == stageCheckpoint
	if s.interrupted && saves && now.Sub(s.interruptedAt) < checkpointGrace {
		s.stopBy = now.Add(stopGrace)
	}
	if s.interrupted && !now.Before(s.stopBy) {
		s.abort("it did not stop in time after an interrupt")
	}
	if s.giveUpAt.IsZero() || now.Before(s.giveUpAt) {
		return false
	}
	var silent []int
	s.mu.Lock()
	for i := range s.ranks {
		if st := &s.ranks[i]; !st.ended {
			s.forced = append(s.forced, i)
			s.unsaved = s.unsaved || i == 0 && s.interrupted && saves
			if now.Sub(st.lastBeat) > ownGap {
				silent = append(silent, i)
			}
		}
	}
	s.mu.Unlock()
	if len(silent) > 0 && s.failed == nil && !s.interrupted { // the others lost their connections to it
		s.failed = s.silence(silent[0], s.age(silent[0]))
	}
	return true
}

// tell prints the failure if the program of rank 0 has not ended soon after it: the program may be writing a checkpoint, and the run
// returns the failure after that, but a launcher whose rank has ended kills the others, mpirun within 1 to 2 s.
func (s *rankSupervision) tell(now time.Time) {
	if s.tellAt.IsZero() || now.Before(s.tellAt) {
		return
	}
	s.tellAt = time.Time{}
	s.mu.Lock()
	ended := s.ranks[0].ended
	s.mu.Unlock()
	if !ended {
		fmt.Fprintln(os.Stderr, s.failed)
	}
}

// askedError is why a rank asked for the end of the run.
type askedError string

func (e askedError) Error() string { return string(e) }

// silence is the error of a rank without heartbeats.
func (s *rankSupervision) silence(rank int, age time.Duration) *WorkerError {
	return s.failure(rank, CauseLost, fmt.Sprintf("it is silent: rank 0 (%s) has received no heartbeat for %.1f s; it is stopped, its machine hangs, or the network between them is cut", s.task.Member(0).Host, age.Seconds()))
}

// fail records the first failure and ends the others.
func (s *rankSupervision) fail(e *WorkerError) {
	if s.failed == nil {
		s.failed, s.tellAt = e, time.Now().Add(tellAfter)
	}
	s.abort(e.Error())
}

// failure is the error of a rank at the place where it is now.
func (s *rankSupervision) failure(rank int, cause Cause, reason string) *WorkerError {
	epoch, step, stage := s.page.rank(rank).position()
	m := s.task.Member(rank)
	return &WorkerError{Rank: rank, PID: m.PID, Host: m.Host, Epoch: epoch, Step: step, Stage: stage, Reason: reason, Cause: cause}
}

// judge determines why ranks have ended.
func (s *rankSupervision) judge() {
	s.mu.Lock()
	var ended []int
	for i := range s.ranks {
		if st := &s.ranks[i]; st.ended && !st.judged {
			st.judged = true
			ended = append(ended, i)
		}
	}
	s.mu.Unlock()
	for _, rank := range ended {
		st := &s.ranks[rank] // no longer changes
		gaveUp := rank > 0 && s.stoppedFor > 0 && time.Since(s.stoppedAt) < s.spec.Silent
		switch {
		case gaveUp && s.failed == nil && (st.lost != nil || st.words != nil && st.words.Aborted):
			s.interrupted = false // mpirun ends the others of a rank that has failed by SIGTERM
			s.fail(s.failure(0, CauseLost, fmt.Sprintf("it stood still for %.1f s, and %s gave it up; a signal (SIGSTOP or SIGTSTP) had stopped it, or its machine", s.stoppedFor.Seconds(), s.task.Name(rank))))
		case st.lost != nil:
			s.fail(s.failure(rank, CauseLost, "its process or its connection has ended without a word: a signal ended it, the memory ran out, something called os.Exit, or the network failed; what the launcher prints may tell"))
		case st.words == nil:
		case st.words.Stuck:
			s.forced = append(s.forced, rank)
		case st.words.Aborted:
			if !s.interrupted && s.echo == nil && s.failed == nil {
				s.echo = s.carried(rank, st.words)
				s.abort(s.echo.Error())
			}
		default:
			s.fail(s.carried(rank, st.words))
		}
	}
}

// carried is the error of a rank with its last words.
func (s *rankSupervision) carried(rank int, w *lastWords) *WorkerError {
	e := s.failure(rank, w.cause(), w.Error)
	e.Stack, e.Err = w.Stack, w.carried()
	return e
}

func (s *rankSupervision) forgive(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ranks {
		s.ranks[i].lastBeat, s.ranks[i].stallSince = now, time.Time{}
	}
}

// look finds ranks that are silent or stalled.
func (s *rankSupervision) look(now time.Time) {
	if s.failed != nil || s.aborted {
		return
	}
	s.mu.Lock()
	silent := -1
	var age time.Duration
	for i := range s.ranks {
		if st := &s.ranks[i]; !st.ended && !st.busy && now.Sub(st.lastBeat) >= s.spec.Silent {
			silent, age = i, now.Sub(st.lastBeat)
			break
		}
	}
	s.mu.Unlock()
	if silent >= 0 {
		s.fail(s.silence(silent, age))
		return
	}
	if rank := s.stalled(now); rank >= 0 {
		s.fail(s.failure(rank, CauseStalled, fmt.Sprintf("it has stalled: it is alive, but has been in this stage for %v while all the others wait for it", s.spec.Stall)))
	}
}

// stalled finds the one rank that all others have waited for, at one place, for too long; -1 is none.
func (s *rankSupervision) stalled(now time.Time) int {
	if s.spec.Stall < 0 {
		return -1
	}
	busy, many := -1, false
	for i := range s.ranks {
		waiting := s.waiting(i)
		s.mu.Lock()
		waiting = waiting || s.ranks[i].ended
		if waiting {
			s.ranks[i].stallSince = time.Time{}
		}
		s.mu.Unlock()
		if waiting {
			continue
		}
		busy, many = i, many || busy >= 0
	}
	if busy < 0 || many {
		return -1
	}
	epoch, step, stage := s.page.rank(busy).position()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.ranks[busy]
	if now.Sub(st.lastBeat) >= 3*heartbeat { // silent, which is handled separately
		st.stallSince = time.Time{}
		return -1
	}
	if at := [2]int{epoch, step}; st.stallSince.IsZero() || st.stallAt != at || st.stallStage != stage {
		st.stallSince, st.stallAt, st.stallStage = now, at, stage
		return -1
	}
	if now.Sub(st.stallSince) < s.spec.Stall {
		return -1
	}
	return busy
}

// launchedInterrupts are the signals by which a launcher asks its ranks to end.
func launchedInterrupts() []os.Signal {
	if p, _ := place(); p != nil {
		return []os.Signal{syscall.SIGTERM}
	}
	return nil
}
