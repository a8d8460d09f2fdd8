package tensor

import (
	"math"

	"github.com/graphnb/graphnb/internal/philox"
)

// MaxDropouts is the number of dropout calls one pass may have: the random
// counters keep 8 bits for the call site.
const MaxDropouts = 256

// maxDropoutCols is what the draws of one counter suffice for: 2^16 blocks of 8.
const maxDropoutCols = 8 << 16

// Dropout sets each element to 0 with probability p and multiplies the others by
// 1/(1-p), while the pass trains; otherwise, and with p = 0, it is x itself.
// With p = 1 everything is 0. The rows keep their space.
//
// The mask is a function of seed, epoch and step, the number of the call in the
// pass, the row's id ([Space.ID]) and the column: 16-bit lanes of Philox, dropped
// where the lane is below round(p·65536). So p is effective in steps of 2^-16,
// and a node has the same mask in whatever block, row, rank or thread it is
// computed. See [DropoutKey] for the bits. Kept for the gradient as one bit an
// element.
//
// It panics where x has no space, where p is outside [0,1], and at the 257th
// call of a pass.
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
		return f.lazy(x.rows, x.cols, x.sp, &affine{terms: a.terms, bias: a.bias, relu: a.relu, drop: &k})
	}
	f.dense(x)
	return f.drop(x, k)
}

// drop is Dropout of a tensor with elements.
func (f *Fwd) drop(x *Tensor, k DropoutKey) *Tensor {
	n, c := x.rows, x.cols
	words := MaskWords(n, c)
	mask := f.mem.get(words).buf(words)
	out := f.result(n, c, x.sp)
	f.be.Dropout(out.buf, mask, x.buf, n, c, k)
	return f.record(out, func(d Buffer) {
		f.give(x, func(dx Buffer, acc bool) { f.be.Mask(dx, d, mask, n, c, k.Scale, acc) })
	}, x)
}

// dropoutKey is the key of the next call of Dropout, for a tensor like x; false where
// everything is kept.
func (f *Fwd) dropoutKey(x *Tensor, p float64) (k DropoutKey, drops bool) {
	if !(p >= 0 && p <= 1) {
		fail("Dropout", "p is %g, which is no probability", p)
	}
	if !f.cfg.Train {
		return k, false
	}
	site := f.sites
	f.sites++
	if site == MaxDropouts {
		fail("Dropout", "this is call %d of the pass, but there are draws for %d only; Reset starts another pass", site+1, MaxDropouts)
	}
	if x.sp == nil {
		fail("Dropout", "the tensor has no row space (it is %s); use it on node rows, before an operation that mixes rows, or say whose rows they are with SetSpace", x.shape())
	}
	if x.cols > maxDropoutCols {
		fail("Dropout", "the tensor is %s, but there are draws for %d columns only", x.shape(), maxDropoutCols)
	}
	if p == 0 {
		return k, false
	}
	k = DropoutKey{
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
