// Package fakegpu is a CUDA driver for tests, in process: it lies behind the shim's table, under
// gorgonia.org/cu as it is, has several devices, and runs the PTX that it is given by package ptx.
//
//	gpu := fakegpu.New(t, fakegpu.Config{Devices: 2})
//	d, err := cuda.Open(cuda.Options{Device: 1})
//
// A test ends with an error where a kernel did something wrong, or where something of the driver's was
// left behind: a context, memory, a stream, an event, a module, pinned or registered memory.
//
// # Order
//
// Work that is put on a stream waits there until something needs it ([Lazy]), is done at once ([Eager]),
// or is done at random points in between ([Random]). Lazy order lets everything that no event
// and no wait orders happen as late as it can, so that a wait that is missing shows: as memory that
// nobody has written, or as memory written too early.
//
// # Faults
//
// [Driver.Inject] makes calls fail, or a device vanish while a kernel runs; Config describes drivers
// that are missing or too old.
package fakegpu
