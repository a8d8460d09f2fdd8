package multigpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/multigpu/cluster"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Process is a worker's side of a run. The handler receives it.
type Process struct {
	// Rank is this worker's number, 0 to World-1.
	Rank, World int
	// LocalRank is this worker's number on its machine, of LocalWorld.
	LocalRank, LocalWorld int
	// Machine is the number of this worker's machine, of Machines: 0 of 1 unless a launcher started
	// the ranks on several. Ranks are numbered machine by machine.
	Machine, Machines int
	// Host is the name of this worker's machine.
	Host string
	// Threads is GOMAXPROCS of this worker.
	Threads int
	// RunID is the run's id.
	RunID string
	// Comm connects this worker with the others.
	Comm collective.Comm

	job   json.RawMessage
	files []*os.File
	page  *statusPage
	mine  rankStatus
	clock *stageClock
	emit  func(lines []byte) error
	mu    sync.Mutex // of emit
	// connected gets the Comm of a rank of a launcher.
	connected func(collective.Comm)
}

// maxEvent is the largest size of an event's JSON, which the launcher keeps in memory.
const maxEvent = 64 << 20

const (
	// heartbeat is the time between two heartbeats.
	heartbeat = 100 * time.Millisecond
	// stopGrace is how long workers may take to stop when asked.
	stopGrace = 2 * time.Second
	// ownGap is the shortest pause of the supervisor itself (a closed laptop, SIGSTOP, a frozen
	// container) after which silence is not counted against workers.
	ownGap = time.Second
)

// Job decodes the run's job into v, a pointer.
func (p *Process) Job(v any) error {
	if err := json.Unmarshal(p.job, v); err != nil {
		return fmt.Errorf("multigpu: rank %d: the job does not fit: %w", p.Rank, err)
	}
	return nil
}

// Files are the run's inherited files, in the order of [Spec.Files]. They are
// closed with the process; a worker inside the launcher must not close them.
func (p *Process) Files() []*os.File { return p.files }

// Emit sends v, as JSON, to the launcher's OnEvent. It may be called from any goroutine, and waits
// if the launcher is behind.
func (p *Process) Emit(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("multigpu: rank %d: an event cannot be written as JSON: %w", p.Rank, err)
	}
	return p.EmitLines(append(line, '\n'))
}

// EmitLines is Emit of several events that are JSON already, each ended by a
// newline and without others, in one write. lines are the caller's again when it
// returns.
func (p *Process) EmitLines(lines []byte) error {
	for line := range bytes.Lines(lines) {
		if len(line) > maxEvent {
			return fmt.Errorf("multigpu: rank %d: an event of %d bytes is larger than %d; write it to a file and send its name", p.Rank, len(line), maxEvent)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.emit(lines); err != nil {
		return fmt.Errorf("multigpu: rank %d: sending an event to the launcher: %w", p.Rank, err)
	}
	return nil
}

// Stage sets the name of this worker's current stage. Errors contain the name, and the time until
// the next Stage is counted under it. A name is at most 47 bytes; after 30 different names, others
// count as "other". It costs about 100 ns.
func (p *Process) Stage(name string) { p.clock.enter(name) }

// MoveTime moves time d from one stage to another, if it is known only afterwards where the time
// belongs.
func (p *Process) MoveTime(from, to string, d time.Duration) { p.clock.move(from, to, d) }

// StageTimes returns the time spent in each stage so far. Each moment since the
// handler was entered belongs to exactly one.
func (p *Process) StageTimes() map[string]time.Duration { return p.clock.times() }

// SetPosition sets this worker's position in the run; -1 means none.
func (p *Process) SetPosition(epoch, step int) {
	atomic.StoreInt64(p.mine.i64(rankEpoch), int64(epoch)+1)
	atomic.StoreInt64(p.mine.i64(rankStep), int64(step)+1)
}

// StopRequested reports whether the run has been asked to stop. Ranks may see this at different
// steps; to stop together they must agree in a collective.
func (p *Process) StopRequested() bool { return atomic.LoadUint32(p.page.stop()) != 0 }

// lastWords is the report of a worker that fails.
type lastWords struct {
	Error    string               `json:"error"`
	Panic    bool                 `json:"panic,omitempty"`
	Stack    string               `json:"stack,omitempty"`
	Mismatch *collective.Mismatch `json:"mismatch,omitempty"`
	Aborted  bool                 `json:"aborted,omitempty"`
	Lost     bool                 `json:"lost,omitempty"`  // a device was lost
	Away     bool                 `json:"away,omitempty"`  // a machine outside the run, such as a graph server, did not answer
	Stuck    bool                 `json:"stuck,omitempty"` // the program did not end after an abort
	Kinds    []ErrorKind          `json:"kinds,omitempty"`
}

func (w lastWords) encode() []byte {
	const most = maxWords / 8 // JSON may take six bytes for one
	w.Error = w.Error[:min(len(w.Error), most)]
	w.Stack = w.Stack[:min(len(w.Stack), 5*most)]
	for {
		b, err := json.Marshal(w)
		if err != nil {
			return []byte(`{"error":"an error that cannot be written as JSON"}`)
		}
		if len(b) <= maxWords {
			return b
		}
		w.Stack = w.Stack[:len(w.Stack)/2]
		w.Error = w.Error[:min(len(w.Error), most/2)]
	}
}

// run calls the handler and, if it returns nil, waits for the other ranks to return too; a rank
// that left a loop early then meets the others' next collective, which reports the mismatch. failed
// is nil on success.
func (p *Process) run(h func(*Process) error) (failed *lastWords) {
	ended := make(chan *lastWords, 1)
	go func() {
		out := &lastWords{Error: "the program ended its goroutine by runtime.Goexit (a test's Fatal does that)"}
		defer func() { ended <- out }()
		defer func() {
			if r := recover(); r != nil {
				out = panicWords(r, debug.Stack())
			}
		}()
		if err := h(p); err != nil {
			out = errorWords(err)
			return
		}
		out = nil
	}()
	if out := <-ended; out != nil {
		return out
	}
	p.Stage("finish")
	atomic.StoreInt64(p.mine.i64(rankPss), pssOf(os.Getpid()))
	err := p.Comm.Barrier(collective.Site{Kind: "finish", Epoch: -1, Step: -1, At: "the end of the program"})
	if err != nil {
		return errorWords(err)
	}
	return nil
}

func errorWords(err error) *lastWords {
	w := &lastWords{Error: err.Error(), Aborted: errors.Is(err, collective.ErrAborted), Kinds: kindsOf(err)}
	if _, ok := errors.AsType[*collective.ConnError](err); ok {
		w.Aborted = true // another rank has ended, or its network: that is the cause
	}
	if r, ok := errors.AsType[farError](err); ok && r.Remote() {
		w.Aborted = true
	}
	if m, ok := errors.AsType[*collective.Mismatch](err); ok {
		w.Mismatch = m
	}
	if p, ok := errors.AsType[*parallel.Panic](err); ok {
		w.Stack = string(p.Stack)
	}
	if l, ok := errors.AsType[lostError](err); ok {
		w.Lost = l.Lost()
	}
	_, w.Away = errors.AsType[*cluster.Lost](err)
	return w
}

// lostError is the error of a device that reports whether the device is lost, rather than a single
// call having failed: a cuda.Status.
type lostError interface {
	error
	Lost() bool
}

// farError is the error of a library that connects ranks; it reports whether another rank, or the connection to it, is
// the cause: an nccl.Status.
type farError interface {
	error
	Remote() bool
}

func panicWords(r any, stack []byte) *lastWords {
	if err, ok := r.(error); ok {
		if p, ok := errors.AsType[*parallel.Panic](err); ok {
			stack = p.Stack // where the panic began, in another goroutine
		}
	}
	w := &lastWords{Error: fmt.Sprintf("panic: %v", r), Panic: true, Stack: string(stack)}
	if err, ok := r.(error); ok {
		w.Aborted, w.Kinds = errors.Is(err, collective.ErrAborted), kindsOf(err)
		if m, ok := errors.AsType[*collective.Mismatch](err); ok {
			w.Mismatch = m
		}
	}
	return w
}

// remoteError is a worker's error on the launcher's side.
type remoteError struct {
	text  string
	kinds []ErrorKind
}

func (e *remoteError) Error() string { return e.text }

// Is reports whether target is a kind of the error.
func (e *remoteError) Is(target error) bool {
	k, ok := target.(ErrorKind)
	return ok && slices.Contains(e.kinds, k)
}

// cause distinguishes a panic, a lost device, a machine that did not answer, and the end of a worker that lost the others,
// from an error that the handler returned.
func (w *lastWords) cause() Cause {
	switch {
	case w.Aborted:
		return CauseLost
	case w.Panic:
		return CauseProgram
	case w.Lost:
		return CauseStalled
	case w.Away:
		return CauseLost
	}
	return CauseError
}

// carried rebuilds the error of a worker.
func (w *lastWords) carried() error {
	switch {
	case w.Mismatch != nil:
		return w.Mismatch
	case w.Aborted:
		return fmt.Errorf("%w: %s", collective.ErrAborted, w.Error)
	default:
		return &remoteError{w.Error, w.Kinds}
	}
}
