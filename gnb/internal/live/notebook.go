package live

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// notebook shows a panel in a cell: one output, updated in place.
type notebook struct {
	d       screen.Display
	id      string
	painter painter
	said    io.Writer
	log     []string // the last lines

	drawnKey string    // of what was drawn and is shown
	drawnAt  time.Time // when it was shown
	mailbox
}

func newNotebook(o screen.Options) *notebook {
	n := &notebook{d: o.Display, said: o.Said, id: screen.NewID()}
	if n.said == nil {
		n.said = os.Stdout
	}
	n.Pump = screen.NewPump(time.Second/time.Duration(o.MaxFPS), n.frame)
	return n
}

func (n *notebook) Update(s Snapshot)      { n.update(s) }
func (n *notebook) Close(s Snapshot) error { return n.close(s) }

func (n *notebook) frame(f screen.Frame) error {
	if err := n.write(f.Said); err != nil {
		return err
	}
	n.log = append(n.log, f.Lines...)
	n.log = n.log[max(len(n.log)-logLines, 0):]
	s := n.snapshot()
	if !f.Last {
		if err := n.d.Send(n.liveData(&s)); err != nil {
			return err
		}
		return n.showDrawn(&s, false)
	}
	id := n.id // the final picture replaces the panel
	if s.stopped() {
		// The reason comes first, in place of the panel, and only once, because readers look for it
		// first.
		if err := n.d.Send(screen.HTMLData(n.id, reasonHTML(&s), reasonPlain(&s))); err != nil {
			return err
		}
		screen.Told(s.Detail)
		s.Detail, id = "", ""
	}
	last, areas := screen.LastData(id, Line(&s), func() (chart.Picture, error) { return n.painter.picture(&s) })
	if err := n.d.Send(last); err != nil {
		return err
	}
	if err := n.showDrawn(&s, true); err != nil {
		return err
	}
	if err := n.d.Send(screen.HTMLData("", tableHTML(n.id, &s, n.log, areas), tablePlain(&s, n.log))); err != nil {
		return err
	}
	return n.d.Sync()
}

// write adds lines below the panel.
func (n *notebook) write(said []string) error {
	for _, line := range said {
		if _, err := fmt.Fprintln(n.said, line); err != nil {
			return err
		}
	}
	return nil
}

// liveData returns the panel, without its picture if drawing it failed.
func (n *notebook) liveData(s *Snapshot) *protocol.DisplayData {
	charts, err := screen.Guarded(func() ([]drawing, error) { return n.painter.SVGs(s) })
	log := n.log
	if err != nil {
		charts, log = nil, append(log[:len(log):len(log)], err.Error())
	}
	return screen.HTMLData(n.id, liveHTML(n.id, s, charts, log), Line(s))
}
