package multigpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// inProcess runs the only worker in a goroutine. A panic of the handler becomes an error, but the
// goroutine cannot be killed.
type inProcess struct {
	page        *statusPage
	interrupted atomic.Bool
	mu          sync.Mutex
	beats       uint64
	lastBeat    time.Time
	meter       meter
}

func startInProcess(ctx context.Context, s Spec, job json.RawMessage) (*Group, error) {
	page := newStatusPage(1)
	w := &inProcess{page: page, lastBeat: time.Now()}
	g := &Group{spec: s, page: page, impl: w, done: make(chan struct{})}
	q := newQueue(s)
	p := &Process{
		World: 1, LocalWorld: 1, Machines: 1, Threads: cmp.Or(s.Threads, runtime.GOMAXPROCS(0)), RunID: s.RunID, Comm: collective.NewSingle(),
		job: job, files: s.Files, page: page, mine: page.rank(0),
		emit: func(lines []byte) error {
			for line := range bytes.Lines(lines) {
				q.event(0, bytes.Clone(bytes.TrimSpace(line)))
			}
			return nil
		},
	}
	p.SetPosition(-1, -1)
	p.clock = startClock(p.mine)
	p.mine.setState(stateEntered)

	var helpers sync.WaitGroup
	ended := make(chan struct{})
	helpers.Go(q.deliver)
	helpers.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		asked := ctx.Done()
		for {
			select {
			case <-tick.C:
				p.clock.beat()
			case <-asked:
				w.interrupt()
				asked = nil
			case <-ended:
				return
			}
		}
	})
	go func() {
		words := p.run(registered())
		p.clock.times()
		w.meter.saw(pssOf(os.Getpid()))
		_ = p.Comm.Close() // a Single's Close cannot fail
		close(ended)
		q.close()
		helpers.Wait()
		g.err = w.result(ctx, s, words)
		close(g.done)
	}()
	return g, nil
}

func (w *inProcess) result(ctx context.Context, s Spec, words *lastWords) error {
	epoch, step, stage := w.page.rank(0).position()
	var failed *WorkerError
	if words != nil {
		failed = &WorkerError{
			PID: os.Getpid(), Epoch: epoch, Step: step, Stage: stage,
			Reason: words.Error, Stack: words.Stack, Err: words.carried(), Cause: words.cause(),
		}
	}
	if w.interrupted.Load() {
		return interruption(s, w.page, nil, context.Cause(ctx), failed)
	}
	return asError(failed)
}

func (w *inProcess) interrupt() {
	w.interrupted.Store(true)
	atomic.StoreUint32(w.page.stop(), 1)
}

func (w *inProcess) kill()            { w.interrupt() }
func (w *inProcess) pid(int) int      { return os.Getpid() }
func (w *inProcess) waiting(int) bool { return false }

func (w *inProcess) age(int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.page.rank(0).beats(); b != w.beats {
		w.beats, w.lastBeat = b, time.Now()
	}
	return time.Since(w.lastBeat)
}

func (w *inProcess) pss() int64 {
	return w.meter.read(func() int64 { return pssOf(os.Getpid()) })
}

func (w *inProcess) peakPss() int64 { return w.meter.highest() }
