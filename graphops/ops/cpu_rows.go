package ops

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// Some returns rows [lo, hi) of them.
func (r Rows) Some(lo, hi int) Rows {
	if r.IDs != nil {
		r.IDs = r.IDs[lo:hi:hi]
	}
	r.From += lo
	r.N = hi - lo
	return r
}

// ids returns the rows' ids in the host's memory.
func (r Rows) ids() []int32 {
	if r.IDs == nil && r.Of != nil && !r.Of.RowsAreNodes() {
		return r.Of.SrcIDs()[r.From : r.From+r.N]
	}
	return r.IDs
}

// tableOf returns a buffer as a table whose rows are named by ids or, if there are none, numbered
// from rows.From.
func tableOf(table Buffer, rows Rows, cols int) simd.Rows {
	ids := rows.ids()
	if ids == nil {
		table = table.Slice(rows.From*cols, (rows.From+rows.N)*cols)
	}
	return simd.Rows{Data: table.Host, Half: table.Half, Stride: cols, Via: ids}
}

func (c *Processor) GatherRows(out, table Buffer, rows Rows, cols int) {
	t := tableOf(table, rows, cols)
	if t.Via == nil {
		c.eachRow(rows.N, cols, func(lo, hi int) {
			if t.Half != nil {
				simd.FromHalf(out.Host[lo*cols:hi*cols], t.Half[lo*cols:hi*cols])
			} else {
				copy(out.Host[lo*cols:hi*cols], t.Data[lo*cols:hi*cols])
			}
		})
		return
	}
	ids := t.Via
	t.Via = nil
	c.eachRow(rows.N, cols, func(lo, hi int) {
		gatherRows(out.Host[lo*cols:hi*cols], &t, cols, ids[lo:hi], out.N)
	})
}

func (c *Processor) SpMMRows(op Op, out Buffer, b *graphops.Block, w, table Buffer, rows Rows, cols int) {
	t := tableOf(table, rows, cols)
	if w.N == 0 {
		c.sumSources(op, out.Host, b, &t, cols)
		return
	}
	c.sumWeighted(out.Host, b, weights(w), 1, &t, cols, false)
}
