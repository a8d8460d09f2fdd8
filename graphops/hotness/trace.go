package hotness

import (
	"cmp"
	"slices"
)

// Trace is the rows that a part's batches of an epoch read from other parts: for each batch the distinct node ids,
// ascending. Its methods count misses: the rows that would still be read from elsewhere, with a cache that holds a
// number of rows. The rows that fill a cache beforehand are not counted.
type Trace [][]int32

// Rows is the number of rows that the batches read: the misses without a cache.
func (t Trace) Rows() int64 {
	var n int64
	for _, batch := range t {
		n += int64(len(batch))
	}
	return n
}

// Merge returns the trace of parts that ask for rows together: each batch has the rows that a batch of the same number
// reads in any of the traces.
func Merge(traces ...Trace) Trace {
	var all Trace
	for _, t := range traces {
		for i, batch := range t {
			if i == len(all) {
				all = append(all, nil)
			}
			all[i] = append(all[i], batch...)
		}
	}
	for i, batch := range all {
		slices.Sort(batch)
		all[i] = slices.Compact(batch)
	}
	return all
}

// Without returns the trace without the rows for which f is true.
func (t Trace) Without(f func(node int32) bool) Trace {
	out := make(Trace, len(t))
	for i, batch := range t {
		out[i] = slices.DeleteFunc(slices.Clone(batch), f)
	}
	return out
}

// nodes is one more than the largest id.
func (t Trace) nodes() int {
	n := 0
	for _, batch := range t {
		if len(batch) > 0 {
			n = max(n, int(batch[len(batch)-1])+1)
		}
	}
	return n
}

// Static counts the misses of a cache that always holds the given rows.
func (t Trace) Static(cached []int32) int64 {
	held := make([]bool, t.nodes())
	for _, v := range cached {
		if int(v) < len(held) {
			held[v] = true
		}
	}
	var misses int64
	for _, batch := range t {
		for _, v := range batch {
			if !held[v] {
				misses++
			}
		}
	}
	return misses
}

// Best returns the n rows that this trace reads most often: no static cache of n rows misses less.
func (t Trace) Best(n int) []int32 {
	counts := make([]int32, t.nodes())
	var ids []int32
	for _, batch := range t {
		for _, v := range batch {
			if counts[v]++; counts[v] == 1 {
				ids = append(ids, v)
			}
		}
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return ids[:max(0, min(n, len(ids)))]
}

// Windowed counts the misses of an exact prefetch that requests the rows of a batch k batches ahead and keeps a row
// while one of these batches needs it: reads of a row that none of the k batches before reads. Rows of the static cache
// cached, which may be nil, are not misses.
func (t Trace) Windowed(k int, cached []int32) int64 {
	last := make([]int, t.nodes()) // one more than the last batch that reads the row
	for _, v := range cached {
		if int(v) < len(last) {
			last[v] = -1
		}
	}
	var misses int64
	for i, batch := range t {
		for _, v := range batch {
			if last[v] < 0 {
				continue
			}
			if last[v] == 0 || i+1-last[v] > k {
				misses++
			}
			last[v] = i + 1
		}
	}
	return misses
}

// LRU counts the misses of a cache of n rows that replaces the least recently used row. The rows of a batch are read
// in ascending order. The cache begins with the given rows, the first the most recently used.
func (t Trace) LRU(n int, begin []int32) int64 {
	if n <= 0 {
		return t.Rows()
	}
	size := t.nodes()
	for _, v := range begin {
		size = max(size, int(v)+1)
	}
	end := int32(size) // the list's end: newer[end] is the least, older[end] the most recently used row
	newer, older, held := make([]int32, size+1), make([]int32, size+1), make([]bool, size)
	newer[end], older[end] = end, end
	drop := func(v int32) { newer[older[v]], older[newer[v]] = newer[v], older[v] }
	use := func(v int32) {
		newer[v], older[v] = end, older[end]
		newer[older[end]], older[end] = v, v
	}
	begin = begin[:min(n, len(begin))]
	count := len(begin)
	for _, v := range slices.Backward(begin) {
		held[v] = true
		use(v)
	}
	var misses int64
	for _, batch := range t {
		for _, v := range batch {
			if held[v] {
				drop(v)
				use(v)
				continue
			}
			misses++
			if count == n {
				least := newer[end]
				drop(least)
				held[least] = false
				count--
			}
			held[v] = true
			count++
			use(v)
		}
	}
	return misses
}

// Belady counts the misses of a cache of n rows that keeps, after each batch, the rows that are read again soonest.
// The given number of batches after the current one is known; 0 means all of them. Of rows that no known batch reads,
// those with the lowest prior are replaced first, and of equal priors, the row read longest ago; a nil prior means equal
// priors. The cache begins with the given rows. No cache with the same beginning misses less than one that knows all
// batches.
//
// Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2),
// 1966, doi:10.1147/sj.52.0078.
func (t Trace) Belady(n, ahead int, prior []float32, begin []int32) int64 {
	if n <= 0 {
		return t.Rows()
	}
	if ahead <= 0 {
		ahead = len(t)
	}
	size := t.nodes()
	for _, v := range begin {
		size = max(size, int(v)+1)
	}
	next := make([]int, size) // the next batch that reads a row, or len(t)
	last := make([]int, size) // one more than the last batch that read it
	for v := range next {
		next[v] = len(t)
	}
	following := make([][]int32, len(t)) // the value of next after each read
	for i, batch := range slices.Backward(t) {
		following[i] = make([]int32, len(batch))
		for k, v := range batch {
			following[i][k] = int32(next[v])
			next[v] = i
		}
	}
	held := make([]bool, size)
	rows := slices.Clone(begin[:min(n, len(begin))])
	for _, v := range rows {
		held[v] = true
	}
	var misses int64
	for i, batch := range t {
		for k, v := range batch {
			if !held[v] {
				misses++
				held[v] = true
				rows = append(rows, v)
			}
			next[v], last[v] = int(following[i][k]), i+1
		}
		if len(rows) <= n {
			continue
		}
		selectFirst(rows, n, func(a, b int32) int {
			x, y := next[a], next[b]
			if x > i+ahead {
				x = len(t)
			}
			if y > i+ahead {
				y = len(t)
			}
			if x != y {
				return x - y
			}
			if x == len(t) && prior != nil && prior[a] != prior[b] {
				return cmp.Compare(prior[b], prior[a])
			}
			return cmp.Or(last[b]-last[a], int(a)-int(b))
		})
		for _, v := range rows[n:] {
			held[v] = false
		}
		rows = rows[:n]
	}
	return misses
}

// selectFirst moves the n smallest elements of s to its beginning, in any order. It is Hoare's FIND: expected linear
// time.
func selectFirst(s []int32, n int, compare func(a, b int32) int) {
	for lo, hi := 0, len(s)-1; lo < hi; {
		pivot := s[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for compare(s[i], pivot) < 0 {
				i++
			}
			for compare(s[j], pivot) > 0 {
				j--
			}
			if i <= j {
				s[i], s[j] = s[j], s[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			hi = j
		case n-1 >= i:
			lo = i
		default:
			return
		}
	}
}
