package multigpu

import (
	"sync"
	"time"
)

// meterEvery is the shortest time between two measurements of memory.
const meterEvery = 500 * time.Millisecond

// A meter measures memory at most once per meterEvery, and spends at most a hundredth of the time
// on it, however often it is read: each measurement walks the page tables.
type meter struct {
	mu        sync.Mutex
	now, peak int64
	next      time.Time
}

// read returns a new or a recent result of look.
func (m *meter) read(look func() int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if start := time.Now(); start.After(m.next) {
		m.now = look()
		m.peak = max(m.peak, m.now)
		end := time.Now()
		m.next = end.Add(max(meterEvery*9/10, 100*end.Sub(start)))
	}
	return m.now
}

// saw records a value measured elsewhere.
func (m *meter) saw(v int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = max(m.peak, v)
}

// highest is the largest value seen.
func (m *meter) highest() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}
