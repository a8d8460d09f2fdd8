package multigpu

import (
	"sync"
	"time"
)

// meterEvery is how often memory is looked at, where that takes little.
const meterEvery = 500 * time.Millisecond

// A meter measures memory at most every meterEvery and for a hundredth of the time
// at most, however often it is read: a look walks the page tables.
type meter struct {
	mu        sync.Mutex
	now, peak int64
	next      time.Time
}

// read is what look said, now or a moment ago.
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

// saw takes in what somebody else measured.
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
