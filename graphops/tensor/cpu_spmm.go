package tensor

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// spmmRows is the rows of a chunk of the graph loops: few, because degrees are
// skewed and a chunk is as long as its edges.
const spmmRows = 64

func (c *cpu) SpMM(op Op, out, arg Buffer, b *graphops.Block, h Buffer, cols int) {
	args := arg.Words()
	first := b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			o := out.Host[d*cols : (d+1)*cols]
			srcs := b.Indices[b.Indptr[d]:b.Indptr[d+1]]
			switch {
			case op != Max:
				sumGather(o, srcs, h.Host, cols)
				if op == Mean && len(srcs) > 1 {
					scale(o, 1/float32(len(srcs)))
				}
			case args == nil:
				maxGather(o, nil, srcs, 0, h.Host, cols)
			default:
				maxGather(o, args[d*cols:(d+1)*cols], srcs, int(b.Indptr[d]-first), h.Host, cols)
			}
		}
	})
}

// sumGather is o = Σ_i h[srcs[i],:], in the order of the edges.
func sumGather(o []float32, srcs []int32, h []float32, cols int) {
	if len(srcs) == 0 {
		clear(o)
		return
	}
	copy(o, h[int(srcs[0])*cols:][:len(o)])
	for _, s := range srcs[1:] {
		addTo(o, h[int(s)*cols:][:len(o)])
	}
}

func scale(o []float32, w float32) {
	for i := range o {
		o[i] *= w
	}
}

// maxGather is o = max_i h[srcs[i],:]; arg, if any, gets first+i.
func maxGather(o []float32, arg []uint32, srcs []int32, first int, h []float32, cols int) {
	if len(srcs) == 0 {
		clear(o)
		for i := range arg {
			arg[i] = ^uint32(0)
		}
		return
	}
	copy(o, h[int(srcs[0])*cols:][:len(o)])
	for i := range arg {
		arg[i] = uint32(first)
	}
	for e, s := range srcs[1:] {
		maxRow(o, arg, h[int(s)*cols:][:len(o)], uint32(first+1+e))
	}
}

// maxRow takes into o what is greater in v, or NaN, and notes e there. It picks
// by bits: which message wins is as good as random, and a branch here would be
// mispredicted at every other element.
func maxRow(o []float32, arg []uint32, v []float32, e uint32) {
	v = v[:len(o)]
	if arg == nil {
		for i := range o {
			m := greater(v[i], o[i])
			o[i] = math.Float32frombits(math.Float32bits(o[i])&^m | math.Float32bits(v[i])&m)
		}
		return
	}
	arg = arg[:len(o)]
	for i := range o {
		m := greater(v[i], o[i])
		o[i] = math.Float32frombits(math.Float32bits(o[i])&^m | math.Float32bits(v[i])&m)
		arg[i] = arg[i]&^m | e&m
	}
}

// greater is all ones where v > o or v is NaN, else 0.
func greater(v, o float32) uint32 {
	var gt, nan uint32
	if v > o {
		gt = 1
	}
	if v != v {
		nan = 1
	}
	return -(gt | nan)
}

func (c *cpu) SpMMGrad(op Op, dh, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	t := b.Transposed()
	args := arg.Words()
	parallel.For(c.threads, b.NumSrc, spmmRows, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			o := dh.Host[s*cols : (s+1)*cols]
			if !acc {
				clear(o)
			}
			for i := t.Indptr[s]; i < t.Indptr[s+1]; i++ {
				d := int(t.Dst[i])
				g := dOut.Host[d*cols : (d+1)*cols]
				switch op {
				case Sum:
					addTo(o, g)
				case Mean:
					addScaled(o, g, 1/float32(b.InDegree(d)))
				case Max:
					addWhere(o, g, args[d*cols:(d+1)*cols], uint32(t.Edge[i]))
				}
			}
		}
	})
}

// addWhere is o += g where arg is e.
func addWhere(o, g []float32, arg []uint32, e uint32) {
	g, arg = g[:len(o)], arg[:len(o)]
	for i := range o {
		var hit uint32
		if arg[i] == e {
			hit = 1
		}
		o[i] += math.Float32frombits(math.Float32bits(g[i]) & -hit)
	}
}

func (c *cpu) GatherSrc(msg Buffer, b *graphops.Block, h Buffer, cols int) {
	srcs := b.Indices[b.Indptr[0]:b.Indptr[b.NumDst]]
	c.eachRow(len(srcs), cols, func(lo, hi int) {
		for e := lo; e < hi; e++ {
			copy(msg.Host[e*cols:(e+1)*cols], h.Host[int(srcs[e])*cols:])
		}
	})
}

func (c *cpu) ScatterSrc(dh Buffer, b *graphops.Block, dMsg Buffer, cols int, acc bool) {
	t := b.Transposed()
	parallel.For(c.threads, b.NumSrc, spmmRows, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			o := dh.Host[s*cols : (s+1)*cols]
			if !acc {
				clear(o)
			}
			for _, e := range t.Edge[t.Indptr[s]:t.Indptr[s+1]] {
				addTo(o, dMsg.Host[int(e)*cols:][:len(o)])
			}
		}
	})
}

func (c *cpu) Segment(op Op, out, arg Buffer, b *graphops.Block, msg Buffer, cols int, acc bool) {
	args := arg.Words()
	first := b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			o := out.Host[d*cols : (d+1)*cols]
			from, to := int(b.Indptr[d]-first), int(b.Indptr[d+1]-first)
			if op == Max {
				var a []uint32
				if args != nil {
					a = args[d*cols : (d+1)*cols]
				}
				maxSegment(o, a, msg.Host, cols, from, to, acc)
				continue
			}
			w := float32(1)
			if op == Mean && to > from {
				w = 1 / float32(to-from)
			}
			if !acc {
				clear(o)
			}
			for e := from; e < to; e++ {
				if w == 1 {
					addTo(o, msg.Host[e*cols:(e+1)*cols])
				} else {
					addScaled(o, msg.Host[e*cols:(e+1)*cols], w)
				}
			}
		}
	})
}

func maxSegment(o []float32, arg []uint32, msg []float32, cols, from, to int, acc bool) {
	if acc {
		top := make([]float32, len(o))
		maxSegment(top, arg, msg, cols, from, to, false)
		addTo(o, top)
		return
	}
	if from == to {
		clear(o)
		for i := range arg {
			arg[i] = ^uint32(0)
		}
		return
	}
	copy(o, msg[from*cols:])
	for i := range arg {
		arg[i] = uint32(from)
	}
	for e := from + 1; e < to; e++ {
		maxRow(o, arg, msg[e*cols:(e+1)*cols], uint32(e))
	}
}

func (c *cpu) SegmentGrad(op Op, dMsg, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	args := arg.Words()
	first := b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			g := dOut.Host[d*cols : (d+1)*cols]
			from, to := int(b.Indptr[d]-first), int(b.Indptr[d+1]-first)
			for e := from; e < to; e++ {
				o := dMsg.Host[e*cols : (e+1)*cols]
				if !acc {
					clear(o)
				}
				switch op {
				case Sum:
					addTo(o, g)
				case Mean:
					addScaled(o, g, 1/float32(to-from))
				case Max:
					addWhere(o, g, args[d*cols:(d+1)*cols], uint32(e))
				}
			}
		}
	})
}
