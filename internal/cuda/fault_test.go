//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
)

// oneLine checks that an error is one line that contains all of the words.
func oneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// Each reason why a device cannot be opened gives one sentence, and Open leaves no driver object
// behind (fakegpu checks this).
func TestOpenFails(t *testing.T) {
	inject := func(call string, after, status int) *fakegpu.Fault {
		return &fakegpu.Fault{Device: 1, Call: call, After: after, Status: status}
	}
	for name, c := range map[string]struct {
		machine fakegpu.Config
		fault   *fakegpu.Fault
		o       Options
		is      error
		words   []string
	}{
		"no driver":       {fakegpu.Config{Missing: "libcuda.so.1: cannot open shared object file"}, nil, Options{}, ErrNoDriver, []string{"libcuda.so.1", "run on the CPU"}},
		"old driver":      {fakegpu.Config{Version: 11040}, nil, Options{}, ErrOldDriver, []string{"CUDA 11.4", "11.8", "update the driver"}},
		"no device":       {fakegpu.Config{Init: 100}, nil, Options{}, NoDevice, []string{"sees no GPU", "CUDA_VISIBLE_DEVICES"}},
		"driver mismatch": {fakegpu.Config{Init: 803}, nil, Options{}, DriverMismatch, []string{"nvidia-smi"}},
		"device number":   {fakegpu.Config{Devices: 2}, nil, Options{Device: 2, Rank: 1}, InvalidDevice, []string{"device 2, rank 1", "sees 2"}},
		"old device":      {fakegpu.Config{Capability: 61}, nil, Options{}, NotSupported, []string{"6.1", "7.0"}},
		"taken":           {fakegpu.Config{Devices: 2}, inject("cuDevicePrimaryCtxRetain", 0, 2), Options{Device: 1, Rank: 1}, OutOfMemory, []string{"device 1 (PTX interpreter), rank 1", "another process"}},
		"memory info":     {fakegpu.Config{Devices: 2}, inject("cuMemGetInfo_v2", 0, 999), Options{Device: 1}, Unknown, []string{"free memory"}},
		"first stream":    {fakegpu.Config{Devices: 2}, inject("cuStreamCreateWithPriority", 0, 2), Options{Device: 1}, OutOfMemory, []string{"compute stream"}},
		"host memory":     {fakegpu.Config{Devices: 2}, inject("cuMemHostAlloc", 1, 2), Options{Device: 1}, OutOfMemory, []string{"pinning 2.0 MiB of host memory", "container's memory limit"}},
		"compiling":       {fakegpu.Config{Devices: 2}, &fakegpu.Fault{Device: 1, Call: "cuModuleLoadDataEx", After: 1, Times: 9, Status: 218}, Options{Device: 1}, InvalidPTX, []string{"compiling the kernels of", "update of the driver"}},
		"loading":         {fakegpu.Config{Devices: 2}, inject("cuModuleGetFunction", 5, 2), Options{Device: 1}, OutOfMemory, []string{"loading the kernel"}},
		"third stream":    {fakegpu.Config{Devices: 2}, inject("cuStreamCreateWithPriority", 2, 2), Options{Device: 1}, OutOfMemory, []string{"sampling stream"}},
	} {
		t.Run(name, func(t *testing.T) {
			gpu := fakegpu.New(t, c.machine)
			if c.fault != nil {
				gpu.Inject(*c.fault)
			}
			d, err := Open(c.o)
			if d != nil || !errors.Is(err, c.is) {
				t.Fatalf("device %v, error %v", d, err)
			}
			oneLine(t, err, append(c.words, "cuda: ")...)
		})
	}
}

// A kernel that writes to an illegal address fails the device, debug mode names the kernel, and
// closing frees all objects.
func TestIllegalAddress(t *testing.T) {
	for _, debug := range []bool{false, true} {
		gpu := fakegpu.New(t, fakegpu.Config{Quiet: true, Devices: 2})
		d, err := Open(Options{Device: 1, Rank: 3, Debug: debug})
		check(t, err)
		check(t, d.AddModule("test", testPTX))
		x := alloc(t, d.Compute, 4)
		d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, Ptr(64), float32(1)) // the faulty launch
		d.Launch("test_add_u32", Dim{X: 1}, Dim{X: 1}, 0, x, x, 0, 1)
		err = d.Compute.Sync()
		if !errors.Is(err, IllegalAddress) {
			t.Fatal(err)
		}
		if debug {
			oneLine(t, err, "device 1 (PTX interpreter), rank 3: launching test_store_f32", "grid 1×1×1")
		} else {
			oneLine(t, err, "device 1", "rank 3", "last launched: test_add_u32", "GNB_CUDA_DEBUG=1")
		}
		if f := gpu.TakeFaults(); len(f) != 1 || !strings.Contains(f[0].Error(), "test_store_f32") {
			t.Errorf("the interpreter found %v", f)
		}
		// Every later call returns the first failure.
		if _, again := d.Alloc(Params, 4); again != err {
			t.Errorf("Alloc: %v", again)
		}
		if again := CopyOut(d.Compute, make([]float32, 1), x.Ptr); again != err {
			t.Errorf("CopyOut: %v", again)
		}
		x.Free()
		if again := d.Close(); again != err {
			t.Errorf("Close: %v", again)
		}
		gpu.Uninstall()
	}
}

// A device that is lost at various points of a run fails with the same error in every call.
func TestDeviceLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault fakegpu.Fault
	}{
		{"in a kernel", fakegpu.Fault{Kernel: "test_add_u32", After: 3, Status: 719, Lost: true}},
		{"at a launch", fakegpu.Fault{Kernel: "test_add_u32", After: 3, Status: 719}},
		{"while waiting", fakegpu.Fault{Call: "cuEventSynchronize", After: 2, Status: 999, Lost: true}},
		{"in a copy", fakegpu.Fault{Call: "cuMemcpyHtoDAsync_v2", After: 2, Status: 999, Lost: true}},
		{"while freeing", fakegpu.Fault{Call: "cuEventRecord", After: 4, Status: 999, Lost: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpu := fakegpu.New(t, fakegpu.Config{})
			gpu.Inject(c.fault)
			d := open(t, Options{Rank: 2})
			p, err := d.Pin(4096)
			check(t, err)
			var failed error
			for range 8 {
				x, err := d.Sampling.Alloc(Sampling, 1000)
				if err != nil {
					failed = err
					break
				}
				if err := CopyIn(d.Compute, x.Ptr, iota32(250)); err != nil {
					failed = err
					break
				}
				x.UsedOn(d.Compute)
				d.Launch("test_add_u32", Blocks(250, 32), Dim{X: 32}, 0, x, x, 250, 1)
				x.Free()
				if err := d.Compute.Sync(); err != nil {
					failed = err
					break
				}
			}
			var s Status
			if !errors.As(failed, &s) || s != Status(c.fault.Status) {
				t.Fatalf("%v", failed)
			}
			oneLine(t, failed, "device 0", "rank 2")
			check(t, p.Free())
			if err := d.Close(); err != failed {
				t.Errorf("closing: %v", err)
			}
		})
	}
}

func TestKernelsDoNotCompile(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	check(t, d.AddModule("broken", ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry broken()\n{\n\t.reg .b32 %r<2>;\n\tfrobnicate.u32 %r1, 0;\n}\n"))
	d.Launch("broken", Dim{X: 1}, Dim{}, 0)
	err := d.Compute.Sync()
	if !errors.Is(err, InvalidPTX) {
		t.Fatal(err)
	}
	oneLine(t, err, "compiling the kernels of broken", "line 7", "frobnicate")
}

func TestPinnedMemory(t *testing.T) {
	gpu := fakegpu.New(t, fakegpu.Config{Devices: 2})
	d, other := open(t, Options{}), open(t, Options{Device: 1})
	const n = 100
	p, err := d.Pin(4 * n)
	check(t, err)
	copy(p.Bytes, bytesOf(iota32(n)))
	x := alloc(t, d.Compute, 4*n)
	// Kernels of every device can read pinned memory.
	d.Launch("test_add_u32", Dim{X: 1}, Dim{X: 128}, 0, x, p.Ptr, n, 1)
	y := alloc(t, other.Compute, 4*n)
	other.Launch("test_add_u32", Dim{X: 1}, Dim{X: 128}, 0, y, p.Ptr, n, 2)
	got := make([]uint32, n)
	check(t, CopyOut(d.Compute, got, x.Ptr))
	if got[n-1] != n {
		t.Errorf("%v", got)
	}
	check(t, CopyOut(other.Compute, got, y.Ptr))
	if got[n-1] != n+1 {
		t.Errorf("%v", got)
	}
	d.Compute.CopyToPinned(p, 4, x.Ptr, 8)
	check(t, d.Compute.Sync())
	if p.Bytes[4] != 1 || p.Bytes[8] != 2 {
		t.Errorf("%v", p.Bytes[:12])
	}
	check(t, p.Free())
	check(t, p.Free())

	// Kernels can read memory that is registered read-only.
	page := make([]uint32, 1024)
	r, err := d.Register(bytesOf(page), true)
	check(t, err)
	d.Launch("test_add_u32", Dim{X: 1}, Dim{X: 128}, 0, x, r.Ptr, n, 7)
	check(t, CopyOut(d.Compute, got, x.Ptr))
	if got[0] != 7 {
		t.Errorf("%v", got)
	}
	if _, err := d.Register(bytesOf(page), true); err == nil {
		t.Error("memory was registered twice")
	} else {
		oneLine(t, err, "registering 4.0 KiB", "registered already")
	}
	check(t, r.Free())
	if _, err := d.Register(nil, false); err == nil {
		t.Error("an empty slice was registered")
	}
	gpu.Inject(fakegpu.Fault{Call: "cuMemHostAlloc", Status: 2, Times: 1})
	_, err = d.Pin(1 << 20)
	if !errors.Is(err, OutOfMemory) {
		t.Fatal(err)
	}
	oneLine(t, err, "pinning 1.0 MiB of host memory", "container's memory limit")
	// An unknown failure to pin host memory does not fail the device.
	for call, f := range map[string]func() (*Pinned, error){
		"cuMemHostAlloc":       func() (*Pinned, error) { return d.Pin(1 << 20) },
		"cuMemHostRegister_v2": func() (*Pinned, error) { return d.Register(bytesOf(page), true) },
	} {
		gpu.Inject(fakegpu.Fault{Call: call, Status: int(Unknown), Times: 1})
		if _, err := f(); !errors.Is(err, Unknown) || d.Err() != nil {
			t.Fatalf("%s: %v; the device: %v", call, err, d.Err())
		}
	}
	// Close frees memory that the test has not freed.
	_, err = other.Register(bytesOf(page), false)
	check(t, err)
}

// If the driver cannot compile kernels, the error names the missing part and what to do.
func TestNoCompiler(t *testing.T) {
	for status, words := range map[Status][]string{
		NoCompiler:      {"libnvidia-ptxjitcompiler", "NVIDIA_DRIVER_CAPABILITIES", "compute"},
		NoBinary:        {"no code for this device"},
		OperatingSystem: {"a call of the operating system failed"},
	} {
		gpu := fakegpu.New(t, fakegpu.Config{})
		d, err := Open(Options{Rank: 2})
		check(t, err)
		check(t, d.AddModule("test", testPTX))
		gpu.Inject(fakegpu.Fault{Call: "cuModuleLoadDataEx", Status: int(status)})
		x := alloc(t, d.Compute, 4)
		d.Launch("test_store_f32", Dim{X: 1}, Dim{}, 0, x, float32(1))
		err = d.Compute.Sync()
		if !errors.Is(err, status) {
			t.Errorf("%d: %v", int(status), err)
		}
		oneLine(t, err, append(words, "rank 2")...)
		if again := d.Close(); again != err {
			t.Errorf("Close: %v", again)
		}
		gpu.Uninstall()
	}
}

// A call that the driver lacks is an error that names the call.
func TestAbsentCall(t *testing.T) {
	gpu := fakegpu.New(t, fakegpu.Config{})
	d := open(t, Options{})
	gone := gpu.Without("cuMemsetD8Async")
	defer gone()
	x := alloc(t, d.Compute, 4)
	d.Compute.Fill8(x.Ptr, 0, 4)
	err := d.Compute.Sync()
	if !errors.Is(err, NotFound) {
		t.Fatal(err)
	}
	oneLine(t, err, "filling memory", "cuMemsetD8Async")
}

// Open compiles the package's kernels, so a launch does not wait for the compiler.
func TestOpenCompiles(t *testing.T) {
	gpu := fakegpu.New(t, fakegpu.Config{})
	d, err := Open(Options{})
	check(t, err)
	gpu.Inject(fakegpu.Fault{Call: "cuModuleLoadDataEx", Times: 1, Status: 2})
	gpu.Inject(fakegpu.Fault{Call: "cuModuleGetFunction", Times: 1, Status: 2})
	x := alloc(t, d.Compute, 8)
	check(t, CopyIn(d.Compute, x.Ptr, []float32{1, 0}))
	d.Launch("spread_f32", Dim{X: 1}, Dim{X: 32}, 0, x.Ptr+4, x.Ptr, 1, 0)
	check(t, d.Compute.Sync())
	x.Free()
	check(t, d.Close())
}
