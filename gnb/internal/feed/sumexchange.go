package feed

import (
	"github.com/graphnb/graphnb/multigpu/collective"
)

// sharedExchange is an exchange between ranks that share memory; it implements [tensor.SharedExchange].
type sharedExchange struct{ *exchange }

// Shares reports whether exchanges are SharedExchanges.
func (e *Exchanger) Shares() bool { return e.o.Mover == nil && collective.SharesMemory(e.o.Comm) }

// Rank implements [tensor.SharedExchange].
func (x sharedExchange) Rank() int { return x.e.o.Comm.Rank() }

// own makes a matrix ready to be written, and returns n rows of this rank there.
func (x sharedExchange) own(s *shared, stage string, n int) ([]float32, error) {
	if err := x.write(s, stage, x.room); err != nil {
		return nil, err
	}
	return x.of(s, x.Rank())[:n*x.cols], nil
}

// Rows implements [tensor.SharedExchange].
func (x sharedExchange) Rows() ([]float32, error) {
	x.summed = false
	return x.own(&x.mine, x.stage(), x.exchange.halo.Own)
}

// Parts implements [tensor.SharedExchange].
func (x sharedExchange) Parts() ([][]float32, error) {
	h, e := x.exchange.halo, x.e
	if !x.summed {
		if err := x.readable(&x.mine, x.stage(), "rows of a batch"); err != nil {
			return nil, err
		}
		x.summed, x.back = true, true
		for _, from := range h.From {
			e.moved.Add(int64(4 * x.cols * len(from)))
		}
	}
	rows := make([][]float32, e.o.Comm.Size())
	for r := range rows {
		rows[r] = x.of(&x.mine, r)
	}
	return rows, nil
}

// Grads implements [tensor.SharedExchange].
func (x sharedExchange) Grads() ([]float32, error) {
	return x.own(&x.spread, x.stage(), x.exchange.halo.Sums.Halo.Own)
}

// Table implements [tensor.SharedExchange].
func (x sharedExchange) Table() ([]float32, []int32, error) {
	if err := x.readable(&x.spread, x.stage(), "gradients of a batch's rows"); err != nil {
		return nil, nil, err
	}
	h := &x.exchange.halo.Sums.Halo
	x.at = x.at[:0]
	first := func(r int) int32 { return int32(r * (x.room / x.cols)) }
	for d := range h.Own {
		x.at = append(x.at, first(x.Rank())+int32(d))
	}
	for r, from := range h.From {
		for _, d := range from {
			x.at = append(x.at, first(r)+d)
		}
		x.e.moved.Add(int64(4 * x.cols * len(from)))
	}
	return x.spread.Data(), x.at, nil
}
