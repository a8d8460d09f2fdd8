package tensor

import (
	"unsafe"

	"github.com/graphnb/graphnb/graphops/ops"
)

// CrossEntropy is package nn's loss of that name on a backend that computes it itself, a
// [CrossEntropies]: the sum [1,1] over the rows of x [N, classes] whose label is not -1. figures
// waits for this sum and for the number of rows whose greatest element is the label's; it may be
// called after the pass, and more than once. On other backends ok is false and nothing is computed.
//
// labels are classes or -1, one per row, and are not kept.
func (f *Fwd) CrossEntropy(x *Tensor, labels []int32) (sum *Tensor, figures func() (sum float32, correct int64), ok bool) {
	be, ok := f.be.(ops.CrossEntropies)
	if !ok {
		return nil, nil, false
	}
	f.use("CrossEntropy", x)
	if len(labels) != x.rows {
		fail("CrossEntropy", "x is %s but there are %d labels", x.shape(), len(labels))
	}
	words := f.mem.get(x.rows).buf(x.rows)
	if x.rows > 0 {
		f.be.Upload(words, unsafe.Slice((*float32)(unsafe.Pointer(&labels[0])), len(labels)))
	}
	sum = f.result(1, 1, nil)
	figures = be.CrossEntropy(sum.buf, x.buf, words, x.rows, x.cols)
	sum.later = func() float32 {
		v, _ := figures()
		return v
	}
	return f.record(sum, func(d ops.Buffer) {
		f.give(x, func(dx ops.Buffer, acc bool) { be.CrossEntropyGrad(dx, d, x.buf, words, x.rows, x.cols, acc) })
	}, x), figures, true
}
