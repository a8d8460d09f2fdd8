// Package simd contains the loops of the CPU backend that run at the speed of memory: adding,
// gathering, masking and normalising rows, and the optimisers' updates.
//
// # Paths
//
// Each function has one plain Go implementation and, on amd64, implementations in AVX2 and AVX-512.
// The package uses the fastest that the processor supports; [Use] selects another, for tests. A
// function gives the same bits on every path: products are rounded before they are added (nothing
// is fused), and sums have one order, which the function's documentation states.
//
// # Memory
//
// Slices may start at any address of a float32. Unless a function says
// otherwise, its output may be one of its inputs but must not overlap one in
// part. Lengths are checked; ids are not in functions that take [Rows]: check
// them once by [Rows.Holds]. Nothing here allocates or starts goroutines, and
// everything is safe for concurrent use on separate outputs.
package simd

//go:generate go run ./asmgen .

import "fmt"

// Path is a set of instructions.
type Path int

// The paths, each faster than the one before it.
const (
	Go Path = iota
	AVX2
	AVX512
)

func (p Path) String() string {
	switch p {
	case Go:
		return "go"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return fmt.Sprintf("Path(%d)", int(p))
}

// best is the fastest path that this processor has, path the one in use.
var (
	best = detect()
	path = best
)

// Best returns the fastest path that this processor has.
func Best() Path { return best }

// Use selects path p, or the fastest that the processor has if p is unavailable, and returns the
// previous path. It is for tests and benchmarks: no other function of the package may run at the
// same time.
func Use(p Path) (before Path) {
	before = path
	path = min(p, best)
	return before
}

// checkLen panics if a slice does not have the required length.
func checkLen(op string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("simd: %s: a slice has %d elements, want %d", op, got, want))
	}
}
