package datasets

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// meter measures the progress of a generator, and has what else it is told. Its methods may be called by several threads,
// and on a nil meter; report is called by one thread at a time, with increasing values.
type meter struct {
	ctx    context.Context
	report func(done, total int64) // nil: no reports
	every  time.Duration           // the shortest time between two reports
	// toWrite draws the features when the dataset is written: see [LoadOptions].
	toWrite bool

	total, done atomic.Int64
	mu          sync.Mutex
	told        time.Time
}

// add reports that n more units are done, and returns whether to continue.
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

// expect sets the amount of work.
func (m *meter) expect(total int64) {
	if m != nil {
		m.total.Store(total)
	}
}

// end reports that all work is done.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if total := m.total.Load(); m.report != nil && total > 0 {
		m.report(total, total)
	}
}

// inMemory returns how many of the features of a node are drawn into memory: all, or none.
func (m *meter) inMemory(features int) int {
	if m != nil && m.toWrite {
		return 0
	}
	return features
}

// err returns the reason to stop.
func (m *meter) err() error {
	if m == nil {
		return nil
	}
	return m.ctx.Err()
}
