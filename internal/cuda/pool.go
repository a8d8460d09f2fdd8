package cuda

import (
	"cmp"
	"slices"
)

func (b *block) compare(size int64, ptr Ptr) int {
	return cmp.Or(cmp.Compare(b.size, size), cmp.Compare(b.ptr, ptr))
}

// take removes the smallest free block of at least size bytes from the pool and returns it, or nil.
func (p *pool) take(size int64) *block {
	i, _ := slices.BinarySearchFunc(p.free, size, func(b *block, size int64) int { return b.compare(size, 0) })
	if i == len(p.free) {
		return nil
	}
	b := p.free[i]
	p.free = slices.Delete(p.free, i, i+1)
	b.free = false
	return b
}

// insert and remove keep the free blocks in order.
func (p *pool) insert(b *block) {
	i, _ := slices.BinarySearchFunc(p.free, b, func(e, b *block) int { return e.compare(b.size, b.ptr) })
	p.free = slices.Insert(p.free, i, b)
	b.free = true
}

func (p *pool) remove(b *block) {
	i, found := slices.BinarySearchFunc(p.free, b, func(e, b *block) int { return e.compare(b.size, b.ptr) })
	if !found {
		panic("cuda: a free block is not in its pool")
	}
	p.free = slices.Delete(p.free, i, i+1)
	b.free = false
}

// split leaves size bytes in b, and makes the rest a free block of p if it is large enough to be
// useful.
func (b *block) split(p *pool, size int64) {
	rest := b.size - size
	if rest < granule || size > smallMax && rest < smallMax {
		return
	}
	r := &block{ptr: b.ptr + Ptr(size), size: rest, seg: b.seg, prev: b, next: b.next}
	if b.next != nil {
		b.next.prev = r
	}
	b.next, b.size = r, size
	p.insert(r)
}

// put frees b and joins it with free neighbours.
func (p *pool) put(b *block) {
	if n := b.next; n != nil && n.free {
		p.remove(n)
		b.join(n)
	}
	if a := b.prev; a != nil && a.free {
		p.remove(a)
		a.join(b)
		b = a
	}
	p.insert(b)
}

// join adds n, the next block, to b.
func (b *block) join(n *block) {
	b.size += n.size
	b.next = n.next
	if n.next != nil {
		n.next.prev = b
	}
}
