// Package ptx runs PTX kernels on the CPU and checks what they do: the test
// infrastructure of everything below package cuda. It is not fast and not a
// model of a GPU's speed; it is strict.
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
// Every access to global, shared, local and parameter memory: bounds, use after
// free, alignment, and reads of bytes that nobody wrote. Allocations lie apart,
// so that one element too far is nobody's memory.
//
// With [Machine.Races], which is on at first: two threads that touch the same
// byte, at least one of them writing, without a barrier between the two and not
// both by atomics. Barriers are bar.sync among the threads of a block and
// bar.warp.sync among the lanes that it names; shuffles and votes order nothing,
// as the PTX manual has it. Blocks of one launch are never ordered: a kernel that
// hands data from block to block by flags is reported, and has to be two kernels.
//
// Barriers that not all threads of a block reach, or that they reach in two
// places; warp operations that the lanes named do not all reach, and shuffles
// from lanes that do not take part; launches beyond a device's limits; endless
// loops (by a number of instructions).
//
// What is found ends the launch with a [*Fault], which names the kernel, the
// block and thread, the PTX line and the address. Memory is as the kernel left it.
//
// # Order
//
// A thread runs until it waits, then the next one runs: ascending, descending or
// shuffled by a seed ([Order]), and blocks likewise. A kernel whose result depends
// on the order is wrong here, whatever a GPU would make of it. With Races off,
// blocks may run on several cores ([Machine.Workers]).
//
// # Arithmetic
//
// Integers, and f16, f32 and f64 with the rounding that an instruction names, are
// exact to the bit, fma, division and square root included. The approximations
// (ex2, lg2, sin, cos, tanh, and rcp, rsqrt, sqrt and div with .approx or .full)
// are computed in float64 and rounded to nearest: a GPU's differ from that in the
// last bits, so results that pass through them are compared with a tolerance.
// NaNs are 0x7fffffff, and 0x7fff of 16 bits, as on the device.
//
// # Not done
//
// A register that nobody wrote holds what an earlier thread left there, unnoticed.
//
// Calls of device functions, textures, matrix instructions, clocks, activemask
// and barriers of a part of a block: a kernel that has one does not parse, with
// its line in the error.
package ptx
