package ptx

import "fmt"

// Kind is the kind of a kernel's error.
type Kind uint8

// The kinds of faults.
const (
	OutOfBounds   Kind = iota + 1 // an address outside of all allocations, or not wholly inside one
	Freed                         // an address in memory that was freed
	Misaligned                    // an address that is not a multiple of the access's size
	Uninitialised                 // a read of unwritten bytes
	ReadOnly                      // a write to constant or read-only memory
	Race                          // two accesses that no barrier orders
	Barrier                       // a barrier that not all threads reach
	Warp                          // a warp operation that not all named lanes reach, or a read of an inactive lane
	Trap                          // a trap instruction
	Endless                       // more instructions than Machine.Limit
	Undefined                     // a result that the manual leaves undefined, as of a division by zero
	BadLaunch                     // sizes or arguments that no device accepts
)

var kinds = [...]string{
	OutOfBounds: "out of bounds", Freed: "use after free", Misaligned: "misaligned", Uninitialised: "uninitialised read", ReadOnly: "write to read-only memory",
	Race: "race", Barrier: "barrier", Warp: "warp operation", Trap: "trap", Endless: "endless", Undefined: "undefined result", BadLaunch: "bad launch",
}

func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k] != "" {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Fault is an error of a kernel and its position.
type Fault struct {
	Kind   Kind
	Kernel string
	// Block and Thread identify the thread that made the error; for a race, the second of the two.
	Block, Thread [3]uint32
	// Line is the line of the PTX, counted from 1, and Source its text. They are 0 and empty if the
	// launch failed before the first instruction.
	Line   int
	Source string
	// Addr is the address of a memory access: an offset if the space is shared, local or
	// parameters.
	Addr uint64
	What string
}

func (f *Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("ptx: kernel %s: %s", f.Kernel, f.What)
	}
	return fmt.Sprintf("ptx: kernel %s, block %s, thread %s, PTX line %d (%s): %s: %s", f.Kernel, triple(f.Block), triple(f.Thread), f.Line, f.Source, f.Kind, f.What)
}

func triple(v [3]uint32) string { return fmt.Sprintf("(%d,%d,%d)", v[0], v[1], v[2]) }
