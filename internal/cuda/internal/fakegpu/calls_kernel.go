//go:build cuda && linux && cgo

package fakegpu

import "C"

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/graphnb/graphnb/internal/cuda/internal/ptx"
)

// module is a loaded module, and function is one of its kernels with its launch limits.
type module struct {
	m         *ptx.Module
	functions []uintptr
}

type function struct {
	k      *ptx.Kernel
	shared int // the largest dynamic shared memory allowed; 0: what static shared memory leaves
}

// mostShared is the largest dynamic shared memory allowed.
func (f *function) mostShared() int {
	if f.shared == 0 {
		return ptx.StaticShared - f.k.Shared
	}
	return f.shared
}

// parsed caches parsed modules by source: they are immutable, so all devices of the process share
// them.
var parsed sync.Map

func parse(src string) (*ptx.Module, error) {
	if m, ok := parsed.Load(src); ok {
		return m.(*ptx.Module), nil
	}
	read := ptx.Parse
	if strings.HasPrefix(src, "// sha256 ") {
		// GraphNB's own kernels are parsed when they are first launched, which saves each process half a second;
		// TestParseKernels parses all of them.
		read = ptx.Outline
	}
	m, err := read("module", src)
	if err == nil {
		parsed.Store(src, m)
	}
	return m, err
}

//export fkModuleLoadDataEx
func fkModuleLoadDataEx(h *uintptr, image unsafe.Pointer, n C.uint, options *C.int, values *unsafe.Pointer) C.int {
	return use("cuModuleLoadDataEx", func(d *device) int {
		m, err := parse(C.GoString((*C.char)(image)))
		if err != nil {
			writeLog(err.Error(), unsafe.Slice(options, n), unsafe.Slice(values, n))
			return invalidPTX
		}
		*h = d.dr.add(&module{m: m})
		return success
	})
}

// writeLog writes a text to the error-log buffer in the options of loading a module.
func writeLog(text string, options []C.int, values []unsafe.Pointer) {
	const errorLog, errorLogSize = 5, 6
	var to unsafe.Pointer
	var size int
	for i, o := range options {
		switch o {
		case errorLog:
			to = values[i]
		case errorLogSize:
			size = int(*(*uintptr)(unsafe.Pointer(&values[i])))
		}
	}
	if to != nil && size > 0 {
		b := unsafe.Slice((*byte)(to), size)
		b[copy(b[:size-1], text)] = 0
	}
}

//export fkModuleUnload
func fkModuleUnload(h unsafe.Pointer) C.int {
	return giveBack("cuModuleUnload", func(d *device) int {
		m, ok := object[*module](d.dr, uintptr(h))
		if !ok {
			return invalidHandle
		}
		d.drainAll()
		for _, f := range m.functions {
			d.dr.forget(f)
		}
		d.dr.forget(uintptr(h))
		return success
	})
}

//export fkModuleGetFunction
func fkModuleGetFunction(h *uintptr, mod unsafe.Pointer, name *C.char) C.int {
	return use("cuModuleGetFunction", func(d *device) int {
		m, ok := object[*module](d.dr, uintptr(mod))
		if !ok {
			return invalidHandle
		}
		k, err := m.m.Kernel(C.GoString(name))
		if err != nil {
			return notFound
		}
		*h = d.dr.add(&function{k: k})
		m.functions = append(m.functions, *h)
		return success
	})
}

//export fkFuncSetAttribute
func fkFuncSetAttribute(h unsafe.Pointer, a, v C.int) C.int {
	return use("cuFuncSetAttribute", func(d *device) int {
		const maxDynamicShared, optIn = 8, 96 << 10
		f, ok := object[*function](d.dr, uintptr(h))
		if !ok {
			return invalidHandle
		}
		if f.k.Decode() != nil || a != maxDynamicShared || int(v)+f.k.Shared > optIn {
			return invalidValue
		}
		f.shared = int(v)
		return success
	})
}

//export fkLaunchKernel
func fkLaunchKernel(h unsafe.Pointer, gx, gy, gz, bx, by, bz, shared C.uint, s unsafe.Pointer, params, extra *unsafe.Pointer) C.int {
	dr := installed.Load()
	f, ok := object[*function](dr, uintptr(h))
	if !ok {
		return invalidHandle
	}
	if err := f.k.Decode(); err != nil {
		return invalidPTX
	}
	grid, block := ptx.Dim{X: int(gx), Y: int(gy), Z: int(gz)}, ptx.Dim{X: int(bx), Y: int(by), Z: int(bz)}
	threads := block.X * block.Y * block.Z
	switch {
	case grid.X*grid.Y*grid.Z*threads == 0, grid.X > ptx.MaxGridX, grid.Y > ptx.MaxGridYZ, grid.Z > ptx.MaxGridYZ,
		threads > ptx.MaxThreads, block.Z > 64, int(shared) > f.mostShared():
		return invalidValue
	case threads > f.k.MaxThreads:
		return tooManyResources
	}
	// Copy the parameters now: the driver has read them when it returns.
	bytes := make([]byte, f.k.ParamBytes())
	for i, p := range unsafe.Slice(params, len(f.k.Params)) {
		to := f.k.Params[i]
		copy(bytes[to.Offset:to.Offset+to.Size], unsafe.Slice((*byte)(p), to.Size))
	}
	var lost *Fault
	refused := C.int(success)
	status := onStream("", s, func(d *device) op {
		if lost = dr.injected(d.n, "cuLaunchKernel", f.k.Name); lost != nil && !lost.Lost {
			refused = C.int(lost.Status)
			return op{}
		}
		d.launched[f.k.Name]++
		d.blocks[f.k.Name] += grid.X * grid.Y * grid.Z
		return op{f: func() int {
			if lost != nil {
				return lost.Status
			}
			d.machine.MaxShared = max(ptx.StaticShared, f.mostShared()+f.k.Shared)
			return d.check(d.machine.LaunchRaw(f.k, grid, block, int(shared), bytes))
		}}
	})
	return max(status, refused)
}
