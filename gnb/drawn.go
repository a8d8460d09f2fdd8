package gnb

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// Bounds of what a program logs to look at.
const (
	mostNames = 24       // names
	eachDrawn = 32       // values of a name that are all kept; of later ones, as many each time their number doubles
	mostDrawn = 64 << 20 // bytes of a run's metrics that they take
)

// drawings is what a program has logged to look at.
type drawings struct {
	mu     sync.Mutex // held before that of the outbox
	counts map[string]int
	bytes  int
	full   bool                    // a sentence has told that bytes are too many
	later  map[string]func() error // sends the last value of a name that was left out
}

// drawable returns a function that draws a logged value, nil for one that is not to look at.
func drawable(v any) func() (runfile.Drawn, error) {
	if runfile.Draw == nil { // no package of the program draws
		return nil
	}
	return runfile.Draw(v)
}

// sendDrawn sends e with what draw draws, or keeps it until sync if many values of the name were sent.
func (o *outbox) sendDrawn(e runs.Event, name string, draw func() (runfile.Drawn, error)) error {
	d := &o.drawn
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts, d.later = map[string]int{}, map[string]func() error{}
	}
	n := d.counts[name]
	if n == 0 && len(d.counts) == mostNames {
		return fmt.Errorf("%q is the name of one more drawing than the %d that a run keeps; log several under one name, over steps", name, mostNames)
	}
	d.counts[name] = n + 1
	send := func() error {
		drawn, err := draw()
		if err != nil {
			return err
		}
		drawn.Name = name
		d.bytes += len(drawn.PNG)*4/3 + len(drawn.Areas) + 1024
		if d.bytes > mostDrawn {
			if d.full {
				return nil
			}
			d.full = true
			e.Kind, e.Text = runs.KindPrint, fmt.Sprintf("What this run logs to look at takes %d MiB of its metrics; %q and all later drawings are not kept. Log them less often.\n", mostDrawn>>20, name)
			return o.send(e)
		}
		e.Drawn = (*runs.Drawn)(&drawn)
		return o.send(e)
	}
	if !keptDrawing(n) {
		d.later[name] = send
		return nil
	}
	delete(d.later, name)
	return send()
}

// keptDrawing reports whether the n-th value of a name, from 0, is sent at once.
func keptDrawing(n int) bool {
	step := 1
	for n >= 2*eachDrawn*step {
		step *= 2
	}
	return n%step == 0
}

// sendLater sends the last values that were left out.
func (o *outbox) sendLater() error {
	o.drawn.mu.Lock()
	defer o.drawn.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(o.drawn.later)) {
		send := o.drawn.later[name]
		delete(o.drawn.later, name)
		if err := send(); err != nil {
			return err
		}
	}
	return nil
}
