package gemm

import "sync/atomic"

// caches are a core's, in bytes; 0 where unknown.
type caches struct {
	line, sets, ways int // of the first level's data
	l2, l3           int
}

// blocking is how a product is cut for the caches. It never shows in the bits of a
// result: an element of C takes one multiply-add for each k, in ascending order,
// whatever is cut where. (Where a sum over k is cut into chunks, SumRows cuts it,
// by the shape alone.)
type blocking struct {
	// depth is the steps of k of a panel of B and of the rows of A beside it. 256 of 32
	// columns are 32 KiB, which stay beside the rows in a first-level cache of 48 KiB.
	// In a smaller one they would not; then it is 512, since a tile takes no more than
	// 5 bytes of the panel a cycle, which the second level gives, and C passes half as
	// often (2 to 3 % on Zen 4, where 128 and 192 were slower than 256).
	depth int
	// rows are those of a block of C. Their A of depth columns stays in a quarter of
	// the second-level cache while all panels of B pass: up to 192 rows.
	rows int
	// packed is the elements of B that are packed at a time: up to 8 MiB, half of the
	// last-level cache.
	packed int
	// resident is the elements of B that stay in the second-level cache, up to 1 MiB. Then
	// sub rows of C pass at a time, while the next ones of A are fetched; else a whole
	// block, while the next panel is.
	resident, sub int
	l1            caches
}

// blockingFor derives the blocking from the caches, as Low et al., Analytical
// Modeling Is Enough for High-Performance BLIS, ACM TOMS 43(2), 2016
// (doi 10.1145/2925987) do, with upper bounds beyond which nothing is gained.
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

// collide reports whether rows rows, stride bytes apart, evict each other from the first-level
// cache while a tile reads them side by side: their lines need more ways of a set than there are,
// with one for B and one for what comes next. Rows a multiple of 4 KiB apart are all in one set. On
// Zen 4 (8 ways) products of 12 such rows had 60 to 65 % of the peak in place, and have 85 %
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
