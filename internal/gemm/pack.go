package gemm

import "unsafe"

// packPanel copies columns [j0, j0+cols) of rows [k0, k0+depth) of the factor B, which has no
// index, to dst [depth, width], with zeros in the columns beyond cols.
func (p *path) packPanel(dst []float32, b *Operand, k0, depth, j0, cols, width int) {
	dst = dst[:depth*width]
	if cols < width {
		clear(dst)
	}
	switch {
	case b.Trans:
		p.packTransposed(dst, b, k0, depth, j0, cols, width)
	case cols == width && p.copyPanel != nil:
		last := (k0+depth-1)*b.Stride + j0 + cols
		src := b.Data[k0*b.Stride+j0 : last]
		p.copyPanel(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), depth, uintptr(4*b.Stride), 4*width)
	default:
		for k := range depth {
			copy(dst[k*width:], b.Data[(k0+k)*b.Stride+j0:][:cols])
		}
	}
}

// packTransposed is packPanel for a B that is stored [n,K]: eight stored rows at a time if they can
// be transposed in registers.
func (p *path) packTransposed(dst []float32, b *Operand, k0, depth, j0, cols, width int) {
	j, blocked := 0, depth/8*8
	if p.transpose8 != nil && blocked > 0 {
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
		scatter(dst[j:], b.Data[(j0+j)*b.Stride+k0:][:depth], width)
	}
}

// scatter sets dst[i·step] = src[i].
func scatter(dst, src []float32, step int) {
	for i, v := range src {
		dst[i*step] = v
	}
}

// stored returns the memory of rows [lo, lo+rows) of the stored matrix, limited to existing rows,
// if there is little other memory between them.
func (o *Operand) stored(lo, rows, cols int) []float32 {
	if o.Index != nil || o.Stride > 2*cols {
		return nil
	}
	from := min(lo*o.Stride, len(o.Data))
	return o.Data[from:min(from+rows*o.Stride, len(o.Data))]
}

// view sets where the tile finds rows of a segment of the factor A: in place, or in the worker's
// memory, gathered through the index and rounded if needed, and packed if the rows would collide in
// the cache.
func (j *job) view(w *worker, o *Operand, i0, rows int, s *segment) {
	p, x, k0 := j.path, *o, s.k0
	if x.Index != nil {
		if x.Trans {
			x = p.gather(o, k0, s.k, i0, rows, &w.gathered)
		} else {
			x = p.gather(o, i0, rows, k0, s.k, &w.gathered)
		}
		i0, k0 = 0, 0
	}
	if j.o.BF16 {
		x = p.narrow(&x, x.Trans, k0, s.k, i0, rows, &w.a)
		if p.rowsOnly && x.Trans {
			x = p.turn(&x, s.depth, &w.turned)
		}
		i0, k0 = 0, 0
	}
	t := &w.tile
	t.packed = false
	switch {
	case x.Trans:
		t.a, t.rs, t.cs = unsafe.Pointer(&x.Data[k0*x.Stride+i0]), 4, uintptr(4*x.Stride)
	case j.collides[s.term]:
		t.packed = true
		t.a = unsafe.Pointer(&p.packGroups(&w.groups, &x, i0, rows, k0, s.depth)[0])
	default:
		t.a, t.rs, t.cs = unsafe.Pointer(&x.Data[i0*x.Stride+k0]), uintptr(4*x.Stride), 4
	}
}

// packGroups copies rows [i0, i0+rows) of columns [k0, k0+k) of the factor A, which is stored by
// rows and has no index, into groups, each [k, its rows].
func (p *path) packGroups(scratch *buffer, o *Operand, i0, rows, k0, k int) []float32 {
	mem := scratch.get(rows * k)
	full, rest := groups(rows)
	for i := range full {
		p.packGroup(mem[i*group*k:][:group*k], o, i0+i*group, group, k0, k)
	}
	if rest > 0 {
		p.packGroup(mem[full*group*k:], o, i0+full*group, rest, k0, k)
	}
	return mem
}

// packGroup is packGroups for the n rows of one group: eight at a time; the last eight may overlap
// the previous ones.
func (p *path) packGroup(dst []float32, o *Operand, i0, n, k0, k int) {
	src := o.Data[i0*o.Stride+k0 : (i0+n-1)*o.Stride+k0+k]
	blocked := 0
	if n >= 8 && k >= 8 {
		blocked = k / 8 * 8
		for r := 0; ; r = min(r+8, n-8) {
			p.transpose8(unsafe.Pointer(&dst[r]), uintptr(4*n), unsafe.Pointer(&src[r*o.Stride]), uintptr(4*o.Stride), uintptr(blocked/8))
			if r == n-8 {
				break
			}
		}
	}
	if blocked < k {
		for r := range n {
			scatter(dst[blocked*n+r:], src[r*o.Stride+blocked:][:k-blocked], n)
		}
	}
}

// gather copies columns [c, c+cols) of the rows at index positions [r, r+rows).
func (p *path) gather(o *Operand, r, rows, c, cols int, scratch *buffer) Operand {
	stride := lines(cols)
	mem := scratch.get(rows * stride)
	index := o.Index[r : r+rows]
	for i, at := range index {
		row := o.Data[int(at)*o.Stride+c:][:cols] // in range, or it panics
		if p.gatherRows == nil {
			copy(mem[i*stride:], row)
		}
	}
	if p.gatherRows != nil {
		p.gatherRows(unsafe.Pointer(&mem[0]), uintptr(4*stride), unsafe.Pointer(&o.Data[c]), uintptr(4*o.Stride), &index[0], rows, 4*cols)
	}
	return Operand{Data: mem, Stride: stride, Trans: o.Trans}
}
