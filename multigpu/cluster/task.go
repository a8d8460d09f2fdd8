package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// stuckPatience is how long a job that was aborted may take to end.
const stuckPatience = 3 * time.Second

// Hub receives the messages that the other ranks of a job send to rank 0. Its methods are called
// for one rank from one goroutine and must return: until a method has returned, no more data of
// that rank is read.
type Hub interface {
	// Pulse is a sign of life with the rank's state, as [Task.Pulse] sent it.
	Pulse(rank int, state []byte)
	// Message is what [Task.Message] sent.
	Message(rank int, m []byte)
	// Ended is the end of the job on the rank, with its last words.
	Ended(rank int, words []byte)
	// Signal gets a signal that a rank received and that is to interrupt the run: "rank 2 (node7)
	// received the signal terminated". It and the others may be called before [Session.Begin]
	// returns.
	Signal(what string)
	// Lost is the end of the rank's process or connection.
	Lost(rank int, err error)
	// Place is where rank 0 is in the job, for the error that other ranks print if it vanishes: "epoch 0, step 7, stage
	// sample". Any goroutine may call it.
	Place() string
}

// Task is a job on one rank.
type Task struct {
	// Rank is this rank, of World, numbered machine by machine. The rank of the launcher that is 0
	// is 0.
	Rank, World int
	// LocalRank is this rank's number on its machine, of LocalWorld.
	LocalRank, LocalWorld int
	// Machine is this rank's machine, of Machines.
	Machine, Machines int
	// Threads is this rank's share of the processors that it may use.
	Threads int
	// Data is the job, as [Session.Begin] got it.
	Data []byte
	// Silent is how long rank 0 may be silent.
	Silent time.Duration

	session *Session
	number  int
	nfiles  int
	files   []*os.File // on rank 0, those given
	hub     Hub        // on rank 0
	root    *wire      // on other ranks
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopped chan struct{}
	once    sync.Once
	over    chan struct{} // closed when the job has ended on this rank
	result  chan int      // exit status of the job, on other ranks than 0
	ending  sync.Once

	mu     sync.Mutex
	comm   collective.Comm
	afters []func() // what Release does after closing the Comm
}

// jobFrame is the content of a frame of a job.
type jobFrame struct {
	Number int           `json:"number"`
	Files  int           `json:"files"`
	Silent time.Duration `json:"silent"`
	Data   []byte        `json:"data"`
}

// Begin starts a job on every rank, from rank 0; it waits until all ranks have met. Files are the
// caller's, which closes them after the job has ended. silent is how long rank 0 may be silent
// before another rank gives it up.
func (s *Session) Begin(ctx context.Context, data []byte, files []*os.File, silent time.Duration, hub Hub) (*Task, error) {
	if err := s.Ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.task != nil:
		return nil, errBusy
	case s.broken != nil:
		return nil, s.broken
	case s.goodbye:
		return nil, errors.New("cluster: the other ranks have ended")
	}
	if s.signal != "" {
		err := &Signalled{s.signal}
		s.signal = ""
		return nil, err
	}
	s.jobs++
	t := s.task0(jobFrame{s.jobs, len(files), silent, data})
	t.files, t.hub = files, hub
	frame, err := json.Marshal(jobFrame{s.jobs, len(files), silent, data})
	if err != nil {
		return nil, err
	}
	if len(frame) > maxFrame {
		return nil, fmt.Errorf("cluster: a job of %d bytes is larger than %d", len(frame), maxFrame)
	}
	s.task = t
	for _, w := range s.peers[1:] {
		_ = w.send(frameJob, frame) // the end of a rank is noticed by listen
		_ = w.send(frameBeat, []byte(hub.Place()))
	}
	return t, nil
}

// Signalled is the error of a job that does not begin, because a signal told a rank to end before.
type Signalled struct{ What string }

func (e *Signalled) Error() string { return "cluster: " + e.What + " before the run began" }

// newTask is a job on another rank.
func (s *Session) newTask(b []byte) (*Task, error) {
	var f jobFrame
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("cluster: %s received a job that it cannot read: %w", s.welcome.name(s.welcome.Rank), err)
	}
	return s.task0(f), nil
}

func (s *Session) task0(f jobFrame) *Task {
	w := s.welcome
	first, count := w.machine()
	t := &Task{
		Rank: w.Rank, World: len(w.Members), LocalRank: w.Rank - first, LocalWorld: count, Machine: w.index(w.Rank), Machines: len(w.First),
		Threads: w.Members[w.Rank].Threads, Data: f.Data, Silent: f.Silent,
		session: s, number: f.Number, nfiles: f.Files, stopped: make(chan struct{}), over: make(chan struct{}), result: make(chan int, 1),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

// Stopped is closed when the job is to stop.
func (t *Task) Stopped() <-chan struct{} { return t.stopped }

// Aborted is closed when the job is to end at once.
func (t *Task) Aborted() <-chan struct{} { return t.ctx.Done() }

func (t *Task) stop() { t.once.Do(func() { close(t.stopped) }) }

// abort makes the collectives of this rank fail.
func (t *Task) abort(reason string) {
	t.cancel(fmt.Errorf("%w: %s", collective.ErrAborted, reason))
	t.mu.Lock()
	c := t.comm
	t.mu.Unlock()
	if c != nil {
		c.Abort(reason)
	}
}

// Stop asks every rank to stop, from rank 0.
func (t *Task) Stop() {
	t.stop()
	t.session.all(frameStop, nil)
}

// Abort makes the collectives of every rank fail with a reason, from rank 0.
func (t *Task) Abort(reason string) {
	t.session.all(frameAbort, []byte(reason))
	t.abort(reason)
}

// End ends the job, from rank 0, after it has ended on every rank that is still there, with the exit status that the other
// ranks have if rank 0 says no more. No other job can begin if broken is an error: a rank is lost, or its program does not
// end.
func (t *Task) End(status int, broken error) {
	s := t.session
	s.all(frameEnd, statusText(status))
	s.server.forget(t.number)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.task = nil
	if s.broken == nil {
		s.broken = broken
	}
}

// Status waits until rank 0 has ended the job, on another rank whose program does not end, and returns the job's exit
// status: [ExitLost] if rank 0 does not tell one in time.
func (t *Task) Status() int {
	select {
	case status := <-t.result:
		return status
	case <-time.After(stuckPatience):
		return ExitLost
	}
}

// Pulse tells rank 0 that this rank is alive, and its state.
func (t *Task) Pulse(state []byte) error { return t.tell(framePulse, state) }

// Message sends a message to rank 0.
func (t *Task) Message(m []byte) error { return t.tell(frameMessage, m) }

// tell sends a frame of this job to rank 0.
func (t *Task) tell(kind byte, payload []byte) error {
	b := make([]byte, 0, jobNumber+len(payload))
	return t.root.send(kind, append(binary.LittleEndian.AppendUint32(b, uint32(t.number)), payload...))
}

// jobNumber is the length of a job's number in a frame.
const jobNumber = 4

// own is the payload of a frame of this job, nil of any other.
func (t *Task) own(b []byte) []byte {
	if len(b) < jobNumber || binary.LittleEndian.Uint32(b) != uint32(t.number) {
		return nil
	}
	return b[jobNumber:]
}

// Over ends the job on a rank above 0, with its last words to rank 0. It closes the Comm and the
// files of [Task.Open].
func (t *Task) Over(words []byte) error {
	err := t.tell(frameEnded, words)
	t.Release()
	return err
}

// Release closes the Comm of [Task.Open], and the files that were passed to this rank.
func (t *Task) Release() {
	t.ending.Do(func() {
		close(t.over)
		t.mu.Lock()
		c, afters := t.comm, t.afters
		t.comm, t.afters = nil, nil
		t.mu.Unlock()
		if c != nil {
			release(c)
		}
		for _, f := range afters {
			f()
		}
		if t.Rank != 0 {
			closeAll(t.files)
			t.session.server.forget(t.number)
		}
		t.cancel(errors.New("cluster: the job has ended"))
	})
}

// release closes a Comm. If a goroutine of the program is still in a collective, its end is waited for after an
// abort, because the memory of the Comm is in use until then.
func release(c collective.Comm) {
	err := c.Close()
	if err == nil {
		return
	}
	c.Abort("the program of a rank has ended while it was in a collective: " + err.Error())
	for end := time.Now().Add(closePatience); err != nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = c.Close()
	}
}

// closePatience is how long a collective may take to end after an abort.
const closePatience = time.Second

// after makes Release call f.
func (t *Task) after(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.afters = append(t.afters, f)
}

// Name is a rank and its host in an error: "rank 2 (node7)".
func (t *Task) Name(rank int) string { return t.session.welcome.name(rank) }

// Member is a rank of the job.
func (t *Task) Member(rank int) Member { return t.session.welcome.Members[rank] }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // only read from
	}
}

// Open returns the files of the job, and the Comm of its ranks. It is collective, and fails if the
// job is aborted. The files are those given to Begin on rank 0, the same files on other ranks of
// its machine, and copies in memory on other machines.
func (t *Task) Open() ([]*os.File, collective.Comm, error) {
	c, err := t.open()
	if err != nil {
		if cause := context.Cause(t.ctx); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	t.mu.Lock()
	t.comm = c
	t.mu.Unlock()
	if cause := context.Cause(t.ctx); cause != nil { // the abort did not see the Comm
		c.Abort(cause.Error())
	}
	return t.files, c, nil
}

func (t *Task) open() (collective.Comm, error) {
	s := t.session
	first, count := s.welcome.machine()
	leader := t.Rank == first
	if leader && t.Rank != 0 && t.nfiles > 0 {
		var err error
		if t.files, err = t.fetch(); err != nil {
			return nil, fmt.Errorf("cluster: %s copies the files of the run from %s: %w", t.Name(t.Rank), t.Name(0), err)
		}
	}
	local, err := t.share(leader, count)
	if err != nil {
		return nil, err
	}
	if t.Machines == 1 {
		return local, nil
	}
	return t.machines(local, leader)
}

// share gives the files and the memory of a machine to its ranks, and returns their Comm.
func (t *Task) share(leader bool, count int) (collective.Comm, error) {
	s := t.session
	if count == 1 {
		return collective.NewSingle(), nil
	}
	const shared = 2
	if !leader {
		p, err := t.parcel()
		if err != nil {
			return nil, err
		}
		if len(p.files) != shared+t.nfiles {
			closeAll(p.files)
			return nil, fmt.Errorf("cluster: %s got %d files of %d", t.Name(t.Rank), len(p.files), shared+t.nfiles)
		}
		t.files = p.files[shared:]
		t.after(func() { closeAll(p.files[:shared]) })
		return collective.Open(p.files[0], p.files[1], t.LocalRank, count)
	}
	files, err := collective.NewShared(count)
	if err != nil {
		return nil, err
	}
	t.after(func() { _ = files.Close() }) // memory only
	c, err := collective.Open(files.Control, files.Data, 0, count)
	if err != nil {
		return nil, err
	}
	out := parcel{Job: t.number, files: append([]*os.File{files.Control, files.Data}, t.files...)}
	for _, fellow := range s.fellows {
		if err := sendParcel(fellow, out); err != nil && !errors.Is(err, net.ErrClosed) {
			return nil, fmt.Errorf("cluster: %s shares memory with the other ranks of its machine: %w", t.Name(t.Rank), err)
		}
	}
	return c, nil
}

// parcel waits for the files that the first rank of the machine passes.
func (t *Task) parcel() (parcel, error) {
	for {
		select {
		case p, ok := <-t.session.parcels:
			switch {
			case !ok:
				<-t.ctx.Done() // the first rank has ended: rank 0 ends the job, and names it
				return p, context.Cause(t.ctx)
			case p.Job < t.number: // of a job that was aborted
				closeAll(p.files)
			default:
				return p, nil
			}
		case <-t.ctx.Done():
			return parcel{}, context.Cause(t.ctx)
		}
	}
}

// unpack takes the parcels of the machine's first rank.
func (s *Session) unpack(c *net.UnixConn) {
	defer close(s.parcels)
	for {
		p, err := receiveParcel(c)
		if err != nil {
			_ = c.Close() // its first rank has ended
			return
		}
		s.parcels <- p
	}
}

// channels are the sets of connections between machines: one for the Comm, one for that of its Split.
const channels = 2

// machines joins the machines' Comms into one of all ranks, by the engine or by connections of their first ranks.
func (t *Task) machines(local collective.Comm, leader bool) (_ collective.Comm, err error) {
	m := collective.Machines{Rank: t.Rank, World: t.World, First: t.session.welcome.First, Local: local}
	var conns [channels][]net.Conn
	defer func() {
		if err == nil {
			return
		}
		_ = local.Close() // its memory alone
		if m.Link != nil {
			_ = m.Link.Close()
		}
		for _, set := range conns {
			for _, c := range set {
				if c != nil {
					_ = c.Close() // unused
				}
			}
		}
	}()
	if e := t.session.engine; e != nil {
		if m.Link, err = e.NewLink(t.Machine, leader); err != nil {
			return nil, err
		}
	} else if leader {
		for channel := range conns {
			conns[channel] = make([]net.Conn, t.Machines)
			for other := range t.Machines {
				if other == t.Machine {
					continue
				}
				if conns[channel][other], err = t.connect(other, channel); err != nil {
					first := t.session.welcome.First[other]
					return nil, fmt.Errorf("cluster: %s is not connected with %s: %w; ranks on different machines must reach each other at any port", t.Name(t.Rank), t.Name(first), err)
				}
			}
		}
		m.Conns, m.SplitConns = conns[0], conns[1]
	}
	return collective.NewMachines(m)
}

// connect returns a connection to the first rank of another machine: of two machines the later dials.
func (t *Task) connect(other, channel int) (net.Conn, error) {
	s := t.session
	if other > t.Machine {
		return s.server.take(t.ctx, dataKey{s.welcome.Session, t.number, channel, other})
	}
	at := s.root // rank 0 accepts everything at one address
	if other > 0 {
		at = s.welcome.Members[s.welcome.First[other]].Listen
	}
	w, err := t.dial(at, hello{For: forData, Session: s.welcome.Session, Job: t.number, Channel: channel, From: t.Machine})
	if err != nil {
		return nil, err
	}
	return w.conn, nil
}

// dialPatience is how long a rank tries to reach another one that answered when the ranks met.
const dialPatience = 5 * time.Second

// dial connects to a rank on another machine. It tries again, unless it is refused, because a machine may lose a packet or
// have too many connections at once.
func (t *Task) dial(address string, h hello) (*wire, error) {
	for end := time.Now().Add(dialPatience); ; {
		w, err := dial(t.ctx, address, t.session.trust, h)
		if err == nil || asRefusal(err) != nil || t.ctx.Err() != nil || time.Now().After(end) {
			return w, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.ctx.Done():
		}
	}
}

// fileHead describes a file that is copied to another machine.
type fileHead struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// fetch copies the files of the job from rank 0 into memory.
func (t *Task) fetch() (files []*os.File, err error) {
	s := t.session
	w, err := t.dial(s.root, hello{For: forFiles, Session: s.welcome.Session, Job: t.number, From: t.Machine})
	if err != nil {
		return nil, err
	}
	defer w.conn.Close()
	stop := context.AfterFunc(t.ctx, func() { _ = w.conn.Close() })
	defer stop()
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	for range t.nfiles {
		_, b, err := w.receive(maxFirst)
		if err != nil {
			return files, err
		}
		var h fileHead
		if err := json.Unmarshal(b, &h); err != nil {
			return files, err
		}
		f, err := memoryFile(h.Name)
		if err != nil {
			return files, err
		}
		files = append(files, f)
		if _, err := io.CopyN(f, w.conn, h.Size); err != nil {
			return files, err
		}
	}
	return files, nil
}

// serveFiles sends the files of a job to the first rank of another machine.
func (s *Session) serveFiles(h hello, w *wire) {
	s.mu.Lock()
	t := s.task
	s.mu.Unlock()
	if t == nil || h.Session != s.welcome.Session || h.Job != t.number {
		return
	}
	stop := context.AfterFunc(t.ctx, func() { _ = w.conn.Close() })
	defer stop()
	for _, f := range t.files {
		st, err := f.Stat()
		if err != nil {
			return // the other end sees the end of the connection
		}
		if err := w.sendJSON(frameHello, fileHead{f.Name(), st.Size()}); err != nil {
			return
		}
		_ = w.conn.SetWriteDeadline(time.Time{})
		if _, err := io.Copy(w.conn, io.NewSectionReader(f, 0, st.Size())); err != nil {
			return
		}
	}
}
