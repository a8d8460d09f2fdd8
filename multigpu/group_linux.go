package multigpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// processes runs workers as processes.
type processes struct {
	spec     Spec
	group    string // the random value in the workers' environment
	page     *statusPage
	shared   *collective.Files
	status   *os.File
	life     *os.File // the writing end; it closes when the launcher ends
	children []*child
	queue    *queue

	exits    chan *child
	asked    chan struct{} // closed by interrupt
	killed   chan struct{} // closed by kill
	askOnce  sync.Once
	killOnce sync.Once
	ended    chan struct{} // closed when all workers are reaped
	mu       sync.Mutex    // guards the fields below, and the children's last beats
	meter    meter
	released bool // shared is unmapped
}

func startProcesses(ctx context.Context, s Spec, job json.RawMessage) (_ *Group, err error) {
	w := &processes{
		spec: s, group: randomID(), queue: newQueue(s), exits: make(chan *child, s.World),
		asked: make(chan struct{}), killed: make(chan struct{}), ended: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			w.abandon()
		}
	}()
	if err := w.makeFiles(); err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("multigpu: %w", err)
	}
	defer null.Close()
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("multigpu: %w", err)
	}
	defer lifeR.Close()
	w.life = lifeW
	in := inherited{
		null: null, life: lifeR, status: w.status, control: w.shared.Control, data: w.shared.Data,
		files: s.Files, env: environment(s, w.group, threadsFor(s, runtime.GOMAXPROCS(0))),
	}
	first := hello{World: s.World, RunID: s.RunID, Job: job}
	for _, f := range s.Files {
		first.Files = append(first.Files, f.Name())
	}
	line, err := json.Marshal(first)
	if err != nil {
		return nil, fmt.Errorf("multigpu: the job cannot be written as JSON: %w", err)
	}
	for rank := range s.World {
		if cause := context.Cause(ctx); cause != nil {
			return nil, &Interrupted{RunID: s.RunID, Epoch: -1, Step: -1, Cause: cause}
		}
		var c *child
		started := make(chan error)
		spawner() <- func() {
			var err error
			c, err = spawn(rank, in)
			started <- err
		}
		if err := <-started; err != nil {
			return nil, err
		}
		w.children = append(w.children, c)
	}
	line = append(line, '\n')
	g := &Group{spec: s, page: w.page, impl: w, done: make(chan struct{})}
	for _, c := range w.children {
		w.follow(c, line)
	}
	var helpers sync.WaitGroup
	helpers.Go(w.queue.deliver)
	helpers.Go(w.sample)
	go func() {
		end := w.supervise(ctx)
		close(w.ended)
		w.finish(&helpers)
		g.err = end
		close(g.done)
	}()
	return g, nil
}

func (w *processes) makeFiles() (err error) {
	if w.shared, err = collective.NewShared(w.spec.World); err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("gnb-status", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("multigpu: making the status page (memfd_create): %w", err)
	}
	w.status = os.NewFile(uintptr(fd), "gnb-status")
	if err := w.status.Truncate(int64(pageSize(w.spec.World))); err != nil {
		return fmt.Errorf("multigpu: making the status page: %w", err)
	}
	if w.page, err = mapStatus(w.status, w.spec.World); err != nil {
		return fmt.Errorf("multigpu: %w", err)
	}
	return nil
}

// abandon cleans up after a failed start.
func (w *processes) abandon() {
	for _, c := range w.children {
		_ = c.proc.Kill() // it may have ended already
	}
	for _, c := range w.children {
		_, _ = c.proc.Wait()
		c.closeFiles()
	}
	if len(w.children) > 0 {
		sweep(w.group)
	}
	if w.page != nil {
		_ = unix.Munmap(w.page.mem)
	}
	w.closeFiles()
}

func (w *processes) closeFiles() {
	for _, f := range []*os.File{w.life, w.status} {
		if f != nil {
			_ = f.Close() // nothing was buffered
		}
	}
	if w.shared != nil {
		_ = w.shared.Close() // memory only
	}
}

// follow starts the goroutines that read a worker's output and wait for its end.
func (w *processes) follow(c *child, first []byte) {
	c.watch = newWatch(now())
	c.readers.Go(func() {
		readLines(c.stdout, func(line string) { w.queue.output(c.rank, "stdout", line) })
	})
	c.readers.Go(func() {
		defer close(c.stderrDone)
		readLines(c.stderr, func(line string) {
			for _, line := range c.tail.add(line) {
				w.queue.output(c.rank, "stderr", line)
			}
		})
	})
	c.readers.Go(func() {
		readEvents(c.events, func(line []byte) { w.queue.event(c.rank, line) })
	})
	c.readers.Go(func() {
		// The end of a worker that dies before it has read its job is noticed elsewhere.
		_, _ = c.events.Write(first)
	})
	go func() {
		c.state, _ = c.proc.Wait() // nil if waiting failed
		// The worker's last lines give the reason of its end. They are complete unless a process
		// that the worker started still holds the pipe.
		select {
		case <-c.stderrDone:
		case <-time.After(300 * time.Millisecond):
		}
		w.exits <- c
	}()
}

// finish frees everything after the last worker is reaped.
func (w *processes) finish(helpers *sync.WaitGroup) {
	sweep(w.group)
	patience := time.Now().Add(2 * time.Second)
	for _, c := range w.children {
		done := make(chan struct{})
		go func() {
			c.readers.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Until(patience)):
			// A process that left its environment behind still holds the pipes.
			_ = c.stdout.SetReadDeadline(time.Now())
			_ = c.stderr.SetReadDeadline(time.Now())
			<-done
		}
		c.closeFiles()
	}
	w.queue.close()
	helpers.Wait()
	w.page.mu.Lock() // before mu, as Group.Status does
	defer w.page.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum int64
	for r := range w.children {
		sum += atomic.LoadInt64(w.page.rank(r).i64(rankPss))
	}
	w.meter.saw(sum)
	// Later calls read a copy.
	kept := newStatusPage(w.spec.World)
	copy(kept.mem, w.page.mem)
	mapped := w.page.mem
	w.page.mem = kept.mem
	_ = unix.Munmap(mapped)
	w.closeFiles()
	w.released = true
}

func (w *processes) interrupt() { w.askOnce.Do(func() { close(w.asked) }) }
func (w *processes) kill()      { w.killOnce.Do(func() { close(w.killed) }) }

func (w *processes) pid(rank int) int { return w.children[rank].pid }

func (w *processes) waiting(rank int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released {
		return false
	}
	_, yes := w.shared.Waiting(rank)
	return yes
}

func (w *processes) age(rank int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now().Sub(w.children[rank].watch.lastBeat)
}

func (w *processes) pss() int64 {
	select {
	case <-w.ended:
		return 0
	default:
	}
	return w.meter.read(func() int64 {
		var sum int64
		for _, c := range w.children {
			sum += pssOf(c.pid)
		}
		return sum
	})
}

func (w *processes) peakPss() int64 { return w.meter.highest() }

// sample measures the workers' memory while they run.
func (w *processes) sample() {
	for wait := 200 * time.Millisecond; ; wait = meterEvery {
		select {
		case <-w.ended:
			return
		case <-time.After(wait):
		}
		w.pss()
	}
}

func signalName(s syscall.Signal) string { return fmt.Sprintf("signal %d (%v)", int(s), s) }
