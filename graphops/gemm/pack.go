package gemm

import "unsafe"

// packPanel lays columns [j0, j0+cols) of rows [k0, k0+depth) of the factor B as
// dst [depth, width], zeros in the columns beyond cols.
func (p *path) packPanel(dst []float32, b *Operand, k0, depth, j0, cols, width int) {
	dst = dst[:depth*width]
	if cols < width {
		clear(dst)
	}
	switch {
	case b.Trans:
		p.packTransposed(dst, b, k0, depth, j0, cols, width)
	case b.Index == nil && cols == width && p.copyPanel != nil:
		last := (k0+depth-1)*b.Stride + j0 + cols
		src := b.Data[k0*b.Stride+j0 : last]
		p.copyPanel(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), depth, uintptr(4*b.Stride), 4*width)
	default:
		for k := range depth {
			copy(dst[k*width:], b.row(k0 + k)[j0:j0+cols])
		}
	}
}

// packTransposed is packPanel of a B that is stored [n,K]: eight stored rows at
// a time where they can be transposed in registers.
func (p *path) packTransposed(dst []float32, b *Operand, k0, depth, j0, cols, width int) {
	j, blocked := 0, depth/8*8
	if b.Index == nil && p.transpose8 != nil && blocked > 0 {
		for ; j+8 <= cols; j += 8 {
			src := b.Data[(j0+j)*b.Stride+k0 : (j0+j+7)*b.Stride+k0+depth]
			p.transpose8(unsafe.Pointer(&dst[j]), uintptr(4*width), unsafe.Pointer(&src[0]), uintptr(4*b.Stride), uintptr(blocked/8))
			if blocked < depth {
				for i := range 8 {
					scatter(dst[blocked*width+j+i:], src[i*b.Stride+blocked:][:depth-blocked], width)
				}
			}
		}
	}
	for ; j < cols; j++ {
		scatter(dst[j:], b.row(j0 + j)[k0:k0+depth], width)
	}
}

// scatter is dst[i·step] = src[i].
func scatter(dst, src []float32, step int) {
	for i, v := range src {
		dst[i*step] = v
	}
}

// row is stored row i, to the end of the data.
func (o *Operand) row(i int) []float32 {
	if o.Index != nil {
		i = int(o.Index[i])
	}
	return o.Data[i*o.Stride:]
}

// stored is the memory of rows [lo, lo+rows) of the stored matrix, as far as
// they are there and little else lies between them.
func (o *Operand) stored(lo, rows, cols int) []float32 {
	if o.Index != nil || o.Stride > 2*cols {
		return nil
	}
	from := min(lo*o.Stride, len(o.Data))
	return o.Data[from:min(from+rows*o.Stride, len(o.Data))]
}

// view is where a kernel finds elements [i0, i0+rows) × [k0, k0+depth) of the
// factor A: in place, or copied to scratch through the index.
func (o *Operand) view(i0, rows, k0, depth int, scratch *buffer) (a unsafe.Pointer, rs, cs uintptr) {
	r, nr, c, nc := i0, rows, k0, depth
	if o.Trans {
		r, nr, c, nc = c, nc, r, nr
	}
	at, stride := o.Data, o.Stride
	if o.Index == nil {
		at = at[r*stride+c:]
	} else {
		stride = (nc + 15) &^ 15
		at = scratch.get(nr * stride)
		for i := range nr {
			copy(at[i*stride:], o.row(r + i)[c:c+nc])
		}
	}
	rs, cs = uintptr(4*stride), 4
	if o.Trans {
		rs, cs = cs, rs
	}
	return unsafe.Pointer(&at[0]), rs, cs
}
