package collective_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/multigpu/collective"
)

var step = collective.Site{Kind: "step", Epoch: 1, Step: 2, At: "loop.go:7"}

// kept holds the connections that it made, so that a test can break them.
type kept struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (k *kept) pair(t testing.TB) (a, b net.Conn) {
	a, b = tcpPair(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns = append(k.conns, a, b)
	return a, b
}

// A connection that ends causes an error that names the ranks and the address at its other end. All
// other ranks get the reason too, including those that do not use the connection.
func TestConnectionEnds(t *testing.T) {
	for name, first := range map[string]func(c collective.Comm) error{
		"barrier": func(c collective.Comm) error { return c.Barrier(step) },
		"in a large message": func(c collective.Comm) error {
			send := make([][]byte, c.Size())
			for r := range send {
				send[r] = make([]byte, 8<<20)
			}
			_, err := c.AllToAll(step, send)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var k kept
			comms := openMeshOver(t, k.pair, 2, 1, 2)
			errs := make(chan error)
			for _, c := range comms[:3] { // the third machine does not join
				go func() { errs <- first(c) }()
			}
			waitUntilAll(t, comms[:3])
			addr := k.conns[3].RemoteAddr().String() // the second pair of connections joins machines 2 and 0
			if err := k.conns[2].Close(); err != nil {
				t.Fatal(err)
			}
			named := false
			for range 3 {
				err := <-errs
				if err == nil {
					t.Fatal("no error")
				}
				broken, ok := errors.AsType[*collective.ConnError](err)
				if ok && broken.FirstRank == 3 {
					named = strings.Contains(err.Error(), "ranks 3 to 4") && strings.Contains(err.Error(), "rank 0 ") && broken.At == step
				}
				if !ok && !errors.Is(err, collective.ErrAborted) {
					t.Errorf("got %v", err)
				}
			}
			if !named {
				t.Errorf("no error names ranks 3 to 4 (%s)", addr)
			}
			for _, c := range comms[:3] {
				if err := c.Barrier(step); err == nil {
					t.Error("a barrier after the failure gave no error")
				}
			}
			closeAll(t, comms)
		})
	}
}

// An abort by any rank reaches all machines together with its reason.
func TestAbortReachesMachines(t *testing.T) {
	for aborter := range 4 {
		t.Run(fmt.Sprint("rank ", aborter), func(t *testing.T) {
			comms := openMesh(t, 2, 2)
			errs := make(chan error)
			for r, c := range comms {
				if r != aborter {
					go func() { errs <- c.SumInt64(step, []int64{1}) }()
				}
			}
			var others []collective.Comm
			others = append(append(others, comms[:aborter]...), comms[aborter+1:]...)
			waitUntilAll(t, others)
			comms[aborter].Abort("the disk of rank 1 is full")
			for range 3 {
				if err := <-errs; !errors.Is(err, collective.ErrAborted) || !strings.Contains(err.Error(), "the disk of rank 1 is full") || strings.Count(err.Error(), "collective:") != 1 {
					t.Errorf("got %v", err)
				}
			}
			closeAll(t, comms)
		})
	}
}

func waitUntilAll(t *testing.T, comms []collective.Comm) {
	t.Helper()
	for _, c := range comms {
		for {
			if s, ok := c.Waiting(); ok {
				if s != step {
					t.Errorf("rank %d waits at %v", c.Rank(), s)
				}
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func closeAll(t *testing.T, comms []collective.Comm) {
	t.Helper()
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Errorf("closing rank %d: %v", c.Rank(), err)
		}
	}
}

// A peer that is not GraphNB, belongs to another run or is wired wrongly causes an error, and no
// rank waits for it.
func TestStrangersAtTheConnection(t *testing.T) {
	single := func(rank, world int, first []int, conns ...net.Conn) collective.Comm {
		c, err := collective.NewMachines(collective.Machines{Rank: rank, World: world, First: first, Local: collective.NewSingle(), Conns: conns})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	both := func(t *testing.T, want string, comms ...collective.Comm) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var all []string
		for _, c := range comms {
			wg.Go(func() {
				err := c.Barrier(step)
				mu.Lock()
				defer mu.Unlock()
				if err != nil { // a rank whose own connections are right may get no error
					all = append(all, err.Error())
				}
			})
		}
		wg.Wait()
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("got %q, want %q", all, want)
		}
		closeAll(t, comms)
	}
	t.Run("another protocol", func(t *testing.T) {
		a, b := tcpPair(t)
		if _, err := io.WriteString(b, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		both(t, "bytes that are not GraphNB's", single(0, 2, []int{0, 1}, nil, a))
	})
	t.Run("another division", func(t *testing.T) {
		a, b := tcpPair(t)
		c1, _ := tcpPair(t)
		both(t, "do not join the same run", single(0, 2, []int{0, 1}, nil, a), single(1, 3, []int{0, 1, 2}, b, nil, c1))
	})
	t.Run("wired to the wrong machine", func(t *testing.T) {
		ab, ba := tcpPair(t)
		ac, ca := tcpPair(t)
		bc, cb := tcpPair(t)
		f := []int{0, 1, 2}
		both(t, "do not join the same run", single(0, 3, f, nil, ac, ab), single(1, 3, f, ba, nil, bc), single(2, 3, f, ca, cb, nil))
	})
}

func TestNewMachinesRefuses(t *testing.T) {
	a, b := tcpPair(t)
	ok := collective.Machines{Rank: 0, World: 2, First: []int{0, 1}, Local: collective.NewSingle(), Conns: []net.Conn{nil, a}}
	for name, change := range map[string]func(m *collective.Machines){
		"no such rank":         func(m *collective.Machines) { m.Rank = 2 },
		"no machines":          func(m *collective.Machines) { m.First = nil },
		"not from 0":           func(m *collective.Machines) { m.First = []int{1} },
		"not ascending":        func(m *collective.Machines) { m.First = []int{0, 0} },
		"beyond the world":     func(m *collective.Machines) { m.First = []int{0, 2} },
		"no local":             func(m *collective.Machines) { m.Local = nil },
		"another local":        func(m *collective.Machines) { m.World = 3; m.First = []int{0, 2} },
		"no connections":       func(m *collective.Machines) { m.Conns = nil },
		"too few connections":  func(m *collective.Machines) { m.Conns = m.Conns[:1] },
		"one to itself":        func(m *collective.Machines) { m.Conns = []net.Conn{b, a} },
		"none to the other":    func(m *collective.Machines) { m.Conns = []net.Conn{nil, nil} },
		"too few for a split":  func(m *collective.Machines) { m.SplitConns = []net.Conn{nil} },
		"split, none to other": func(m *collective.Machines) { m.SplitConns = []net.Conn{nil, nil} },
	} {
		m := ok
		change(&m)
		if c, err := collective.NewMachines(m); err == nil {
			t.Errorf("%s: no error", name)
			_ = c.Close()
		}
	}
	c, err := collective.NewMachines(ok)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Split(step); err == nil || !strings.Contains(err.Error(), "SplitConns") {
		t.Errorf("splitting a Comm without spare connections gave %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.Write(nil); err == nil {
		t.Error("Close left a connection open")
	}
}

// Closing a Comm while its split Comm is in a collective closes the connections of its machine;
// after an abort, Close closes the rest.
func TestCloseWithSplitInCollective(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var k kept
	comms := openMeshOver(t, k.pair, 2, 1)
	splits := make([]collective.Comm, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			var err error
			if splits[r], err = c.Split(step); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ended := make(chan error)
	go func() { ended <- splits[0].Barrier(step) }()
	waitUntilAll(t, comms[:1])
	if err := comms[0].Close(); err == nil {
		t.Error("closing a Comm whose split Comm is in a collective gave no error")
	}
	if open := k.open(); open != len(k.conns)/2 {
		t.Errorf("%d of %d ends of connections are open; only those of the other machine should be", open, len(k.conns))
	}
	comms[0].Abort("it is closed")
	if err := <-ended; !errors.Is(err, collective.ErrAborted) {
		t.Errorf("%v", err)
	}
	closeAll(t, comms)
	if open := k.open(); open != 0 {
		t.Errorf("%d connections are open", open)
	}
}

// open returns the number of connection ends that this process has not closed.
func (k *kept) open() (n int) {
	for _, c := range k.conns {
		if _, err := c.Write(nil); !errors.Is(err, net.ErrClosed) {
			n++
		}
	}
	return n
}

// Close leaves neither goroutines nor connections behind.
func TestMachinesLeaveNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var k kept
	comms := openMeshOver(t, k.pair, 2, 1)
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			if _, err := c.Split(step); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	closeAll(t, comms)
	for _, c := range k.conns {
		if _, err := c.Write(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection is still open: %v", err)
		}
	}
	runtime.GC()
}

// gated is a connection that sends nothing until its channel open is closed.
type gated struct {
	net.Conn
	open chan struct{}
}

func (g gated) Write(b []byte) (int, error) {
	<-g.open
	return g.Conn.Write(b)
}

// A machine that ends after its last collective causes no failure on a machine that still waits in
// that collective for a third machine.
func TestMachineEndsBeforeOthers(t *testing.T) {
	open := make(chan struct{})
	pairs := 0
	comms := openMeshOver(t, func(t testing.TB) (a, b net.Conn) {
		a, b = tcpPair(t)
		pairs++
		if pairs == 3 { // the connection between machines 2 and 1
			a = gated{a, open}
		}
		return a, b
	}, 1, 1, 1)
	errs := make([]chan error, 3)
	for r, c := range comms {
		errs[r] = make(chan error, 1)
		go func() { errs[r] <- c.Barrier(step) }()
	}
	if err := <-errs[0]; err != nil {
		t.Fatal(err)
	}
	if err := comms[0].Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-errs[1]:
		close(open)
		t.Fatalf("rank 1 does not wait for rank 2: %v", err)
	case <-time.After(200 * time.Millisecond): // time for rank 1 to notice that rank 0 has ended
	}
	close(open)
	for _, r := range []int{1, 2} {
		if err := <-errs[r]; err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	// A later collective fails, because it needs the machine that has ended.
	if err := comms[1].Barrier(step); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("a barrier after rank 0 ended returned %v", err)
	}
	closeAll(t, comms[1:])
}
