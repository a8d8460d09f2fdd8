package live

import (
	"sync"

	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// mailbox holds the latest snapshot of a run for the pump that draws it. Its users set Pump.
type mailbox struct {
	*screen.Pump

	latestMu sync.Mutex
	latest   Snapshot
	over     bool // latest is the final one
	textLen  int  // lines of Snapshot.Text that the pump has
}

// update makes s the snapshot to draw, and its new lines of text part of the log.
func (m *mailbox) update(s Snapshot) {
	if m.take(s, false) {
		m.Changed()
	}
}

// close makes s the last snapshot and waits until it is drawn; see [screen.Pump.Close].
func (m *mailbox) close(s Snapshot) error {
	m.take(s, true)
	return m.Pump.Close(s.State)
}

// take stores a copy of s, unless the final snapshot is stored already.
func (m *mailbox) take(s Snapshot, final bool) bool {
	s = s.own()
	m.latestMu.Lock()
	defer m.latestMu.Unlock()
	if m.over {
		return false
	}
	m.latest, m.over = s, final
	if len(s.Text) > m.textLen {
		for _, l := range s.Text[m.textLen:] {
			m.Print(l)
		}
		m.textLen = len(s.Text)
	}
	return true
}

// snapshot returns the latest snapshot.
func (m *mailbox) snapshot() Snapshot {
	m.latestMu.Lock()
	defer m.latestMu.Unlock()
	return m.latest
}
