package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Follow joins rank 0 and serves its jobs, on every other rank, until rank 0 ends. It returns the
// exit status of this process: that of rank 0, if rank 0 tells it; ExitResumable after a wait for rank 0 that a signal
// interrupted, ExitLost if rank 0 was not found or vanished, and 1 if this rank cannot join, with the reason as err.
func Follow(p *Place, serve func(*Task)) (status int, err error) {
	// A launcher that is asked to end sends these to every rank; rank 0 ends the run.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	s, err := newSession(p)
	if err != nil {
		return exitFailed, err
	}
	w, status, err := s.join(signals)
	if w == nil {
		return status, err
	}
	f := &follower{session: s, root: w, tasks: make(chan *Task, 1), done: make(chan struct{})}
	go f.receive()
	if err := f.meet(signals); err != nil {
		return ExitLost, err
	}
	go f.signals(signals)
	for {
		select {
		case t := <-f.tasks:
			serve(t)
		case <-f.done:
			if s.engine != nil && f.bye.Load() {
				_ = s.engine.Close() // the process ends
			}
			return int(f.status.Load()), f.err
		}
	}
}

// follower is a rank above 0 between its joining and its end.
type follower struct {
	session *Session
	root    *wire
	tasks   chan *Task
	done    chan struct{} // closed when rank 0 has gone
	status  atomic.Int32
	bye     atomic.Bool
	served  bool   // there was a job
	at      string // where rank 0 was last in the job: "epoch 0, step 7, stage sample"
	err     error  // set before done is closed
}

// join finds rank 0 and waits for the ranks' numbers. It tells rank 0 of a signal, which then ends all ranks. The wire is nil
// if this process is to end, with the status.
func (s *Session) join(signals <-chan os.Signal) (_ *wire, status int, err error) {
	at, err := s.rootAddresses()
	if err != nil {
		return nil, statusOf(err), err
	}
	w, told, err := s.reach(at, signals)
	if _, ok := errors.AsType[*Signalled](err); ok {
		return nil, ExitResumable, err
	}
	if err != nil {
		return nil, statusOf(err), err
	}
	w.patient = true // rank 0 reads no more while it handles an event
	w.silence = idleSilence
	if told != nil {
		_ = w.send(frameSignal, signalText(told)) // the end of rank 0 is noticed below
	}
	stop := make(chan struct{})
	var forward sync.WaitGroup
	forward.Go(func() {
		for {
			select {
			case told = <-signals:
				_ = w.send(frameSignal, signalText(told))
			case <-stop:
				return
			}
		}
	})
	bye, err := s.awaitWelcome(w)
	close(stop)
	forward.Wait()
	switch {
	case bye != nil:
		return nil, statusIn(bye), nil
	case err == nil:
		return w, 0, nil
	}
	_ = w.conn.Close()
	if !errors.Is(err, errGone) {
		return nil, statusOf(err), err
	}
	if told != nil || len(signals) > 0 { // the launcher may have told rank 0 as well
		return nil, ExitResumable, nil
	}
	return nil, ExitLost, nil // rank 0 has already printed the reason, if there is one
}

// signalText returns the text about a signal that is sent to rank 0.
func signalText(sig os.Signal) []byte { return []byte("received the signal " + sig.String()) }

// rootAddresses returns the addresses at which rank 0 accepts ranks of other machines; an engine
// can provide them.
func (s *Session) rootAddresses() ([]string, error) {
	if err := s.unreachable(); err != nil {
		if s.self.Rank != 1 { // only one rank prints the error, before the launcher ends all of them
			time.Sleep(time.Second)
			return nil, errSilent
		}
		return nil, err
	}
	if err := s.startEngine(); err != nil {
		return nil, err
	}
	if s.engine == nil {
		if !s.place.OneNode() && s.place.Master != "" {
			return []string{s.place.Master}, nil
		}
		return nil, nil
	}
	var m meeting
	b, err := s.engine.Broadcast(0, nil)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: rank %d learns the address of rank 0: %w", s.self.Rank, err)
	}
	if m.Token != "" {
		s.trust.token = []byte(m.Token)
		s.server.trust = s.trust
	}
	return m.Addresses, nil
}

// awaitWelcome waits for the ranks' numbers. If rank 0 ends the ranks instead, bye is its message;
// if rank 0 ends without a message, the error is errGone.
func (s *Session) awaitWelcome(w *wire) (bye []byte, err error) {
	for {
		kind, b, err := w.receive(maxFrame)
		switch {
		case err != nil:
			return nil, errGone
		case kind == frameRefusal:
			return nil, fmt.Errorf("cluster: %s", b)
		case kind == frameBye:
			return b, nil
		case kind != frameWelcome:
			continue
		}
		if err := json.Unmarshal(b, &s.welcome); err != nil || !s.welcome.valid() {
			return nil, errors.New("cluster: rank 0 has sent numbers of the ranks that make no sense")
		}
		s.server.expect(s.welcome.Session)
		return nil, nil
	}
}

// meet connects this rank with those of its machine, until rank 0 has gone. It tells rank 0 of a signal, which then ends all
// ranks.
func (f *follower) meet(signals <-chan os.Signal) (err error) {
	s := f.session
	ctx, giveUp := meetingTime()
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case sig := <-signals:
				_ = f.root.send(frameSignal, signalText(sig)) // the end of rank 0 is noticed by receive
			case <-f.done:
				giveUp(errGone)
				return
			case <-ctx.Done():
				return
			}
		}
	})
	s.fellows, err = meet(ctx, s.local, s.welcome)
	if err != nil && ctx.Err() == nil {
		select { // the first rank of this machine no longer listens: rank 0 ends all ranks, or learns that one has ended
		case <-f.done:
			giveUp(errGone)
		case <-time.After(wordPatience):
		}
	}
	giveUp(errMet)
	watch.Wait()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errGone):
		return nil // Follow prints the reason
	case err == nil && !errors.Is(cause, errMet): // in the last moment
		return fmt.Errorf("cluster: %s meets the other ranks of its machine: %w", s.welcome.name(s.welcome.Rank), cause)
	case err != nil:
		return err
	}
	first, _ := s.welcome.machine()
	if first != s.welcome.Rank {
		go s.unpack(s.fellows[first])
	}
	if first == 0 || first != s.welcome.Rank {
		s.server.close() // no connection will arrive at this rank
	}
	return nil
}

// wordPatience is how long a rank that cannot reach the first rank of its machine waits for rank 0 to end it.
const wordPatience = 2 * time.Second

var errGone = errors.New("cluster: rank 0 has gone")

var errMet = errors.New("cluster: the ranks of a machine have met")

// errSilent is the error of a rank that prints no reason, because another rank prints why all ranks
// end.
var errSilent = errors.New("cluster: another rank says why the ranks end")

// valid reports whether the numbers are usable.
func (w welcome) valid() bool {
	if len(w.First) == 0 || w.First[0] != 0 || w.Rank < 0 || w.Rank >= len(w.Members) {
		return false
	}
	for i := 1; i < len(w.First); i++ {
		if w.First[i] <= w.First[i-1] || w.First[i] >= len(w.Members) {
			return false
		}
	}
	return true
}

// signalPatience is the time for which a rank that has received a signal still tries to reach rank
// 0, to tell it.
const signalPatience = time.Second

// reach connects to rank 0, which may not have started yet. told is a signal that arrived during
// the call; signalPatience later, the error is a [Signalled].
func (s *Session) reach(at []string, signals <-chan os.Signal) (_ *wire, told os.Signal, err error) {
	ctx, stop := context.WithTimeout(context.Background(), joinPatience)
	defer stop()
	where := "on this machine"
	if len(at) > 0 {
		where = "at " + fmt.Sprint(at)
	}
	wait := 20 * time.Millisecond
	var giveUp <-chan time.Time
	var last error
	said := false
	for {
		for _, name := range s.socketNames() {
			c, err := dialLocal(name, "unix")
			if err != nil { // perhaps another user has taken the name
				if last = err; asRefusal(err) != nil && !said {
					said = true
					fmt.Fprintf(os.Stderr, "gnb: rank %d (%s) still looks for rank 0: %v\n", s.self.Rank, s.self.Host, err)
				}
				continue
			}
			w := &wire{conn: c}
			if err := w.sendJSON(frameHello, s.self); err == nil { // else rank 0 has just ended
				return w, told, nil
			}
		}
		for _, address := range at {
			w, err := s.reachTCP(ctx, address)
			if err == nil {
				return w, told, nil
			}
			if last = err; asRefusal(err) != nil && len(at) == 1 {
				return nil, nil, fmt.Errorf("cluster: rank %d (%s) cannot join rank 0 at %s: %w", s.self.Rank, s.self.Host, address, asRefusal(err))
			}
		}
		select {
		case told = <-signals:
			giveUp = time.After(signalPatience)
		case <-giveUp:
			return nil, nil, &Signalled{fmt.Sprintf("rank %d (%s) %s", s.self.Rank, s.self.Host, signalText(told))}
		case <-s.orphaned:
			return nil, nil, lost("cluster: rank %d (%s) %s, while it looked for rank 0", s.self.Rank, s.self.Host, s.orphan)
		case <-ctx.Done():
			return nil, nil, lost("cluster: rank %d (%s) did not find rank 0 %s within %v: %w", s.self.Rank, s.self.Host, where, joinPatience, last)
		case <-time.After(wait):
			wait = min(wait*3/2, time.Second)
		}
	}
}

func asRefusal(err error) *refusal {
	r, _ := errors.AsType[*refusal](err)
	return r
}

// reachTCP connects to rank 0 over TCP. The hello names the address at which other machines reach
// this one: the address from which it reaches rank 0.
func (s *Session) reachTCP(ctx context.Context, address string) (*wire, error) {
	probe, err := (&net.Dialer{Timeout: proofPatience}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: probe}
	if err := s.trust.prove(probe); err != nil {
		return nil, errors.Join(err, probe.Close())
	}
	if s.self.Listen == "" {
		l, err := net.Listen("tcp", net.JoinHostPort(probe.LocalAddr().(*net.TCPAddr).IP.String(), "0"))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("waiting for data of other machines: %w", err), probe.Close())
		}
		s.self.Listen = l.Addr().String()
		s.server.serve(l)
	}
	if err := w.sendJSON(frameHello, s.self); err != nil {
		return nil, err
	}
	s.root = address
	return w, nil
}

// signals passes signals on to rank 0, and the end of this rank's launcher. Rank 0 stops the run on all ranks.
func (f *follower) signals(signals <-chan os.Signal) {
	orphaned := f.session.orphaned
	for {
		select {
		case sig := <-signals:
			_ = f.root.send(frameSignal, signalText(sig)) // the end of rank 0 is noticed by receive
		case <-orphaned:
			orphaned = nil
			_ = f.root.send(frameSignal, []byte(f.session.orphan))
		case <-f.done:
			return
		}
	}
}

// receive takes rank 0's frames.
func (f *follower) receive() {
	defer close(f.done)
	var t *Task
	for {
		f.root.silence = idleSilence
		if t != nil {
			f.root.silence = t.Silent
		}
		kind, b, err := f.root.receive(maxFrame)
		if err != nil {
			f.gone(t, f.root.silence, err)
			return
		}
		switch kind {
		case frameJob:
			t, err = f.session.newTask(b)
			if err != nil {
				f.err = err
				f.status.Store(exitFailed)
				return
			}
			t.root = f.root
			f.status.Store(0)
			f.served = true
			f.tasks <- t
		case frameBeat:
			f.at = string(b)
		case frameStop:
			if t != nil {
				t.stop()
			}
		case frameAbort:
			if t != nil {
				t.abort(string(b))
			}
		case frameEnd:
			f.status.Store(int32(statusIn(b)))
			if t != nil {
				t.result <- statusIn(b)
			}
			t = nil
		case frameBye:
			f.bye.Store(true)
			f.status.Store(int32(statusIn(b)))
			return
		}
	}
}

// gone ends this rank's job, if there is one, because rank 0 has gone. A program may end after its
// last job without a word, so then only silence counts as a failure.
func (f *follower) gone(t *Task, silence time.Duration, err error) {
	silent := errors.Is(err, os.ErrDeadlineExceeded)
	w := f.session.welcome
	if t == nil && (f.status.Load() != 0 || f.served && !silent) { // the status is that of the last job
		if e := f.session.engine; e != nil && w.Rank == 1 { // only one rank prints it
			f.err = fmt.Errorf("cluster: the program of %s has ended without a word to %s, which may count that as a failure; end it with multigpu.Leave(0)", w.name(0), e.Name())
		}
		return
	}
	at := ""
	if t != nil && f.at != "" {
		at = " at " + f.at
	}
	why := fmt.Sprintf("vanished%s: the connection to its process has ended", at)
	if silent {
		why = fmt.Sprintf("is silent%s: it has given no sign of life for %v; it is stopped, its machine hangs, or the network between them is cut", at, silence)
	}
	f.err = fmt.Errorf("cluster: %s ends, because %s %s", w.name(w.Rank), w.name(0), why)
	f.status.Store(ExitLost)
	if t == nil {
		return
	}
	t.result <- ExitLost
	_ = f.root.conn.Close() // over a cut network, pulses would wait for room to be sent
	t.abort(f.err.Error())
	// The task's program notices; one that does not ends with the process.
	select {
	case <-t.over:
	case <-time.After(stuckPatience):
	}
}
