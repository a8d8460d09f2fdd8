package collective_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// worlds returns the world sizes that every collective runs with: 1 to 8, and some of them in a quick run.
func worlds() []int {
	if testing.Short() && !testneed.UnderRace() {
		return []int{1, 2, 5}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8}
}

// chanLink is a Link between goroutines.
type chanLink struct {
	rank    int
	pipes   [2][][]chan []byte // indexed by channel, from, to
	channel int
	aborted chan struct{}
	abort   *sync.Once
	bytes   *atomic.Int64 // bytes that all ranks have sent
	closed  bool
}

func chanLinks(world int) []*chanLink {
	links := make([]*chanLink, world)
	var pipes [2][][]chan []byte
	for c := range pipes {
		for range world {
			to := make([]chan []byte, world)
			for r := range to {
				to[r] = make(chan []byte, 64)
			}
			pipes[c] = append(pipes[c], to)
		}
	}
	bytes := &atomic.Int64{}
	for r := range links {
		links[r] = &chanLink{rank: r, pipes: pipes, aborted: make(chan struct{}), abort: &sync.Once{}, bytes: bytes}
	}
	return links
}

func (l *chanLink) Rank() int    { return l.rank }
func (l *chanLink) Size() int    { return len(l.pipes[0]) }
func (l *chanLink) Close() error { l.closed = true; return nil }
func (l *chanLink) Abort()       { l.abort.Do(func() { close(l.aborted) }) }

func (l *chanLink) Split() collective.Link {
	s := *l
	s.channel = 1
	return &s
}

func (l *chanLink) Run(steps ...collective.Step) error {
	pipes := l.pipes[l.channel]
	for _, step := range steps {
		send, recv, err := step()
		if err != nil {
			return err
		}
		for to, b := range send {
			if to %= l.Size(); to != l.rank && len(b) > 0 {
				l.bytes.Add(int64(len(b)))
				select {
				case pipes[l.rank][to] <- append([]byte{}, b...):
				case <-l.aborted:
					return errors.New("aborted")
				}
			}
		}
		for from, b := range recv {
			if from %= l.Size(); from != l.rank && len(b) > 0 {
				select {
				case got := <-pipes[from][l.rank]:
					if len(got) != len(b) {
						return errors.New("a message of another length")
					}
					copy(b, got)
				case <-l.aborted:
					return errors.New("aborted")
				}
			}
		}
	}
	return nil
}

func TestLinked(t *testing.T) {
	commtest.Run(t, worlds(), func(t *testing.T, world int) []collective.Comm {
		comms := make([]collective.Comm, world)
		for r, l := range chanLinks(world) {
			comms[r] = collective.NewLinked(l)
		}
		return comms
	})
}

// A sum sends the bytes of one partial sum per rank, however many virtual ranks a rank has.
func TestLinkedSendsPartialSums(t *testing.T) {
	const world, n = 4, 100_000
	for _, virtual := range []int{1, 8} {
		links := chanLinks(world)
		var before, after int64
		var wg sync.WaitGroup
		for r, l := range links {
			wg.Go(func() {
				c := collective.NewLinked(l)
				red, err := c.NewReducer(collective.Site{Kind: "reducer"}, n, virtual)
				if err == nil {
					err = c.Barrier(collective.Site{Kind: "start"})
				}
				if r == 0 {
					before = l.bytes.Load()
				}
				if err == nil {
					err = c.Barrier(collective.Site{Kind: "go"})
				}
				if err == nil {
					_, err = red.Reduce(collective.Site{Kind: "step"})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		after = links[0].bytes.Load()
		data := int64(2 * (world - 1) * 4 * n) // every element leaves each rank and reaches each rank, except for the rank's own share
		if got := after - before; got < data || got > data+100_000 {
			t.Errorf("%d virtual ranks: %d bytes were sent, want %d and headers", virtual, got, data)
		}
	}
}

// closeBesideSplit splits the Comms of two ranks and closes rank 0's while its split Comm waits in a barrier
// that rank 1 does not join. The barrier's error arrives on the returned channel.
func closeBesideSplit(t *testing.T, comms []collective.Comm) <-chan error {
	t.Helper()
	site := collective.Site{Kind: "step"}
	splits := make([]collective.Comm, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			var err error
			if splits[r], err = c.Split(site); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ended := make(chan error)
	go func() { ended <- splits[0].Barrier(site) }()
	for {
		if _, waits := comms[0].Waiting(); waits {
			break
		}
		runtime.Gosched()
	}
	if err := comms[0].Close(); err == nil || !strings.Contains(err.Error(), "while a collective is under way") {
		t.Errorf("Close returned %v", err)
	}
	return ended
}

// Close during a collective of the split Comm frees the link and reports that collective; a second
// Close, after the collective has ended, succeeds.
func TestLinkedClosesBesideSplit(t *testing.T) {
	site := collective.Site{Kind: "step"}
	links := chanLinks(2)
	comms := []collective.Comm{collective.NewLinked(links[0]), collective.NewLinked(links[1])}
	ended := closeBesideSplit(t, comms)
	if !links[0].closed {
		t.Error("the link is open")
	}
	if err := comms[0].Barrier(site); !errors.Is(err, collective.ErrClosed) {
		t.Errorf("a collective after Close returned %v", err)
	}
	comms[0].Abort("the end")
	if err := <-ended; !errors.Is(err, collective.ErrAborted) {
		t.Errorf("the collective under way: %v", err)
	}
	if err := comms[0].Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
