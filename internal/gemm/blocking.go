package gemm

import "sync/atomic"

// caches describes a core's caches, in bytes; 0 if unknown.
type caches struct {
	line, sets, ways int // of the first-level data cache
	l2, l3           int
}

// blocking says how a product is split for the caches. It never affects the bits of a result: an
// element of C takes one multiply-add for each k, in ascending order, for every blocking. (If a sum
// over k is split into chunks, SumRows splits it, by the shape alone.)
type blocking struct {
	// depth is the number of steps of k in a panel of B and in the matching rows of A. 256 steps of
	// 32 columns are 32 KiB, which fit with the rows of A into a first-level cache of 48 KiB. They
	// would not fit into a smaller one; then depth is 512, because a tile reads at most 5 bytes of
	// the panel per cycle, which the second level delivers, and C is read and written half as often
	// (2 to 3 % on Zen 4, where 128 and 192 were slower than 256).
	depth int
	// rows is the number of rows of a block of C. The matching A of depth columns stays in a
	// quarter of the second-level cache while all panels of B are used: up to 192 rows.
	rows int
	// packed is the number of elements of B that are packed at a time: up to 8 MiB, half of the
	// last-level cache.
	packed int
	// resident is the number of elements of B that fit in the second-level cache, up to 1 MiB. If B
	// is resident, sub rows of C are computed at a time while the next rows of A are prefetched;
	// otherwise a whole block is computed while the next panel is prefetched.
	resident, sub int
	l1            caches
}

// blockingFor derives the blocking from the caches, as in Low et al., Analytical Modeling Is Enough
// for High-Performance BLIS, ACM TOMS 43(2), 2016 (doi 10.1145/2925987), with upper bounds beyond
// which speed does not improve.
func blockingFor(c caches) blocking {
	const panel, tileRows = 32, 12
	depth := 256
	if size := c.line * c.sets * c.ways; size > 0 && size < 4*depth*(panel+tileRows) {
		depth = 512
	}
	if c.line == 0 || c.sets == 0 || c.ways == 0 {
		c.line, c.sets, c.ways = 64, 64, 8
	}
	if c.l2 == 0 {
		c.l2 = 1 << 20
	}
	if c.l3 == 0 {
		c.l3 = 16 << 20
	}
	rows := min(192, max(48, c.l2/4/(4*depth)/48*48))
	return blocking{
		depth: depth, rows: rows, sub: min(96, rows),
		packed:   max(1<<18, min(1<<21, c.l3/2/4)),
		resident: max(1<<15, min(1<<18, c.l2/4)),
		l1:       c,
	}
}

// cut is the blocking in use. Tests change it.
var cut = func() (a atomic.Pointer[blocking]) {
	b := blockingFor(machineCaches())
	a.Store(&b)
	return
}()

// collide reports whether that many rows, stride bytes apart, evict each other from the first-level
// cache while a tile reads them in parallel: their lines need more ways of a set than the cache
// has, with one way for B and one for the next data. Rows a multiple of 4 KiB apart are all in one
// set. On Zen 4 (8 ways), products of 12 such rows reach 60 to 65 % of the peak in place, and 85 %
// packed.
func (c *caches) collide(rows, stride int) bool {
	const others = 2
	if rows+others <= c.ways {
		return false
	}
	var sets [32]int
	most := 0
	for i := range min(rows, len(sets)) {
		sets[i] = i * stride / c.line % c.sets
		shared := 1
		for _, before := range sets[:i] {
			if before == sets[i] {
				shared++
			}
		}
		most = max(most, shared)
	}
	return most+others > c.ways
}
