package tensor

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
)

func TestSizeClasses(t *testing.T) {
	t.Parallel()
	c := 64
	for range 60 {
		next := nextClass(c)
		if next <= c || 4*next > 5*c {
			t.Fatalf("%d follows %d", next, c)
		}
		if got := lastClass(next); got != c {
			t.Errorf("the class before %d is %d, want %d", next, got, c)
		}
		if sizeClass(c) != c || sizeClass(c+1) != next || sizeClass(next-1) != next {
			t.Errorf("classes around %d: %d, %d, %d", c, sizeClass(c), sizeClass(c+1), sizeClass(next-1))
		}
		c = next
	}
	if lastClass(64) != 0 {
		t.Errorf("the class before 64 is %d, want none", lastClass(64))
	}
}

// Batches whose sizes lie around the bound of a size class hold one set of buffers and not one per
// class, and soon allocate nothing more. A larger class, such as an evaluation's, stays for some
// passes and is then freed.
func TestArenaHoldsOneSet(t *testing.T) {
	t.Parallel()
	held, allocs := 0, 0
	var a arena
	a.alloc = func(n int) ops.Buffer { held += n; allocs++; return ops.Buffer{N: n, Dev: 1} }
	a.drop = func(b ops.Buffer) { held -= b.N }
	const class, each = 7 << 10, 9
	pass := func(n int) {
		a.reset()
		for range each {
			if s := a.get(n); s.mem.N < n || 2*s.mem.N > 3*nextClass(n) {
				t.Fatalf("asked for %d, got %d", n, s.mem.N)
			}
		}
	}
	for i := range 20 {
		pass(class - 100 + 200*(i%2))
	}
	if most := each * nextClass(class); held > most {
		t.Errorf("%d elements are held although a pass uses %d; want at most %d", held, each*class, most)
	}
	before := allocs
	for i := range 200 {
		pass(class - 100 + 200*(i%2))
	}
	if allocs != before {
		t.Errorf("%d allocations in repeated passes", allocs-before)
	}
	pass(1 << 20)
	for range KeepPasses {
		pass(class)
	}
	if held < 1<<20 {
		t.Errorf("%d elements are held; the elements that a pass used %d passes ago should be among them", held, KeepPasses)
	}
	for range 2 {
		pass(class)
	}
	if held > each*nextClass(class) {
		t.Errorf("%d elements are held long after the large pass", held)
	}
	a.close()
	if held != 0 {
		t.Errorf("%d elements are held after close", held)
	}
}
