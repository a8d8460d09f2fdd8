// Package ptx interprets PTX kernels on the CPU and checks them for errors. All tests of package
// cuda without a GPU use it. It is slow and does not model a GPU's speed.
//
// # Basics
//
//	mod, err := ptx.Parse("gather.ptx", source)
//	k, err := mod.Kernel("gather_rows_f32")
//	m := ptx.NewMachine(ptx.NewMemory(0, 1<<30))
//	x, err := m.Memory.Alloc(4 * n)
//	err = m.Memory.Write(x, bytes)
//	err = m.Launch(k, ptx.D(blocks), ptx.D(256), 0, x, y, int64(n))
//
// A [Memory] is one device's address space, of 64-bit addresses that are never
// used twice. Memory of the host is made visible by [Memory.Map], at its own
// address. [Machine.Launch] takes Go values as arguments, [Machine.LaunchRaw]
// the bytes that a driver would pass.
//
// # What is checked
//
// Every access to global, shared, local and parameter memory: bounds, use after free, alignment,
// and reads of unwritten bytes. Allocations have gaps between them, so that an access one element
// past the end is an error.
//
// With [Machine.Races], which is on by default: two threads that access the same byte, at least one
// of them writing, without a barrier between the two and not both by atomics. Barriers are bar.sync
// among the threads of a block and bar.warp.sync among the lanes that it names; shuffles and votes
// order nothing, as the PTX manual specifies. Blocks of one launch are never ordered: a kernel that
// passes data between blocks by flags is reported, and must be split into two kernels.
//
// Barriers that not all threads of a block reach, or that they reach in two
// places; warp operations that the lanes named do not all reach, and shuffles
// from lanes that do not take part; launches beyond a device's limits; endless
// loops (by a number of instructions).
//
// An error ends the launch with a [*Fault], which names the kernel, the block and thread, the PTX
// line and the address. Memory stays as the kernel left it.
//
// # Order
//
// A thread runs until it waits, then the next one runs: ascending, descending or shuffled by a seed
// ([Order]), and blocks likewise. A kernel's result must not depend on the order. With Races off,
// blocks may run on several cores ([Machine.Workers]).
//
// # Arithmetic
//
// Integers, and f16, f32 and f64 with the rounding that an instruction names, are exact to the bit,
// including fma, division and square root. The approximations (ex2, lg2, sin, cos, tanh, and rcp,
// rsqrt, sqrt and div with .approx or .full) are computed in float64 and rounded to nearest: a
// GPU's differ from that in the last bits, so results that pass through them are compared with a
// tolerance. NaNs are 0x7fffffff, and 0x7fff of 16 bits, as on the device.
//
// # Not done
//
// Reads of unwritten registers are not detected: such a register holds a value of an earlier
// thread.
//
// Calls of device functions, textures, matrix instructions, clocks, activemask and barriers of a
// part of a block are not supported: a kernel with one does not parse, and the error names its
// line.
package ptx
