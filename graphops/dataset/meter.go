package dataset

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// meter is how far something long has come. Its methods may be called by several threads,
// and on a nil meter; report is called by one at a time, with what only grows.
type meter struct {
	ctx    context.Context
	report func(done, total int64) // nil: nobody asks
	every  time.Duration           // the shortest time between two reports

	total, done atomic.Int64
	mu          sync.Mutex
	told        time.Time
}

// add says that so much more is done, and whether the rest is wanted still.
func (m *meter) add(n int) bool {
	if m == nil {
		return true
	}
	m.done.Add(int64(n))
	if m.report != nil && m.mu.TryLock() {
		if now := time.Now(); now.Sub(m.told) >= m.every {
			m.told = now
			m.report(min(m.done.Load(), m.total.Load()), m.total.Load())
		}
		m.mu.Unlock()
	}
	return m.ctx.Err() == nil
}

// expect says how much there is to do.
func (m *meter) expect(total int64) {
	if m != nil {
		m.total.Store(total)
	}
}

// end says that all is done.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if total := m.total.Load(); m.report != nil && total > 0 {
		m.report(total, total)
	}
}

// err is why the rest is not wanted.
func (m *meter) err() error {
	if m == nil {
		return nil
	}
	return m.ctx.Err()
}
