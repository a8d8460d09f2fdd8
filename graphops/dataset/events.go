package dataset

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// The units of times that count since 1970: see [Metadata].TimeUnit.
const (
	Seconds      = "s"
	Milliseconds = "ms"
	Microseconds = "us"
	Nanoseconds  = "ns"
)

// checkEventsShape returns an error if the number of events, or what they need, contradicts the graph. It reads no values.
func (d *Dataset) checkEventsShape() error {
	switch {
	case d.Events == nil:
	case d.Meta.Part != nil:
		return errors.New("a part has no events of its own: the dataset above it lists those of all parts")
	case d.Graphs != nil:
		return errors.New("a dataset of many graphs has no events; each graph is one moment")
	case !d.HasEdgeTimes():
		return fmt.Errorf("there are %d events, but the edges have no times: set Graph.EdgeTimes, or leave Events out", len(d.Events))
	case int64(len(d.Events)) > d.Edges():
		return fmt.Errorf("%d events of %d edges: an event has an edge of its own", len(d.Events), d.Edges())
	}
	return checkTimeUnit(d.Meta.TimeUnit)
}

func checkTimeUnit(unit string) error {
	switch unit {
	case "", Seconds, Milliseconds, Microseconds, Nanoseconds:
		return nil
	}
	return fmt.Errorf("time_unit is %q; it is s, ms, us or ns since 1970, or absent", unit)
}

// eventsElsewhere reports whether servers alone have the list of events, as they have the edges.
func (m *Metadata) eventsElsewhere() bool {
	return m.Parts != nil && m.Parts.Servers != "" && m.Parts.NoTopology
}

func (d *Dataset) loadEvents(src source) error {
	n := d.Meta.NumEvents
	if n == 0 || d.Meta.eventsElsewhere() {
		return nil
	}
	a, label, err := openNPY(src, eventsFile, "num_events", n)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyInt64}, int(n)); err != nil {
		return err
	}
	d.Events = view[int64](a.data)
	return nil
}

// checkEventsMeta checks what metadata.json says of events.
func (m *Metadata) checkEventsMeta() error {
	switch {
	case m.NumEvents < 0 || m.NumEvents > m.NumEdges:
		return fmt.Errorf("num_events is %d for %d edges; each event has an edge of its own", m.NumEvents, m.NumEdges)
	case m.NumEvents > 0 && !m.EdgeTimes:
		return errors.New("num_events is set, but edge_times is not: an event has a time")
	}
	return checkTimeUnit(m.TimeUnit)
}

// checkEvents finds events that are no edges, that have the edge of another one, and times that do not ascend. The times of
// edges that parts alone have are not read.
func (d *Dataset) checkEvents(r *reading) error {
	if d.Events == nil {
		return nil
	}
	edges := d.Edges()
	var times []int64
	if d.Graph != nil {
		times = d.Graph.EdgeTimes
	}
	taken := make([]uint64, (edges+63)/64)
	for lo := 0; lo < len(d.Events); lo += checkStep {
		hi := min(lo+checkStep, len(d.Events))
		if err := r.next(8 * int64(hi-lo)); err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			e := d.Events[i]
			switch {
			case e < 0 || e >= edges:
				return d.wrong(eventsFile, "entry %d is %d; the positions of edges are 0 to %d", i, e, edges-1)
			case taken[e/64]>>(e%64)&1 != 0:
				return d.wrong(eventsFile, "entry %d is %d, the edge of an earlier event; each event has an edge of its own", i, e)
			case i > 0 && times != nil && times[e] < times[d.Events[i-1]]:
				return d.wrong(eventsFile, "entry %d: its edge has the time %d, and the event before it %d; events ascend in time", i, times[e], times[d.Events[i-1]])
			}
			taken[e/64] |= 1 << (e % 64)
		}
	}
	return nil
}

// keepEvents gives s, whose edges are some of d's, the events of those in the same order. now returns the position in s of an
// edge of d, -1 for one that is not there; it is asked in the order of positions.
func (d *Dataset) keepEvents(s *Dataset, now func(e int64) int64) {
	s.Events, s.Meta.NumEvents = nil, 0
	if d.Events == nil {
		return
	}
	// One pass over the edges, in order, finds the new positions of those of events.
	of := make([]uint64, (d.Edges()+63)/64)
	for _, e := range d.Events {
		of[e/64] |= 1 << (e % 64)
	}
	to, before := make([]int64, 0, len(d.Events)), make([]int64, len(of)) // by rank among the edges of events
	for w, word := range of {
		before[w] = int64(len(to))
		for ; word != 0; word &= word - 1 {
			to = append(to, now(int64(w*64+bits.TrailingZeros64(word))))
		}
	}
	s.Events = make([]int64, 0, len(d.Events))
	for _, e := range d.Events {
		rank := before[e/64] + int64(bits.OnesCount64(of[e/64]&(1<<(e%64)-1)))
		if at := to[rank]; at >= 0 {
			s.Events = append(s.Events, at)
		}
	}
	s.Meta.NumEvents = int64(len(s.Events))
}
