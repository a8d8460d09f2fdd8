package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// rendezvous returns the places of n ranks on one machine.
func rendezvous(t *testing.T, n int) []*Place {
	t.Setenv("GNB_TOKEN", "")
	t.Setenv("GNB_TOKEN_FILE", "")
	out := make([]*Place, n)
	for r := range out {
		out[r] = &Place{Launcher: Torchrun, Rank: r, World: n, LocalRank: r, LocalWorld: n, JobID: t.Name() + randomName()}
		out[r].JobID = out[0].JobID
	}
	return out
}

// joined returns a rank's wire to rank 0, before the ranks have met.
func joined(t *testing.T, p *Place) (*Session, *wire) {
	t.Helper()
	s, err := newSession(p)
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := s.reach(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.conn.Close()
		_ = s.local.Close()
	})
	return s, w
}

// until receives frames up to the first of the wanted kind and returns its content.
func until(t *testing.T, w *wire, want byte) []byte {
	t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		kind, b, err := w.receive(maxFrame)
		if err != nil {
			t.Fatal(err)
		}
		if kind == want {
			return b
		}
	}
}

// A rank that ends after all ranks have joined does not keep rank 0 waiting.
func TestRankEndsBeforeMeeting(t *testing.T) {
	p := rendezvous(t, 2)
	lead := Lead(p[0])
	_, w := joined(t, p[1])
	until(t, w, frameWelcome)
	_ = w.conn.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := lead.Ready(ctx); err == nil || !strings.Contains(err.Error(), "rank 1 (") || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("%v", err)
	}
	lead.server.close()
}

// The first rank of a machine waits only a bounded time for the machine's other ranks.
func TestMeetingEnds(t *testing.T) {
	defer func(d time.Duration) { meetPatience = d }(meetPatience)
	meetPatience = 50 * time.Millisecond
	f := &follower{session: firstOfTwo(t), done: make(chan struct{})}
	if err := f.meet(nil); err == nil || !strings.Contains(err.Error(), "did not come within 50ms") {
		t.Errorf("%v", err)
	}
}

// firstOfTwo returns a session of the first rank of a machine with two ranks.
func firstOfTwo(t *testing.T) *Session {
	t.Helper()
	l, err := listenLocal("gnb-"+randomName(), "unixpacket")
	if err != nil {
		t.Fatal(err)
	}
	return &Session{local: l, welcome: welcome{Members: []Member{{Host: "a"}, {Host: "a"}}, First: []int{0}}}
}

// A rank that receives a signal while it waits for the other ranks of its machine tells rank 0 and
// ends with rank 0's status.
func TestSignalInMeeting(t *testing.T) {
	a, b := net.Pipe()
	f := &follower{session: firstOfTwo(t), root: &wire{conn: a}, done: make(chan struct{})}
	go f.receive()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	go func() {
		root := &wire{conn: b}
		if text := until(t, root, frameSignal); string(text) != "received the signal terminated" {
			t.Errorf("%s", text)
		}
		_ = root.send(frameBye, statusText(ExitResumable))
	}()
	if err := f.meet(signals); err != nil || f.err != nil || f.status.Load() != ExitResumable {
		t.Errorf("%v, %v, status %d", err, f.err, f.status.Load())
	}
}

// A rank that finds its machine's first rank gone, because rank 0 has been told to end, ends with rank 0's status.
func TestSignalEndsFirstRankInMeeting(t *testing.T) {
	a, b := net.Pipe()
	s := firstOfTwo(t)
	s.welcome.Rank = 1
	s.welcome.Members[0].Local = "gnb-" + randomName() // no process listens at this address
	f := &follower{session: s, root: &wire{conn: a}, done: make(chan struct{})}
	go f.receive()
	go func() {
		time.Sleep(50 * time.Millisecond) // after the rank has dialled
		_ = (&wire{conn: b}).send(frameBye, statusText(ExitResumable))
	}()
	if err := f.meet(nil); err != nil || f.err != nil || f.status.Load() != ExitResumable {
		t.Errorf("%v, %v, status %d", err, f.err, f.status.Load())
	}
}

// A signal at a rank ends all ranks, including those that join later. It does so while rank 0 waits
// for ranks to join and while the ranks of rank 0's machine meet.
func TestSignalBeforeMeeting(t *testing.T) {
	for _, all := range []bool{false, true} {
		p := rendezvous(t, 3)
		lead := Lead(p[0])
		_, first := joined(t, p[1])
		until(t, first, frameBeat)
		var other *wire
		if all {
			_, other = joined(t, p[2])
			until(t, first, frameWelcome) // the machine's ranks do not meet rank 0 after this frame
		}
		if err := first.send(frameSignal, signalText(syscall.SIGTERM)); err != nil {
			t.Fatal(err)
		}
		if !all {
			_, other = joined(t, p[2])
		}
		for i, w := range []*wire{first, other} {
			if text := until(t, w, frameBye); statusIn(text) != ExitResumable {
				t.Errorf("rank %d is told to end with %s", i+1, text)
			}
		}
		err := lead.Ready(context.Background())
		if e, ok := errors.AsType[*Signalled](err); !ok || !strings.HasPrefix(e.What, "rank 1 (") || !strings.HasSuffix(e.What, ") received the signal terminated") {
			t.Errorf("%v", err)
		}
		lead.Leave(ExitResumable, time.Minute)
		lead.server.close()
	}
}

// If rank 0 ends before all ranks have met, it tells the other ranks its status.
func TestLeaveBeforeMeeting(t *testing.T) {
	for _, c := range []struct{ status, want int }{{ExitResumable, ExitResumable}, {1, 1}, {ExitLost, ExitLost}, {0, 0}} {
		p := rendezvous(t, 3)
		lead := Lead(p[0])
		_, first := joined(t, p[1])
		until(t, first, frameBeat)
		left := make(chan struct{})
		go func() {
			lead.Leave(c.status, time.Minute)
			close(left)
		}()
		if text := until(t, first, frameBye); statusIn(text) != c.want {
			t.Errorf("a rank that has joined is told to end with %s, want %d", text, c.want)
		}
		_, late := joined(t, p[2])
		if text := until(t, late, frameBye); statusIn(text) != c.want {
			t.Errorf("a late rank is told to end with %s, want %d", text, c.want)
		}
		<-left
	}
}

// The first rank of another machine, which waits for that machine's other ranks, notices that rank
// 0 has vanished, even if rank 0 has already sent a job.
func TestRankZeroVanishesInMeeting(t *testing.T) {
	testneed.Raced(t, "it waits for a silent rank")
	for _, job := range []bool{false, true} {
		l, err := listenLocal("gnb-"+randomName(), "unixpacket")
		if err != nil {
			t.Fatal(err)
		}
		a, b := net.Pipe()
		s := &Session{local: l, welcome: welcome{Rank: 1, Members: []Member{{Host: "a"}, {Host: "b"}, {Host: "b"}}, First: []int{0, 1}}}
		f := &follower{session: s, root: &wire{conn: a}, tasks: make(chan *Task, 1), done: make(chan struct{})}
		go f.receive()
		go func() {
			root := &wire{conn: b}
			if job {
				_ = root.sendJSON(frameJob, jobFrame{Number: 1, Silent: time.Minute})
				_ = root.send(frameBeat, []byte("stage starting"))
			}
			_ = b.Close()
		}()
		want := "rank 1 (b) ends, because rank 0 (a) vanished"
		if job {
			want += " at stage starting"
		}
		start := time.Now()
		if err := f.meet(nil); err != nil || f.err == nil || !strings.Contains(f.err.Error(), want) || time.Since(start) >= meetPatience {
			t.Errorf("%v, %v after %v; want %q", err, f.err, time.Since(start), want)
		}
	}
}

// hubOf records the calls that a hub gets about rank 1.
type hubOf []string

func (h *hubOf) Pulse(_ int, b []byte)   { *h = append(*h, "pulse "+string(b)) }
func (h *hubOf) Message(_ int, b []byte) { *h = append(*h, "message "+string(b)) }
func (h *hubOf) Ended(_ int, b []byte)   { *h = append(*h, "ended "+string(b)) }
func (h *hubOf) Signal(what string)      { *h = append(*h, what) }
func (h *hubOf) Lost(int, error)         { *h = append(*h, "lost") }
func (h *hubOf) Place() string           { return "" }

// Frames that a rank sends late, for a job in which rank 0 gave the rank up, do not count for the
// next job.
func TestLateFrames(t *testing.T) {
	a, b := net.Pipe()
	var hub hubOf
	s := &Session{welcome: welcome{Members: make([]Member, 2), First: []int{0}}, lost: make([]bool, 2), numbers: []int{0, 1}, giveUp: func(error) {}}
	s.peers = []*wire{nil, {conn: a}}
	s.task = &Task{number: 2, hub: &hub}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.listen(hello{Rank: 1}, s.peers[1])
	}()
	for _, number := range []int{1, 2} {
		task := &Task{number: number, root: &wire{conn: b}}
		text := []byte(strconv.Itoa(number))
		if err := errors.Join(task.Pulse(text), task.Message(text), task.tell(frameEnded, text)); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.Close()
	<-ended
	if got := strings.Join(hub, ", "); got != "pulse 2, message 2, ended 2, lost" {
		t.Errorf("%s", got)
	}
}

// A rank that ends while rank 0 still waits for others can be started again.
func TestRankJoinsAgain(t *testing.T) {
	p := rendezvous(t, 3)
	lead := Lead(p[0])
	_, first := joined(t, p[1])
	until(t, first, frameBeat)
	_ = first.conn.Close()
	_, again := joined(t, p[1])
	until(t, again, frameBeat)
	_, other := joined(t, p[2])
	until(t, other, frameWelcome)
	until(t, again, frameWelcome)
	_ = again.conn.Close()
	_ = lead.Ready(context.Background())
	lead.server.close()
}

// Rank 0 refuses a rank that joins after all ranks have met, with the reason.
func TestRankComesTooLate(t *testing.T) {
	s := newServer(trust{})
	s.joins, s.collected = make(chan arrival), make(chan struct{})
	close(s.collected)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(l)
	defer s.close()
	w, err := dial(context.Background(), l.Addr().String(), trust{}, hello{For: forJoin, Rank: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer w.conn.Close()
	if why := until(t, w, frameRefusal); !strings.Contains(string(why), "rank 3 () comes too late") {
		t.Errorf("%s", why)
	}
}

// noEngine is an engine that has only a name.
type noEngine struct{ Engine }

func (noEngine) Name() string { return "no engine" }

// A rank reports that rank 0 has vanished, unless the program may have ended normally.
func TestRankZeroGoneWithoutJob(t *testing.T) {
	testneed.Raced(t, "it waits for rank 0")
	defer func(d time.Duration) { idleSilence = d }(idleSilence)
	idleSilence = 100 * time.Millisecond
	for _, c := range []struct {
		name    string
		served  bool
		before  int32
		silent  bool
		engine  Engine
		status  int32
		message string
	}{
		{"before the first job", false, 0, false, nil, ExitLost, "vanished"},
		{"silent before the first job", false, 0, true, nil, ExitLost, "is silent"},
		{"after a job", true, 0, false, nil, 0, ""},
		{"after a job, with an engine", true, 0, false, noEngine{}, 0, "without a word to no engine, which may count that as a failure; end it with multigpu.Leave(0)"},
		{"silent after a job", true, 0, true, nil, ExitLost, "is silent"},
		{"after an interrupted job", true, ExitResumable, false, nil, ExitResumable, ""},
		{"after a failed job", true, exitFailed, false, nil, exitFailed, ""},
		{"after a job that lost a rank", true, ExitLost, false, nil, ExitLost, ""},
	} {
		a, b := net.Pipe()
		f := &follower{session: &Session{engine: c.engine, welcome: welcome{Rank: 1, Members: make([]Member, 2), First: []int{0}}}, root: &wire{conn: a}, done: make(chan struct{}), served: c.served}
		f.status.Store(c.before)
		if !c.silent {
			_ = b.Close()
		}
		f.receive()
		text := ""
		if f.err != nil {
			text = f.err.Error()
		}
		if f.status.Load() != c.status || !strings.Contains(text, c.message) || (c.message == "") != (text == "") {
			t.Errorf("%s: status %d, %q", c.name, f.status.Load(), text)
		}
		_ = a.Close()
		_ = b.Close()
	}
}

// A signal that arrives between the last rank's joining and the ranks' numbers ends the meeting at once.
func TestSignalBeforeNumbers(t *testing.T) {
	s := &Session{signal: "rank 1 (a) received the signal terminated"}
	ctx, giveUp := meetingTime()
	defer giveUp(nil)
	s.number([]hello{{Host: "a", World: 1, NumCPU: 1}}, []*wire{nil}, giveUp)
	if e, ok := errors.AsType[*Signalled](context.Cause(ctx)); !ok || e.What != s.signal {
		t.Errorf("the meeting goes on: %v", context.Cause(ctx))
	}
}
