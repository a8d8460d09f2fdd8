package sample

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/parallel"
)

// pickChunks takes one chunk after another, asks the picker about its destinations, and stores the
// picks and their counts.
func (s *Sampler) pickChunks(worker, _ int) {
	w := s.takeScratch(worker)
	for c := s.x.take(); c >= 0; c = s.x.take() {
		if !s.pickChunk(c, w) {
			w = &scratch{out: w.out} // the panic may have left bits set in seen
		}
	}
	s.scratch[worker] = w
}

// pickChunk returns false after a panic of the picker.
func (s *Sampler) pickChunk(chunk int, w *scratch) (ok bool) {
	x := &s.x
	lo, c := chunk*grain, &x.chunks[chunk]
	dst := x.dst[lo:min(lo+grain, len(x.dst))]
	w.hop.enter(&x.h)
	v := int32(-1)
	defer func() {
		if r := recover(); r != nil {
			c.err = s.recovered(r, x.h.Index, v)
			ok = false
		}
	}()
	timed := s.trees.timed
	if timed {
		w.touched += s.inTime.touch(s.rows[lo : lo+len(dst)])
	}
	for i := range dst {
		v = dst[i]
		if timed {
			x.e.hidden[lo+i] = 0
		}
		if r := s.rows[lo+i]; r.n > 0 {
			nbrs := s.g.Indices[r.at:][:r.n:r.n]
			w.hop.pos = r.at
			if all := s.g.EdgeWeights; all != nil {
				w.hop.weights = all[r.at:][:r.n:r.n]
			}
			if all := s.g.EdgeTimes; all != nil {
				w.hop.times = all[r.at:][:r.n:r.n]
			}
			if all := s.g.EdgeTypes; all != nil {
				w.hop.types = all[r.at:][:r.n:r.n]
			}
			tree := int32(0)
			if s.c.Disjoint {
				tree = x.trees[lo+i]
			}
			if timed {
				w.hop.row = s.inTime.row(r)
			}
			out, hidden := w.hop.pickFor(s.picker, &s.trees, tree, v, nbrs, w.out[:0:cap(w.out)])
			if timed {
				x.e.hidden[lo+i] = int32(hidden)
			}
			// Copying lets the picker return any slice, including one of its own.
			before := len(c.picks)
			c.picks = append(c.picks, out...)
			if c.err = s.sorted(x.h.Index, v, c.picks[before:], r.n); c.err != nil {
				return true
			}
			if len(out) > cap(w.out) {
				w.out = make([]int32, 0, 2*len(out))
			}
		}
		x.e.indptr[lo+i+1] = int64(len(c.picks))
	}
	c.edges = int64(len(c.picks))
	return true
}

// sorted checks that the picks of v are positions below n, and sorts them.
func (s *Sampler) sorted(hop int, v int32, picks []int32, n int) error {
	ascending, last := true, int32(0)
	for i, p := range picks {
		if uint(p) >= uint(n) {
			return &PickError{Picker: s.name, Hop: hop, Node: v, Err: fmt.Errorf(
				"returned position %d as pick %d of %d, but the node has %d in-neighbours: positions are 0 to %d", p, i, len(picks), n, n-1)}
		}
		ascending = ascending && p >= last
		last = p
	}
	if !ascending {
		slices.Sort(picks)
	}
	return nil
}

// span is a part of a slice, with both ends counted from 1, so that the zero value means that there
// is none yet.
type span struct{ from, to int }

// pickFrontier asks the frontier picker about all destinations, with the same
// result as pickChunk for each chunk.
func (s *Sampler) pickFrontier() error {
	x := &s.x
	dst, hop := x.dst, x.h.Index
	// Destination i's picks are all[spans[i].from-1 : spans[i].to-1].
	s.spans = resize(s.spans, len(dst))
	clear(s.spans)
	spans, all := s.spans, s.all[:0]
	var bad error
	pick := func(i int, positions []int32) {
		switch {
		case bad != nil:
		case i < 0 || i >= len(dst):
			bad = &PickError{Picker: s.name, Hop: hop, Node: -1, Err: fmt.Errorf("picked for destination %d, but there are %d destinations", i, len(dst))}
		case spans[i] != span{}:
			bad = &PickError{Picker: s.name, Hop: hop, Node: dst[i], Err: fmt.Errorf("picked twice for destination %d; put all picks of a destination into one call", i)}
		default:
			from := len(all)
			all = append(all, positions...)
			spans[i] = span{from + 1, len(all) + 1}
			bad = s.sorted(hop, dst[i], all[from:], s.rows[i].n)
		}
	}
	err := s.callFrontier(dst, pick)
	s.all = all
	if bad != nil {
		return bad
	}
	if err != nil {
		return err
	}
	for i := range x.chunks {
		c := &x.chunks[i]
		for d := i * grain; d < min((i+1)*grain, len(dst)); d++ {
			if p := spans[d]; p != (span{}) {
				c.picks = append(c.picks, all[p.from-1:p.to-1]...)
			}
			x.e.indptr[d+1] = int64(len(c.picks))
		}
		c.edges = int64(len(c.picks))
	}
	return nil
}

func (s *Sampler) callFrontier(dst []int32, pick func(int, []int32)) (err error) {
	h := s.x.h
	defer func() {
		if r := recover(); r != nil {
			err = s.recovered(r, h.Index, -1)
		}
	}()
	h.At(0)
	if err := s.c.Frontier.PickFrontier(&h, s.g, dst, pick); err != nil {
		return &PickError{Picker: s.name, Hop: h.Index, Node: -1, Err: fmt.Errorf("failed: %w", err)}
	}
	return nil
}

// recovered turns a picker's panic into an error. It re-panics for a fault in mapped memory, so
// that the caller's guard can name the file.
func (s *Sampler) recovered(r any, hop int, v int32) error {
	if err, ok := r.(error); ok {
		var fault interface{ Addr() uintptr }
		if errors.As(err, &fault) {
			panic(r)
		}
	}
	e := &PickError{Picker: s.name, Hop: hop, Node: v, Stack: debug.Stack()}
	if p, ok := r.(*parallel.Panic); ok {
		e.Stack = p.Stack
	}
	cause, ok := r.(error)
	if !ok {
		cause = fmt.Errorf("%v", r)
	}
	e.Err = fmt.Errorf("panicked%s: %w", panicSite(), cause)
	return e
}

// panicSite returns " at file:line" of the picker's innermost frame, for the deferred function that
// recovers its panic. It skips frames of the runtime and of this package.
func panicSite() string {
	const module = "github.com/graphnb/graphnb/"
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	for panicking := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime.") &&
			!strings.HasPrefix(f.Function, module+"internal/") && !strings.HasPrefix(f.Function, module+"graphops/sample."):
			return fmt.Sprintf(" at %s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}
