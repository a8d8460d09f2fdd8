package temporal

import (
	"cmp"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/internal/philox"
)

// DrawOptions configure a [Drawer]. The zero value draws one destination uniformly.
type DrawOptions struct {
	// Count is the number of negatives of an event; 0 means 1.
	Count int
	// History is the share of them, from 0 to 1, that are earlier destinations of the event's source: one is as likely as it was frequent. A source
	// without another one has others instead. 0 means none.
	History float64
	// Strict excludes the destinations of all events with the event's source and time, and not the event's own alone.
	Strict bool
}

// Drawer draws negatives of events for training: destinations that exist at the event's moment, which are those of the events
// until the event, without nodes that exist from a later time on ([Events].NodeTimes). What it draws is a function of the seed, the epoch and the event, so it does not depend on workers, threads or the order of
// calls; nothing after the event's time is looked at. It is read-only, and safe for concurrent use.
type Drawer struct {
	e *Events
	o DrawOptions
	// dst are the destinations in the order of the events at which they first exist, rank their places, and known [events] how many of them
	// exist at an event.
	dst   []int32
	rank  []int32 // by node; -1 for one that is no destination
	known []int32
}

// NewDrawer returns a drawer of the negatives of these events. Cost: a pass over them, 4 bytes for each and 8 for each node.
func NewDrawer(e *Events, o DrawOptions) *Drawer {
	if o.Count == 0 {
		o.Count = 1
	}
	d := &Drawer{e: e, o: o, rank: slices.Repeat([]int32{-1}, e.Nodes), known: make([]int32, e.Len())}
	from := make([]int32, e.Nodes) // the event at which a destination first exists
	for i, v := range e.Dst {
		if d.rank[v] < 0 {
			d.rank[v], from[v] = 0, int32(i)
			if !e.Exists(v, e.Time[i]) {
				from[v] = int32(sort.Search(e.Len(), func(k int) bool { return e.Time[k] >= e.NodeTimes[v] }))
			}
			d.dst = append(d.dst, v)
		}
	}
	slices.SortStableFunc(d.dst, func(u, v int32) int { return cmp.Compare(from[u], from[v]) })
	for r, v := range d.dst {
		d.rank[v] = int32(r)
	}
	for i, r := 0, 0; i < e.Len(); i++ {
		for r < len(d.dst) && int(from[d.dst[r]]) <= i {
			r++
		}
		d.known[i] = int32(r)
	}
	return d
}

// drawSite separates the draws of a Drawer from others for links.
const drawSite = 8

// drawsOfStream is the number of negatives that are drawn from one counter, of whose draws each takes at most triesOfEarlier + 2.
const drawsOfStream = 4096

// Append appends the negatives of an event in an epoch of a run with this seed, and returns the extended slice. The same destination can
// be drawn twice. There are none if no other destination exists at the event's moment, as for the first event of a stream.
func (d *Drawer) Append(to []int32, seed uint64, epoch, event int) []int32 {
	excluded := d.excluded(event)
	n := int(d.known[event]) // candidates: destinations that exist, without the excluded ones
	for _, r := range excluded {
		if r < d.known[event] {
			n--
		}
	}
	if n == 0 {
		return to
	}
	of := 0
	if d.o.History > 0 {
		of = int(min(d.o.History, 1)*float64(d.o.Count) + 0.5)
	}
	var stream philox.Stream
	var past []int32
	if of > 0 {
		past = d.e.Before(d.e.Src[event], event, -1)
	}
	for k := range d.o.Count {
		if k%drawsOfStream == 0 {
			stream = philox.NewStream(seed, int64(event), k/drawsOfStream, philox.C3(philox.Links, drawSite, epoch))
		}
		if k < of {
			if v, ok := d.earlier(&stream, past, event, excluded); ok {
				to = append(to, v)
				continue
			}
		}
		to = append(to, d.uniform(&stream, n, excluded))
	}
	return to
}

// excluded returns the ranks of the destinations that are no negatives of an event, ascending.
func (d *Drawer) excluded(event int) []int32 {
	all := []int32{d.rank[d.e.Dst[event]]}
	if !d.o.Strict {
		return all
	}
	u, t := d.e.Src[event], d.e.Time[event]
	own := d.e.EventsOf(u)
	for i := sort.Search(len(own), func(i int) bool { return d.e.Time[own[i]] >= t }); i < len(own) && d.e.Time[own[i]] == t; i++ {
		if e := own[i]; d.e.Src[e] == u {
			all = append(all, d.rank[d.e.Dst[e]])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// uniform draws one of the n destinations that exist and are not excluded.
func (d *Drawer) uniform(stream *philox.Stream, n int, excluded []int32) int32 {
	r := int32(philox.Bounded(stream.Next(), uint32(n)))
	for _, x := range excluded { // they ascend, so each pushes the place behind it on
		if x > r {
			break
		}
		r++
	}
	return d.dst[r]
}

// triesOfEarlier is how often an earlier destination is drawn before all of them are looked at.
const triesOfEarlier = 8

// earlier draws the destination of an earlier event of the source; ok is false if all are excluded.
func (d *Drawer) earlier(stream *philox.Stream, past []int32, event int, excluded []int32) (v int32, ok bool) {
	u := d.e.Src[event]
	allowed := func(i int32) bool {
		_, out := slices.BinarySearch(excluded, d.rank[d.e.Dst[i]])
		return d.e.Src[i] == u && !out && d.rank[d.e.Dst[i]] < d.known[event]
	}
	if len(past) == 0 {
		return 0, false
	}
	for range triesOfEarlier {
		if i := past[philox.Bounded(stream.Next(), uint32(len(past)))]; allowed(i) {
			return d.e.Dst[i], true
		}
	}
	n := uint32(0)
	for _, i := range past {
		if allowed(i) {
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	k := philox.Bounded(stream.Next(), n)
	for _, i := range past {
		if !allowed(i) {
			continue
		}
		if k == 0 {
			return d.e.Dst[i], true
		}
		k--
	}
	return 0, false
}
