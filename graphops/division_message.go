package graphops

import (
	"encoding/binary"
	"unsafe"
)

// Append appends a rank's part of a batch to a message for that rank, which is on the same machine. Sums says whether
// it has the lists of sums.
func (p *RankPart) Append(out []byte, rank int, sums bool) []byte {
	w := partWriter{out}
	p.code(&w, rank, len(p.Coop[0].Halo.At), sums)
	return w.out
}

// Read reads what Append has appended, into p's memory: as many Hops as p has, with the Level and the Graph that they
// have. take returns the next n bytes of the message, or nil if there are fewer. Read reports whether they are a part of
// the given rank that can be computed on.
func (p *RankPart) Read(take func(n int) []byte, rank, world int, sums bool) bool {
	p.code(partReader(take), rank, world, sums)
	return p.valid(rank, sums)
}

// partCoder writes numbers to a message, or reads them. The first ones of an array, before from, are left out.
type partCoder interface {
	number(x *int)
	ints(x *[]int32, from int)
	longs(x *[]int64)
	floats(x *[]float32)
}

// code writes a rank's part of a batch, or reads it.
func (p *RankPart) code(w partCoder, rank, world int, sums bool) {
	w.number(&p.Seeds)
	w.ints(&p.IDs, 0)
	halo := func(h *Halo) {
		w.number(&h.Own)
		w.number(&h.Most)
		for r := range world {
			w.number(&h.At[r])
			w.ints(&h.From[r], 0)
			w.ints(&h.To[r], 0)
		}
	}
	for hop := range p.Hops {
		e, k := &p.Hops[hop], &p.Coop[hop]
		k.Reset(world)
		w.longs(&e.Indptr)
		w.ints(&e.Indices, 0)
		w.longs(&e.EdgePos)
		if e.Graph.EdgeWeights != nil {
			w.floats(&e.Weights)
		}
		halo(&k.Halo)
		own := min(k.Halo.Own, len(p.IDs)) // of a message that is wrong it may be larger
		w.ints(&k.IDs, own)
		copy(k.IDs, p.IDs[:own])
		e.NumDst, e.NumSrc, k.Halo.Others = len(e.Indptr)-1, len(k.IDs), len(k.IDs)-own
		if !sums {
			continue
		}
		w.longs(&k.Indptr)
		w.ints(&k.Indices, 0)
		halo(&k.Sums.Halo)
		for r := range world {
			l := &k.Sums.Reads[r]
			if r != rank { // that of its own rows is part of the Block
				w.longs(&l.Indptr)
				w.ints(&l.Indices, 0)
			}
		}
	}
}

type partWriter struct{ out []byte }

func (w *partWriter) number(x *int)             { w.out = binary.LittleEndian.AppendUint32(w.out, uint32(*x)) }
func (w *partWriter) ints(x *[]int32, from int) { w.out = appendNumbers(w.out, (*x)[from:]) }
func (w *partWriter) longs(x *[]int64)          { w.out = appendNumbers(w.out, *x) }
func (w *partWriter) floats(x *[]float32)       { w.out = appendNumbers(w.out, *x) }

type partReader func(n int) []byte

func (r partReader) number(x *int)             { *x = int(r.word()) }
func (r partReader) ints(x *[]int32, from int) { *x = readNumbers(r, *x, from) }
func (r partReader) longs(x *[]int64)          { *x = readNumbers(r, *x, 0) }
func (r partReader) floats(x *[]float32)       { *x = readNumbers(r, *x, 0) }

func (r partReader) word() uint32 {
	if b := r(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func appendNumbers[T int32 | int64 | float32](out []byte, x []T) []byte {
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(x))), bytesOf(x)...)
}

// readNumbers reads the numbers of an array from index from on, in out's memory.
func readNumbers[T int32 | int64 | float32](r partReader, out []T, from int) []T {
	var zero T
	b := r(int(r.word()) * int(unsafe.Sizeof(zero)))
	out = resized(out, from+len(b)/int(unsafe.Sizeof(zero)))
	copy(bytesOf(out[from:]), b)
	return out
}

// bytesOf is the memory of numbers. Ranks that take turns are on one machine, so the order of bytes is the same.
func bytesOf[T int32 | int64 | float32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}
