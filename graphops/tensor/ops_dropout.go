package tensor

import (
	"math"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/philox"
)

// MaxDropouts is the maximum number of dropout calls in a pass: the random counters have 8 bits for
// the call site.
const MaxDropouts = 256

// maxDropoutCols is the number of columns for which a counter has draws: 2^16 blocks of 8.
const maxDropoutCols = 8 << 16

// Dropout sets each element to 0 with probability p and multiplies the others by 1/(1-p) if the
// pass trains; otherwise, or with p = 0, it returns x itself. With p = 1 everything is 0. The rows
// keep their space.
//
// The mask is a function of seed, epoch and step, the number of the call in the pass, the row's id
// ([Space.ID]) and the column: 16-bit lanes of Philox, dropped if the lane is below round(p·65536).
// So p is effective in steps of 2^-16, and a node has the same mask in every block, row, rank and
// thread. See [DropoutKey] for the bits. The mask is stored for the gradient as one bit per
// element.
//
// It panics if x has no space, if p is outside [0,1], and at the 257th call of a pass.
func (f *Fwd) Dropout(x *Tensor, p float64) *Tensor {
	f.check("Dropout", x)
	k, drops := f.dropoutKey(x, p)
	if !drops {
		return x
	}
	if x.sparse != nil {
		return f.sparseDropout(x, k)
	}
	if a := x.affine; a != nil && a.drop == nil {
		return f.lazy(x.rows, x.cols, x.sp, &affine{base: a.base, terms: a.terms, bias: a.bias, relu: a.relu, drop: &k})
	}
	f.dense(x)
	return f.drop(x, k)
}

// drop is Dropout of a tensor with elements.
func (f *Fwd) drop(x *Tensor, k ops.DropoutKey) *Tensor {
	n, c := x.rows, x.cols
	words := ops.MaskWords(n, c)
	mask := f.mem.get(words).buf(words)
	out := f.result(n, c, x.sp)
	f.be.Dropout(out.buf, mask, x.buf, n, c, k)
	return f.record(out, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { f.be.Mask(dx, d, mask, n, c, k.Scale, acc) })
	}, x)
}

// dropoutKey returns the key of the next call of Dropout, for a tensor like x, or false if nothing
// is dropped.
func (f *Fwd) dropoutKey(x *Tensor, p float64) (k ops.DropoutKey, drops bool) {
	if !(p >= 0 && p <= 1) {
		fail("Dropout", "p is %g; it must be a probability from 0 to 1", p)
	}
	if !f.cfg.Train {
		return k, false
	}
	site := f.sites
	f.sites++
	if site == MaxDropouts {
		fail("Dropout", "this is call %d of the pass, but a pass has draws for only %d; Reset starts another pass", site+1, MaxDropouts)
	}
	if x.sp == nil {
		fail("Dropout", "the tensor has no row space (it is %s); apply dropout to node rows, before an operation that mixes rows, or set their nodes with SetSpace", x.shape())
	}
	if x.cols > maxDropoutCols {
		fail("Dropout", "the tensor is %s, but there are draws for only %d columns", x.shape(), maxDropoutCols)
	}
	if p == 0 {
		return k, false
	}
	k = ops.DropoutKey{
		Space:     x.sp,
		Seed:      f.cfg.Seed,
		Step:      f.cfg.Step,
		C3:        philox.C3(philox.Dropout, site, f.cfg.Epoch),
		Threshold: uint32(math.Round(p * 65536)),
	}
	if p < 1 {
		k.Scale = float32(1 / (1 - p))
	}
	return k, true
}
