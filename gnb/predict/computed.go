package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// computed are the rows of a layer of all nodes, by place. Those of a node change while no call reads them ([Predictor.read]).
type computed struct {
	layer, cols int
	rows        []float32
}

func (c *computed) of(place int32) []float32 { return c.rows[int(place)*c.cols:][:c.cols:c.cols] }

// errStale is the error of a call that would read rows that have changed since it began. It begins again.
var errStale = errors.New("the rows are those of another state")

// state returns the current state.
func (p *Predictor) state() *state {
	p.states.RLock()
	defer p.states.RUnlock()
	return p.current
}

// read allows to read the rows of a state until free is called, unless they have changed.
func (p *Predictor) read(st *state) (free func(), err error) {
	if st.own {
		return func() {}, nil
	}
	p.states.RLock()
	if p.current != st {
		p.states.RUnlock()
		return nil, errStale
	}
	return p.states.RUnlock, nil
}

// call makes a call by the current state.
func (p *Predictor) call(do func(st *state) error) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	for {
		if err := do(p.state()); !errors.Is(err, errStale) {
			return err
		}
	}
}

// stepPlaces is the number of nodes of a step of precompute. No row depends on it.
const stepPlaces = 512

// precompute computes the rows of Options.Precompute.
func (p *Predictor) precompute(ctx context.Context) error {
	if p.o.Precompute == 0 {
		return nil
	}
	rows, err := p.computeAll(ctx, p.current)
	if err != nil {
		return err
	}
	p.current.rows = rows
	return nil
}

// computeAll computes the rows of layer Options.Precompute of all nodes of a state, layer by layer.
func (p *Predictor) computeAll(ctx context.Context, st *state) (*computed, error) {
	var parts [][2]int32 // places, of the nodes that there are
	for typ := range p.types() {
		lo, hi := int32(p.first[typ]), int32(p.first[typ]+st.count(typ))
		for ; lo < hi; lo += stepPlaces {
			parts = append(parts, [2]int32{lo, min(lo+stepPlaces, hi)})
		}
	}
	workers := 1
	if p.o.Threads == 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	var under *computed
	for layer := range p.o.Precompute {
		next := &computed{layer: layer + 1, cols: p.widths[layer+1], rows: make([]float32, p.places()*p.widths[layer+1])}
		var below *state
		if under != nil {
			below = &state{p: p, rows: under, own: true}
		}
		all, within := errgroup.WithContext(ctx)
		all.SetLimit(workers)
		for _, part := range parts {
			all.Go(func() error {
				lo, hi := part[0], part[1]
				places := make([]int32, hi-lo)
				for i := range places {
					places[i] = lo + int32(i)
				}
				return p.rowsOf(within, span{layer, layer + 1}, below, st.over, places, next.rows[int(lo)*next.cols:int(hi)*next.cols])
			})
		}
		if err := cmp.Or(all.Wait(), ctx.Err()); err != nil {
			return nil, fmt.Errorf("predict: computing layer %d of all nodes: %w", layer+1, inside{err})
		}
		under = next
		p.sparing.Lock()
		delete(p.passes, span{layer, layer + 1}) // their memory is that of many at once
		p.sparing.Unlock()
	}
	return under, nil
}

// refresh computes the rows of layer Options.Precompute that the additions of next, which come after those of st, can change: by place,
// or all of them again if they are many.
func (p *Predictor) refresh(ctx context.Context, st, next *state) (some map[int32][]float32, all *computed, err error) {
	if p.reversed == nil {
		if p.reversed, err = p.source.outEdges(p.o.Threads); err != nil {
			return nil, nil, err
		}
	}
	places := next.changed(st, p.o.Precompute)
	if len(places) > next.over.total/8 {
		all, err = p.computeAll(ctx, next)
		return nil, all, err
	}
	cols := st.rows.cols
	out := make([]float32, len(places)*cols)
	err = p.rowsOf(ctx, span{0, p.o.Precompute}, nil, next.over, places, out)
	if limit := (*LimitError)(nil); errors.As(err, &limit) { // of all layers at once; layer by layer it is less
		all, err = p.computeAll(ctx, next)
		return nil, all, err
	}
	if err != nil {
		return nil, nil, err
	}
	some = make(map[int32][]float32, len(places))
	for i, place := range places {
		some[place] = out[i*cols : (i+1)*cols]
	}
	return some, nil, nil
}
