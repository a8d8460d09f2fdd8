// Package fakegpu is a simulated CUDA driver for tests, inside the test process: the shim's table
// calls it in place of the real driver, so gorgonia.org/cu works unchanged. It has several devices,
// and runs PTX with package ptx.
//
//	gpu := fakegpu.New(t, fakegpu.Config{Devices: 2})
//	d, err := cuda.Open(cuda.Options{Device: 1})
//
// A test fails if a kernel made an error, or if an object of the driver was not freed: a context,
// memory, a stream, an event, a module, pinned or registered memory.
//
// # Order
//
// Work on a stream is executed when its result is needed ([Lazy]), at once ([Eager]), or at random
// points in between ([Random]). Lazy order executes all work that no event or wait orders as late
// as possible, so that a missing wait is detected: as a read of unwritten memory, or as memory
// written too early.
//
// # Faults
//
// [Driver.Inject] makes calls fail, or a device disappear while a kernel runs; Config simulates
// missing or outdated drivers.
package fakegpu
