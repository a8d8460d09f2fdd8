package divided

import (
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/parallel"
)

// open opens the parts of the nodes ids that are on this machine, and returns the positions in ids
// of nodes whose parts are not, ascending.
func (b *Book) open(ids []int32) (parts []*Part, missing []int, err error) {
	parts = make([]*Part, len(b.parts))
	for i, v := range ids {
		p := b.of[v]
		switch {
		case parts[p] != nil:
		case !b.parts[p].here:
			missing = append(missing, i)
		default:
			if parts[p], err = b.Part(int(p)); err != nil {
				return nil, nil, err
			}
		}
	}
	return parts, missing, nil
}

// Gather copies the dense feature rows of the nodes ids, in their order, into dst [len(ids), Cols],
// in the stored type, on the given number of threads (0: GOMAXPROCS). It reuses dst's memory. It
// returns the positions in ids, ascending, of nodes whose parts are not on this machine; their rows
// are undefined. The error is that of a damaged part.
func (b *Book) Gather(dst *dataset.Matrix, ids []int32, threads int) (missing []int, err error) {
	parts, missing, err := b.open(ids)
	if err != nil {
		return nil, err
	}
	cols, half := b.ds.FeatureDim(), b.Half()
	dst.Rows, dst.Cols = len(ids), cols
	if half {
		dst.F16, dst.F32 = resize(dst.F16, len(ids)*cols), nil
	} else {
		dst.F32, dst.F16 = resize(dst.F32, len(ids)*cols), nil
	}
	parallel.For(threads, len(ids), max(1, 1<<14/max(1, cols)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := parts[b.of[ids[i]]]
			if p == nil {
				continue
			}
			from := int(b.rows[ids[i]]) * cols
			if half {
				copy(dst.F16[i*cols:(i+1)*cols], p.Features.F16[from:from+cols])
			} else {
				copy(dst.F32[i*cols:(i+1)*cols], p.Features.F32[from:from+cols])
			}
		}
	})
	return missing, nil
}

// VisitSparse calls visit, from up to threads goroutines (0: GOMAXPROCS), with the sparse feature row of each of the nodes
// ids whose part is on this machine, and with its position i in ids. The slices are the part's; values is nil if all are 1.
// The error is that of a damaged part.
func (b *Book) VisitSparse(ids []int32, threads int, visit func(i int, cols []int32, values []float32)) error {
	parts, _, err := b.open(ids)
	if err == nil {
		b.eachSparse(parts, ids, threads, visit)
	}
	return err
}

// eachSparse is VisitSparse for the parts that open has opened.
func (b *Book) eachSparse(parts []*Part, ids []int32, threads int, visit func(i int, cols []int32, values []float32)) {
	parallel.For(threads, len(ids), 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if p := parts[b.of[ids[i]]]; p != nil {
				cols, values := p.Sparse.Row(int(b.rows[ids[i]]))
				visit(i, cols, values)
			}
		}
	})
}

// GatherSparse copies the sparse feature rows of the nodes ids into dst, as
// [dataset.Sparse.Gather] does, and returns the positions of nodes whose parts are not on this
// machine; their rows are empty.
func (b *Book) GatherSparse(dst *dataset.Sparse, ids []int32, threads int) (missing []int, err error) {
	parts, missing, err := b.open(ids)
	if err != nil {
		return nil, err
	}
	dst.Rows, dst.Cols = len(ids), b.ds.FeatureDim()
	dst.Indptr = resize(dst.Indptr, len(ids)+1)
	clear(dst.Indptr)
	b.eachSparse(parts, ids, 1, func(i int, cols []int32, _ []float32) { dst.Indptr[i+1] = int64(len(cols)) })
	for i := range ids {
		dst.Indptr[i+1] += dst.Indptr[i]
	}
	n := int(dst.Indptr[len(ids)])
	dst.Indices = resize(dst.Indices, n)
	if b.ds.Meta.FeatureFormat == dataset.FormatCSROnes {
		dst.Values = nil
	} else if dst.Values = resize(dst.Values, n); dst.Values == nil {
		dst.Values = []float32{}
	}
	b.eachSparse(parts, ids, threads, func(i int, cols []int32, values []float32) {
		copy(dst.Indices[dst.Indptr[i]:], cols)
		if values != nil {
			copy(dst.Values[dst.Indptr[i]:], values)
		}
	})
	return missing, nil
}

// Labels appends the labels of the nodes ids to dst. That of a node whose part is not on this
// machine is -1, unknown; its position is in missing. Labels of parts at servers are asked for once
// for each part.
func (b *Book) Labels(dst, ids []int32) (labels []int32, missing []int, err error) {
	parts, missing, err := b.open(ids)
	if err != nil {
		return nil, nil, err
	}
	if IsFar(b.ds) {
		for _, v := range ids {
			y, _, err := b.Answers(b.PartOf(v))
			if err != nil {
				return nil, nil, err
			}
			dst = append(dst, y[b.rows[v]])
		}
		return dst, nil, nil
	}
	for _, v := range ids {
		y := int32(-1)
		if p := parts[b.of[v]]; p != nil {
			y = p.Labels[b.rows[v]]
		}
		dst = append(dst, y)
	}
	return dst, missing, nil
}

// Targets appends the rows of targets of the nodes ids, of several labels each, to dst. Those of a
// node whose part is not on this machine are -1, unknown; its position is in missing. Those of parts
// at servers are asked for once for each part.
func (b *Book) Targets(dst []int8, ids []int32) (targets []int8, missing []int, err error) {
	parts, missing, err := b.open(ids)
	if err != nil {
		return nil, nil, err
	}
	if IsFar(b.ds) {
		for _, v := range ids {
			_, y, err := b.Answers(b.PartOf(v))
			if err != nil {
				return nil, nil, err
			}
			dst = append(dst, y.Row(b.Row(v))...)
		}
		return dst, nil, nil
	}
	unknown := slices.Repeat([]int8{-1}, b.ds.Classes())
	for _, v := range ids {
		row := unknown
		if p := parts[b.of[v]]; p != nil {
			row = p.Multi.Row(int(b.rows[v]))
		}
		dst = append(dst, row...)
	}
	return dst, missing, nil
}

// resize returns s with length n, in the same memory if it is large enough; its content is
// undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
