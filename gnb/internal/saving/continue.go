package saving

import (
	"fmt"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Continue gives c, the configuration of a run that resumes the one with configuration old after a
// step, that run's name, and records the changed settings in it. It returns notes for the user, and
// whether something changed that the program is made of.
func Continue(c *runs.Config, old runs.Config, step int64) (notes []string, changed bool) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	d := Compare(old, *c)
	what := d.All()
	c.ID, c.Created, c.Changes, c.Restarts = old.ID, old.Created, old.Changes, old.Restarts
	if old.Identity != nil && old.Identity.Library != c.Identity.Library {
		note("it was begun with GraphNB %s and is resumed with %s: results may not be the same to the bit", old.Identity.Library, c.Identity.Library)
	}
	if len(d.Made) > 0 {
		note("changed on the way: %s", phrase.Clauses(d.Made))
		changed = true
	}
	if old.Device != c.Device {
		note("its device was %s and is %s: results will agree closely, not to the bit", old.Device, c.Device)
	}
	before := ""
	if d.Unrecorded {
		note("which data and code the run had was not recorded; they are taken to be these")
		what = append(what, "which data and code the run had was not recorded until then")
	} else {
		before = old.Identity.Run
	}
	if len(what) > 0 {
		c.Changes = append(slices.Clone(c.Changes), runs.Change{When: time.Now().UTC().Truncate(time.Second), Step: step, What: what, Before: before})
	}
	return notes, changed
}
