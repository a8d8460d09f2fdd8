package feed

import (
	"slices"

	"github.com/graphnb/graphnb/internal/simd"
)

// sharedExchange is an exchange between ranks that share memory; it implements [tensor.SharedExchange].
type sharedExchange struct{ *exchange }

// halo is the rows at rank r that other ranks own, and some memory behind them.
func (x sharedExchange) halo(s *shared, r int) []float32 {
	return s.Data()[(2*r+1)*x.room : (2*r+2)*x.room]
}

// all is the rows at this rank: its own, and behind them those that other ranks own.
func (x sharedExchange) all(s *shared) []float32 {
	n, middle := x.exchange.halo.Own, (2*x.e.o.Comm.Rank()+1)*x.room
	first := middle - n*x.cols
	for _, from := range x.exchange.halo.From {
		n += len(from)
	}
	return s.Data()[first : first+n*x.cols]
}

// theirs is the rows at rank r that this rank owns.
func (x sharedExchange) theirs(s *shared, r int) []float32 {
	h, c := x.exchange.halo, x.cols
	return x.halo(s, r)[h.At[r]*c : (h.At[r]+len(h.To[r]))*c]
}

// Sums implements [tensor.SharedExchange].
func (x sharedExchange) Sums() ([]float32, error) {
	stage := x.stage()
	if err := x.write(&x.sums, stage, 2*x.room); err != nil {
		return nil, err
	}
	return x.all(&x.sums), nil
}

// Collect implements [tensor.SharedExchange].
func (x sharedExchange) Collect(out, w []float32) error {
	e, h, c := x.e, x.exchange.halo, x.cols
	stage, kind := x.direction()
	if err := x.readable(&x.sums, stage, kind); err != nil {
		return err
	}
	mine := x.all(&x.sums)
	// All that happens to a row happens while it is in a cache.
	e.each(h.Own, c, func(lo, hi int) {
		copy(out[lo*c:hi*c], mine[lo*c:hi*c])
		for r, to := range h.To {
			if len(to) == 0 {
				continue
			}
			theirs := x.theirs(&x.sums, r)
			for i, _ := slices.BinarySearch(to, int32(lo)); i < len(to) && int(to[i]) < hi; i++ {
				d := int(to[i])
				simd.Add(out[d*c:(d+1)*c], theirs[i*c:(i+1)*c])
			}
		}
		if w != nil {
			for d := lo; d < hi; d++ {
				simd.Scale(out[d*c:(d+1)*c], out[d*c:(d+1)*c], w[d])
			}
		}
	})
	for _, to := range h.To {
		e.moved.Add(int64(4 * c * len(to)))
	}
	return nil
}

// Spread implements [tensor.SharedExchange].
func (x sharedExchange) Spread(d, w []float32) ([]float32, error) {
	e, h, c := x.e, x.exchange.halo, x.cols
	stage, kind := x.direction()
	if err := x.write(&x.spread, stage, 2*x.room); err != nil {
		return nil, err
	}
	all := x.all(&x.spread)
	mine := all[:h.Own*c]
	e.each(h.Own, c, func(lo, hi int) {
		if w == nil {
			copy(mine[lo*c:hi*c], d[lo*c:hi*c])
			return
		}
		for r := lo; r < hi; r++ {
			simd.Scale(mine[r*c:(r+1)*c], d[r*c:(r+1)*c], w[r])
		}
	})
	for r, to := range h.To {
		if len(to) == 0 {
			continue
		}
		theirs := x.theirs(&x.spread, r)
		e.each(len(to), c, func(lo, hi int) {
			simd.GatherRows(theirs[lo*c:hi*c], &simd.Rows{Data: mine, Stride: c}, c, to[lo:hi])
		})
	}
	if err := x.readable(&x.spread, stage, kind); err != nil {
		return nil, err
	}
	e.moved.Add(int64(4 * (len(all) - len(mine))))
	return all, nil
}
