package live

import (
	"io"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// ComparisonSink shows a [Comparison] while its runs train: a cell gets a picture, redrawn in
// place, a terminal its text, also in place, and a pipe the text again every few seconds. It draws
// only changes.
type ComparisonSink interface {
	// Update makes c the state to show, with text for viewers without pictures. The sink keeps c;
	// it must not change.
	Update(c Comparison, text string)
	// Close shows the final state, which stays, and ends the sink, as that of [Sink] does.
	Close(c Comparison, text string) error
}

// NewComparison makes the sink that fits the surroundings, as [New] does.
func NewComparison(o screen.Options) ComparisonSink {
	n := &comparisonSink{}
	least := time.Second / 5
	switch screen.Pick(&o) {
	case screen.Notebook:
		id := screen.NewID()
		n.draw = func(c *Comparison, text string, last bool) error {
			return screen.ShowPictureAs(id, last, func() (chart.Picture, error) { return ComparisonPNG(*c) }, text, o)
		}
	case screen.Terminal:
		t := &comparisonTerminal{screen.NewBlock(o.Out)}
		n.draw = t.frame
	case screen.Plain:
		least = comparisonEvery
		p := &comparisonPlain{out: o.Out}
		n.draw = p.frame
	default:
		n.draw = func(*Comparison, string, bool) error { return nil }
	}
	n.Pump = screen.NewPump(max(least, time.Second/time.Duration(o.MaxFPS)), n.frame)
	return n
}

// ShowComparison shows runs in the current cell, with text for viewers without pictures; outside a
// notebook it does nothing. It returns when the notebook has received the picture.
func ShowComparison(c Comparison, text string) error {
	return showComparison(c, text, screen.Options{})
}

func showComparison(c Comparison, text string, o screen.Options) error {
	return screen.ShowPicture(func() (chart.Picture, error) { return ComparisonPNG(c) }, text, o)
}

// comparisonEvery is the minimal interval between two blocks of text in a pipe, which keeps them
// all.
const comparisonEvery = 2 * screen.PlainEvery

// comparisonSink keeps the latest state; its pump decides when to draw it.
type comparisonSink struct {
	draw func(c *Comparison, text string, last bool) error

	mu     sync.Mutex
	latest Comparison
	text   string

	drawn string // the text of the last drawing; used by frame only
	*screen.Pump
}

func (n *comparisonSink) keep(c Comparison, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latest, n.text = c, text
}

func (n *comparisonSink) Update(c Comparison, text string) {
	n.keep(c, text)
	n.Changed()
}

func (n *comparisonSink) Close(c Comparison, text string) error {
	n.keep(c, text)
	return n.Pump.Close(c.State)
}

func (n *comparisonSink) frame(f screen.Frame) error {
	n.mu.Lock()
	c, text := n.latest, n.text
	n.mu.Unlock()
	if text == n.drawn && !f.Last {
		return nil
	}
	n.drawn = text
	return n.draw(&c, text, f.Last)
}

// comparisonTerminal shows a comparison as its text, in place.
type comparisonTerminal struct{ screen.Block }

func (t *comparisonTerminal) frame(_ *Comparison, text string, last bool) error {
	cols, rows := t.Size()
	out := screen.Lines(text)
	if !last {
		for i := range out {
			out[i] = screen.Fit(out[i], max(cols, 20)-1)
		}
	}
	return t.Draw(out, cols, rows, last)
}

// comparisonPlain writes a comparison's text each time it has changed.
type comparisonPlain struct {
	out  io.Writer
	told string
}

func (p *comparisonPlain) frame(_ *Comparison, text string, _ bool) error {
	if text == p.told {
		return nil
	}
	before := ""
	if p.told != "" {
		before = "\n"
	}
	p.told = text
	return screen.Write(p.out, before+strings.TrimRight(text, "\n")+"\n")
}
