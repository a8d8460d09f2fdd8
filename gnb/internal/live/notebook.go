package live

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// notebook shows a panel in a cell: one output, updated in place.
type notebook struct {
	d       Display
	id      string
	painter painter
	said    io.Writer
	log     []string // the last lines
	*pump
}

func newNotebook(o Options) *notebook {
	n := &notebook{d: o.Display, said: o.Said, id: "gnb_" + gonbui.UniqueId()}
	if n.said == nil {
		n.said = os.Stdout
	}
	n.pump = newPump(time.Second/time.Duration(o.MaxFPS), n.frame)
	return n
}

func (n *notebook) Update(s Snapshot)      { n.update(s) }
func (n *notebook) Print(line string)      { n.print(line) }
func (n *notebook) Say(line string)        { n.say(line) }
func (n *notebook) Close(s Snapshot) error { return n.close(s, closeWait(&s)) }

func (n *notebook) frame(f frame) error {
	if err := n.write(f.said); err != nil {
		return err
	}
	n.log = append(n.log, f.lines...)
	n.log = n.log[max(len(n.log)-logLines, 0):]
	if !f.last {
		return n.d.Send(n.liveData(&f.s))
	}
	s, id := f.s, n.id // the final picture replaces the panel
	if s.stopped() {
		// The reason comes first, in place of the panel, and only once, because readers look for it
		// first.
		if err := n.d.Send(htmlData(n.id, reasonHTML(&s), reasonPlain(&s))); err != nil {
			return err
		}
		s.Detail, id = "", ""
	}
	paint := func() ([]byte, int, int, error) { return n.painter.PNG(&s) }
	if err := n.d.Send(lastData(id, plainLine(&s), paint)); err != nil {
		return err
	}
	if err := n.d.Send(htmlData("", tableHTML(&s, n.log), tablePlain(&s, n.log))); err != nil {
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
	charts, err := guarded(func() ([]drawing, error) { return n.painter.SVGs(s) })
	log := n.log
	if err != nil {
		charts, log = nil, append(log[:len(log):len(log)], err.Error())
	}
	return htmlData(n.id, liveHTML(s, charts, log), plainLine(s))
}

// guarded turns a panic of the plotting library into an error, because a missing picture must not
// end a training run.
func guarded[T any](draw func() (T, error)) (drawn T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the figure could not be drawn: %v", r)
		}
	}()
	return draw()
}
