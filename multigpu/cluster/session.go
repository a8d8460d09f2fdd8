package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
)

var (
	// joinPatience is how long ranks may take to meet: pods may start minutes apart.
	joinPatience = 10 * time.Minute
	// noteAfter is the time after which rank 0 prints the ranks for which it waits.
	noteAfter = 10 * time.Second
	// meetPatience is how long the ranks of a machine may take to meet after all have joined rank 0.
	meetPatience = 30 * time.Second
	// idleSilence is how long rank 0 may be silent between two jobs.
	idleSilence = 30 * time.Second
)

// beatEvery is the time between two signs of life of rank 0.
const beatEvery = 100 * time.Millisecond

// Session connects this process with the other ranks, for the life of the process.
type Session struct {
	place  *Place
	self   hello
	trust  trust
	engine Engine // nil for none
	server *server
	local  *net.UnixListener
	// orphaned is closed when the launcher of this rank has ended, after the consequence has been
	// written to orphan.
	orphaned <-chan struct{}
	orphan   string

	// Set before ready is closed.
	ready   chan struct{}
	err     error
	welcome welcome
	root    string // the address by which this rank reaches rank 0, "" over an abstract socket
	fellows map[int]*net.UnixConn
	peers   []*wire // on rank 0, by rank; peers[0] is nil
	parcels chan parcel

	mu       sync.Mutex
	task     *Task // the job in progress
	jobs     int
	broken   error  // why there can be no more job
	signal   string // a signal that came between jobs, or before all ranks had met
	lost     []bool // by rank
	goodbye  bool
	stopBeat chan struct{}
	giveUp   context.CancelCauseFunc // on rank 0, ends the wait for the ranks of its machine; set with numbers

	// On rank 0, until all ranks have met.
	numbers   []int         // by the launcher's rank; nil until all ranks have joined
	signalled chan struct{} // there is a signal
	leaving   chan struct{} // closed by Leave
	status    int           // Leave's
}

func (p *Place) session() *Session {
	return &Session{place: p, ready: make(chan struct{}), stopBeat: make(chan struct{}), parcels: make(chan parcel, 1), signalled: make(chan struct{}, 1), leaving: make(chan struct{})}
}

func newSession(p *Place) (*Session, error) {
	s := p.session()
	s.self, s.engine = ownHello(p), p.engine()
	var err error
	if s.trust, err = trustFromEnv(); err != nil {
		return nil, err
	}
	s.orphaned = awaitLauncher(p, &s.orphan)
	s.server = newServer(s.trust)
	s.self.Local = "gnb-" + randomName()
	if s.local, err = listenLocal(s.self.Local, "unixpacket"); err != nil {
		return nil, fmt.Errorf("cluster: waiting for other ranks of this machine: %w", err)
	}
	return s, nil
}

func randomName() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// socketNames are the abstract names at which rank 0 waits for the ranks of its machine. The first one follows from a secret
// of the user as well, where there is one: any user can take a name that follows from the job alone.
func (s *Session) socketNames() []string {
	plain := s.socketName()
	key := userKey()
	if key == "" {
		return []string{plain}
	}
	name := hmac.New(sha256.New, []byte(key))
	fmt.Fprint(name, plain)
	return []string{fmt.Sprintf("gnb-%d-%x", os.Getuid(), name.Sum(nil)[:16]), plain}
}

// socketName is the name that follows from the job alone.
func (s *Session) socketName() string {
	h, job := sha256.New(), s.self.JobID
	if s.place.Launcher == MPICH && s.place.LocalWorld > 0 {
		job = launcherProcess() // the job has no number, but its ranks on this machine have one parent
	}
	fmt.Fprint(h, s.self.Launcher, "\x00", job, "\x00", s.self.World)
	return fmt.Sprintf("gnb-%d-%s-%x", os.Getuid(), choice(s.self.Launcher), h.Sum(nil)[:8])
}

// meeting holds the data that rank 0 sends to the other ranks through an engine.
type meeting struct {
	Addresses []string
	Token     string
}

// startEngine starts the engine and checks that it is the launcher's.
func (s *Session) startEngine() error {
	if s.engine == nil {
		return nil
	}
	rank, world, err := s.engine.Init()
	if err != nil {
		return fmt.Errorf("cluster: starting %s: %w", s.engine.Name(), err)
	}
	if rank != s.place.Rank || world != s.place.World {
		return fmt.Errorf("cluster: %s started this process as rank %d of %d, and %s, which the program was built with, takes it for rank %d of %d; build with the mpicc of the launcher's own MPI",
			s.place.Launcher, s.place.Rank, s.place.World, s.engine.Name(), rank, world)
	}
	return nil
}

// Lead starts to wait for the other ranks, on rank 0, and returns at once; [Session.Begin] waits
// until they have joined.
func Lead(p *Place) *Session {
	s, err := newSession(p)
	if err != nil {
		s = p.session()
		s.err = err
		close(s.ready)
		return s
	}
	if s.orphaned != nil {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // printing after the launcher has ended does not end this process
	}
	go func() {
		s.err = s.lead()
		if _, told := errors.AsType[*Signalled](s.err); s.err != nil && !told {
			for _, w := range s.peers {
				if w != nil {
					_ = w.conn.Close() // there will be no job
				}
			}
		}
		close(s.ready)
	}()
	return s
}

// addresses opens the listeners of rank 0 and returns the addresses for other machines.
func (s *Session) addresses() ([]string, error) {
	var out []string
	if !s.place.OneNode() {
		switch {
		case s.place.Master != "":
			l, err := listenTCP(s.place.Master)
			if err != nil {
				return nil, err
			}
			s.server.serve(l)
			out = append(out, s.place.Master)
		case s.engine != nil:
			l, err := net.Listen("tcp", ":0")
			if err != nil {
				return nil, fmt.Errorf("cluster: rank 0 waits for ranks on other machines: %w", err)
			}
			s.server.serve(l)
			out = ownAddresses(l.Addr().(*net.TCPAddr).Port)
		}
	}
	for i, name := range s.socketNames() {
		l, err := listenLocal(name, "unix")
		switch {
		case err == nil:
			s.server.serve(l)
		case i == 0 && s.place.OneNode():
			return nil, fmt.Errorf("cluster: rank 0 cannot wait for the others of job %q of %s: %w; %s does already", s.self.JobID, s.place.Launcher, err, holder(name))
		}
	}
	return out, nil
}

// holder says whose process has an abstract name.
func holder(name string) string {
	c, err := dialLocal(name, "unix")
	if why := asRefusal(err); why != nil {
		return why.why + "; a directory for this user's cache (HOME, XDG_CACHE_HOME) makes names that nobody else can take: it"
	}
	if err == nil {
		_ = c.Close()
	}
	return "another process of yours"
}

// ownAddresses are this machine's addresses with a port, those of the loopback interface last.
func ownAddresses(port int) []string {
	var out, loop []string
	list, _ := net.InterfaceAddrs() // none on an error
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLinkLocalUnicast() {
			continue
		}
		at := net.JoinHostPort(n.IP.String(), fmt.Sprint(port))
		if n.IP.IsLoopback() {
			loop = append(loop, at)
		} else {
			out = append(out, at)
		}
	}
	return append(out, loop...)
}

func (s *Session) lead() error {
	if err := s.unreachable(); err != nil {
		return err
	}
	s.server.joins, s.server.collected = make(chan arrival), make(chan struct{})
	s.server.refused = make(chan error, 1)
	s.server.files = s.serveFiles
	if err := s.startEngine(); err != nil {
		return err
	}
	if s.engine != nil && !s.place.OneNode() && s.trust.token == nil {
		s.trust.token = []byte(randomName()) // it travels through the engine
		s.server.trust = s.trust
	}
	at, err := s.addresses()
	if err != nil {
		return err
	}
	if s.engine != nil {
		b, err := json.Marshal(meeting{at, string(s.trust.token)})
		if err != nil {
			return err
		}
		if _, err := s.engine.Broadcast(0, b); err != nil {
			return fmt.Errorf("cluster: telling the other ranks the address of rank 0: %w", err)
		}
	}
	hellos, wires, err := s.collect(at)
	if err != nil {
		return err
	}
	ctx, giveUp := meetingTime()
	defer giveUp(nil)
	s.number(hellos, wires, giveUp)
	s.server.expect(s.welcome.Session)
	err = s.welcomeAll()
	if err == nil {
		s.fellows, err = meet(ctx, s.local, s.welcome)
	}
	if e := s.toldSignal(); e != nil {
		s.all(frameBye, statusText(ExitResumable))
		return e
	}
	if err != nil {
		return err
	}
	if len(s.welcome.First) == 1 {
		s.server.close()
	}
	go s.beat()
	go s.endOrphaned()
	return nil
}

// number gives the ranks that have joined their numbers.
func (s *Session) number(hellos []hello, wires []*wire, giveUp context.CancelCauseFunc) {
	w, launcherRank := gather(hellos)
	w.Session = randomName()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.welcome, s.giveUp = w, giveUp
	s.peers, s.lost, s.numbers = make([]*wire, len(w.Members)), make([]bool, len(w.Members)), make([]int, len(w.Members))
	for r, l := range launcherRank {
		s.peers[r], s.numbers[l] = wires[l], r
	}
	if s.signal != "" { // it came after the last rank had joined
		giveUp(&Signalled{s.signal})
	}
}

func (s *Session) welcomeAll() error {
	w := s.welcome
	for r, p := range s.peers[1:] {
		w.Rank = r + 1
		if err := p.sendJSON(frameWelcome, w); err != nil {
			return lost("cluster: %s has ended before the run began", w.name(w.Rank))
		}
	}
	return nil
}

// toldSignal is the signal that a rank has received before the first job, nil for none.
func (s *Session) toldSignal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal == "" {
		return nil
	}
	return &Signalled{s.signal}
}

// endOrphaned interrupts the job when rank 0's launcher has ended; there is no other job after it.
func (s *Session) endOrphaned() {
	select {
	case <-s.orphaned:
	case <-s.stopBeat:
		return
	}
	what := s.welcome.name(0) + " " + s.orphan
	s.mu.Lock()
	t := s.task
	if s.broken == nil {
		s.broken = lost("cluster: %s", what)
	}
	s.mu.Unlock()
	if t != nil {
		t.hub.Signal(what)
	}
}

// meetingTime bounds the time in which the ranks of a machine meet.
func meetingTime() (context.Context, context.CancelCauseFunc) {
	timed, stop := context.WithTimeoutCause(context.Background(), meetPatience, fmt.Errorf("they did not come within %v after joining rank 0; the launcher must start all ranks again", meetPatience))
	ctx, cancel := context.WithCancelCause(timed)
	return ctx, func(why error) {
		cancel(why)
		stop()
	}
}

// unreachable is an error if ranks of other machines cannot find rank 0.
func (s *Session) unreachable() error {
	if s.place.LocalWorld > 0 && !s.place.OneNode() && s.place.Master == "" && s.engine == nil {
		how := ""
		if s.place.Launcher == OpenMPI || s.place.Launcher == MPICH {
			how = ", or build the program with -tags mpi"
		}
		return fmt.Errorf("cluster: %s started ranks on several machines and does not tell the address of rank 0; set %s=HOST:PORT to an address of its machine, the same on all%s", s.place.Launcher, envknob.Rendezvous, how)
	}
	return nil
}

// mostSaid is the number of refused processes that rank 0 names.
const mostSaid = 8

// collect waits until every rank has asked to join; the results are by the launcher's rank.
func (s *Session) collect(at []string) ([]hello, []*wire, error) {
	defer close(s.server.collected)
	hellos, wires := make([]hello, s.place.World), make([]*wire, s.place.World)
	hellos[0] = s.self
	missing := func() string {
		var out []string
		for r := 1; r < len(wires); r++ {
			if wires[r] == nil {
				out = append(out, fmt.Sprint(r))
			}
		}
		if len(out) > 8 {
			out = append(out[:8], fmt.Sprintf("%d others", len(out)-8))
		}
		return phrase.Clauses(out)
	}
	where := "on this machine"
	if len(at) > 0 {
		where = "at " + strings.Join(at, " or ")
	}
	end, note, tick := time.After(joinPatience), time.After(noteAfter), time.NewTicker(beatEvery)
	defer tick.Stop()
	there := 1
	// beat reports whether a rank that has joined is still there; if it is not, another process may take its place.
	beat := func(rank int) bool {
		w := wires[rank]
		if w == nil {
			return false
		}
		if err := w.send(frameBeat, nil); err == nil {
			return true
		}
		fmt.Fprintf(os.Stderr, "gnb: rank %d (%s) has ended before all ranks met; rank 0 waits for it to be started again\n", rank, hellos[rank].Host)
		_ = w.conn.Close() // broken
		wires[rank] = nil
		there--
		return false
	}
	said := 0
	say := func(err error) { // anyone can make rank 0 refuse something
		switch said++; {
		case said <= mostSaid:
			fmt.Fprintf(os.Stderr, "gnb: %v\n", err)
		case said == mostSaid+1:
			fmt.Fprintln(os.Stderr, "gnb: rank 0 refuses more processes, and names no more of them")
		}
	}
	for there < s.place.World {
		select {
		case a := <-s.server.joins:
			h := a.hello
			why := h.differs(s.self)
			if why == "" && beat(h.Rank) {
				why = fmt.Sprintf("rank %d (%s) has joined already, from %s; two processes take themselves for the same rank", h.Rank, h.Host, hellos[h.Rank].Host)
			}
			if why != "" {
				_ = a.wire.send(frameRefusal, []byte(why)) // it may have gone
				_ = a.wire.conn.Close()
				if !h.ofJob(s.self) { // it says nothing about the ranks of this job
					say(fmt.Errorf("cluster: rank 0 refused a process: %s", why))
					continue
				}
				s.dismiss(wires, exitFailed)
				return nil, nil, fmt.Errorf("cluster: %s", why)
			}
			hellos[h.Rank], wires[h.Rank] = h, a.wire
			there++
			go s.listen(h, a.wire)
		case <-s.signalled:
			s.part(wires, ExitResumable)
			return nil, nil, s.toldSignal()
		case <-s.leaving:
			s.part(wires, s.status)
			return nil, nil, errors.New("cluster: the program of rank 0 has ended before all ranks met")
		case <-tick.C:
			for rank := range wires {
				beat(rank)
			}
		case <-s.orphaned:
			s.dismiss(wires, ExitLost)
			return nil, nil, lost("cluster: rank 0 (%s) %s, while it waited for rank %s of %d", s.self.Host, s.orphan, missing(), s.place.World)
		case err := <-s.server.refused:
			say(err)
		case <-note:
			fmt.Fprintf(os.Stderr, "gnb: rank 0 waits %s for rank %s of %d\n", where, missing(), s.place.World)
		case <-end:
			s.dismiss(wires, ExitLost)
			return nil, nil, lost("cluster: rank %s of %d did not come within %v, while rank 0 (%s) waited %s; see what the launcher says about them, and whether they reach that address", missing(), s.place.World, joinPatience, s.self.Host, where)
		}
	}
	return hellos, wires, nil
}

// dismiss ends the ranks for which there will be no job, with an exit status.
func (s *Session) dismiss(wires []*wire, status int) {
	for _, w := range wires {
		if w != nil {
			_ = w.send(frameBye, statusText(status)) // it may have gone
			_ = w.conn.Close()
		}
	}
	s.server.close()
}

// partPatience is how long rank 0 waits for late ranks to tell them that there will be no job: they would wait for rank 0.
const partPatience = 4 * time.Second

// part tells the ranks that have joined, and those that still join, that there will be no job, and
// the exit status.
func (s *Session) part(wires []*wire, status int) {
	missing := len(wires) - 1
	for _, w := range wires {
		if w != nil {
			_ = w.send(frameBye, statusText(status)) // it may have gone
			missing--
		}
	}
	for end := time.After(partPatience); missing > 0; {
		select {
		case a := <-s.server.joins:
			_ = a.wire.send(frameBye, statusText(status))
			missing--
		case <-end:
			missing = 0
		}
	}
	s.server.close()
}

// beat tells the other ranks that rank 0 is alive.
func (s *Session) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stopBeat:
			return
		case <-tick.C:
			at := ""
			s.mu.Lock()
			if s.task != nil {
				at = s.task.hub.Place()
			}
			s.mu.Unlock()
			s.all(frameBeat, []byte(at))
		}
	}
}

// all sends a frame to every other rank that is still there.
func (s *Session) all(kind byte, payload []byte) {
	for r, w := range s.peers {
		if w != nil && !s.isLost(r) {
			_ = w.send(kind, payload) // its end is noticed by listen
		}
	}
}

func (s *Session) isLost(rank int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[rank]
}

// listen takes the frames of a rank that has joined, on rank 0.
func (s *Session) listen(h hello, w *wire) {
	for {
		kind, b, err := w.receive(maxFrame)
		rank, met := s.early(h, w, kind, b, err)
		if met && !s.take(rank, w, kind, b, err) || !met && err != nil {
			return
		}
	}
}

// early is the number of a rank that has joined, if all have; else it handles the frame, which can only tell of a signal.
func (s *Session) early(h hello, w *wire, kind byte, b []byte, err error) (rank int, met bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers != nil {
		rank = s.numbers[h.Rank]
		return rank, s.peers[rank] == w // else another process has taken its place
	}
	switch {
	case err != nil:
		_ = w.conn.Close() // collect notices
	case kind == frameSignal:
		s.signal = fmt.Sprintf("rank %d (%s) %s", h.Rank, h.Host, b)
		select {
		case s.signalled <- struct{}{}:
		default: // another rank has joined
		}
	}
	return 0, false
}

// take handles a frame of a rank, and reports whether there may be more.
func (s *Session) take(rank int, w *wire, kind byte, b []byte, err error) bool {
	s.mu.Lock()
	t := s.task
	if err != nil {
		s.lost[rank] = true
		if s.broken == nil {
			s.broken = lost("cluster: %s has ended; the launcher must start all ranks again", s.welcome.name(rank))
			s.giveUp(s.broken)
		}
	}
	signalled := ""
	if kind == frameSignal {
		signalled = fmt.Sprintf("%s %s", s.welcome.name(rank), b)
	}
	if signalled != "" && t == nil {
		s.signal = signalled
		s.giveUp(&Signalled{signalled})
	}
	s.mu.Unlock()
	if err != nil {
		_ = w.conn.Close() // broken
		if t != nil {
			t.hub.Lost(rank, err)
		}
		return false
	}
	if t == nil {
		return true
	}
	if kind == framePulse || kind == frameMessage || kind == frameEnded {
		if b = t.own(b); b == nil {
			return true // of an earlier job, in which the rank was given up
		}
	}
	switch kind {
	case framePulse:
		t.hub.Pulse(rank, b)
	case frameMessage:
		t.hub.Message(rank, b)
	case frameEnded:
		t.hub.Ended(rank, b)
	case frameSignal:
		t.hub.Signal(signalled)
	}
	return true
}

// Ready waits until all ranks have met.
func (s *Session) Ready(ctx context.Context) error {
	select {
	case <-s.ready:
		return s.err
	case <-ctx.Done():
		select {
		case <-s.ready: // the ranks did not meet, and their launcher ends them
			if s.err != nil {
				return s.err
			}
		default:
		}
		return context.Cause(ctx)
	}
}

// Members are the ranks, after [Session.Ready].
func (s *Session) Members() []Member { return slices.Clone(s.welcome.Members) }

// Leave ends the session on rank 0, before its process ends with an exit status: the other ranks
// end with the same, so that no launcher takes a part of a failed run for done. If not all ranks have met yet,
// Leave tells those that have joined or join within patience.
func (s *Session) Leave(status int, patience time.Duration) {
	s.mu.Lock()
	again := s.goodbye
	s.goodbye, s.status = true, status
	s.mu.Unlock()
	if again {
		return
	}
	close(s.leaving)
	select {
	case <-s.ready:
	case <-time.After(patience):
		return
	}
	close(s.stopBeat)
	if s.err != nil {
		return
	}
	s.all(frameBye, statusText(status))
	s.server.close()
	if s.engine != nil {
		_ = s.engine.Close() // the process ends
	}
}

var errBusy = errors.New("cluster: a run is in progress; under a launcher its ranks work on one run at a time")
