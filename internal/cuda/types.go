package cuda

import "fmt"

// Ptr is an address that kernels use: in a device's memory, or of host memory that the device reads.
type Ptr uint64

// Dim is the size of a grid in blocks or of a block in threads. 0 means 1.
type Dim struct{ X, Y, Z int }

// Blocks returns the one-dimensional grid of blocks of size threads with a thread for each of n
// elements.
func Blocks(n, size int) Dim { return Dim{X: max((n+size-1)/size, 1)} }

func (d Dim) filled() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

func (d Dim) String() string {
	d = d.filled()
	return fmt.Sprintf("%d×%d×%d", d.X, d.Y, d.Z)
}

// Options select the device and how to open it. The zero value is the first device with most of its
// free memory.
type Options struct {
	// Device is the index among the devices that this process sees, which CUDA_VISIBLE_DEVICES may
	// have narrowed; 0 is the first one.
	Device int
	// Rank is the worker's rank, for errors; 0 is also that of a process alone.
	Rank int
	// Ranks is the number of workers that sum their gradients; 0 means 1.
	Ranks int
	// Limit is the most device memory in bytes that this process uses for buffers; 0 means the
	// memory free when the device is opened, less a twentieth for the driver and libraries. With
	// several Ranks at least 1 GB is left for NCCL's channels, or a quarter of the free memory if
	// that is less.
	Limit int64
	// Debug waits for every command and names the kernel that failed. GNB_CUDA_DEBUG=1 sets it too.
	Debug bool
	// Exact allocates every buffer separately, with exactly its size, and frees it at once. This is
	// slow and waits for the device, but a checker (compute-sanitizer, the interpreter of the
	// tests) then knows where each buffer ends. GNB_CUDA_EXACT=1 sets it too.
	Exact bool
	// Library is the driver's file or soname; "" is GNB_LIBCUDA, else libcuda.so.1.
	Library string
}

// Info describes a device.
type Info struct {
	Index      int
	Name       string
	UUID       string // GPU-xxxxxxxx-…, as nvidia-smi prints it
	Major      int    // compute capability
	Minor      int
	SMs        int   // multiprocessors
	Memory     int64 // bytes in all
	MaxShared  int   // bytes of shared memory a block can have, by opting in
	Driver     int   // CUDA version of the driver, 12040 for 12.4
	HostReads  bool  // kernels read registered host memory by its own address
	ReadOnlyOK bool  // read-only mappings can be registered
}

// Use is the purpose of a buffer; out-of-memory errors list the memory of each use.
type Use string

// The uses of device memory.
const (
	Params      Use = "parameters and gradients"
	Activations Use = "activations"
	Graph       Use = "graph"
	Features    Use = "features"
	Sampling    Use = "sampling"
	Staging     Use = "staging"
	Workspace   Use = "workspace"
)

// hint says how to reduce a use.
func (u Use) hint() string {
	switch u {
	case Graph:
		return "leave the graph in host memory (GNB_CUDA_GRAPH=pinned)"
	case Features:
		return "cache fewer rows of features on the device, or leave them in host memory (GNB_CUDA_FEATURES=pinned)"
	case Params:
		return "use a smaller model"
	default:
		return "use a smaller batch or fanout"
	}
}
