// Package screentest has what tests of package screen and of its users need: a display that records
// ([Tape]), a terminal that is emulated ([Terminal]), and checks of the HTML and pictures of cells.
package screentest

import (
	"sync"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// Tape is a Display that records the messages to a notebook.
type Tape struct {
	mu    sync.Mutex
	Sent  []*protocol.DisplayData
	times []time.Time
	Syncs int
	Fail  error         // error that Send returns, if not nil
	Stall chan struct{} // if not nil, Send waits until it is closed
}

// Send records d.
func (t *Tape) Send(d *protocol.DisplayData) error {
	t.mu.Lock()
	stall, fail := t.Stall, t.Fail
	t.Sent = append(t.Sent, d)
	t.times = append(t.times, time.Now())
	t.mu.Unlock()
	if stall != nil {
		<-stall
	}
	return fail
}

// Sync counts its calls.
func (t *Tape) Sync() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Syncs++
	return nil
}

// All returns what was sent.
func (t *Tape) All() []*protocol.DisplayData {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*protocol.DisplayData(nil), t.Sent...)
}

// When returns the times at which it was sent.
func (t *Tape) When() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]time.Time(nil), t.times...)
}

// Outputs returns a notebook's outputs: in order, and replaced by display id.
func (t *Tape) Outputs() []*protocol.DisplayData {
	var out []*protocol.DisplayData
	at := map[string]int{}
	for _, d := range t.All() {
		if i, ok := at[d.DisplayID]; ok && d.DisplayID != "" {
			out[i] = d
			continue
		}
		if d.DisplayID != "" {
			at[d.DisplayID] = len(out)
		}
		out = append(out, d)
	}
	return out
}

// HTMLOf returns the HTML of an output; "" if it has none.
func HTMLOf(d *protocol.DisplayData) string {
	s, _ := d.Data[protocol.MIMETextHTML].(string)
	return s
}

// PlainOf returns the plain text of an output; "" if it has none.
func PlainOf(d *protocol.DisplayData) string {
	s, _ := d.Data[protocol.MIMETextPlain].(string)
	return s
}
