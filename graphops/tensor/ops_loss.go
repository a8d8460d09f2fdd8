package tensor

import "unsafe"

// CrossEntropy is package nn's loss of that name on a backend that computes it
// itself, a [CrossEntropies]: the sum [1,1] over the rows of x [N, classes] whose
// label is not -1. figures waits for that and for how many of these have it as
// their greatest element; it may be called after the pass, and more than once. ok is
// false on other backends, and then nothing was done.
//
// labels are classes or -1, one a row, and are not kept.
func (f *Fwd) CrossEntropy(x *Tensor, labels []int32) (sum *Tensor, figures func() (sum float32, correct int64), ok bool) {
	be, ok := f.be.(CrossEntropies)
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
	return f.record(sum, func(d Buffer) {
		f.give(x, func(dx Buffer, acc bool) { be.CrossEntropyGrad(dx, d, x.buf, words, x.rows, x.cols, acc) })
	}, x), figures, true
}
