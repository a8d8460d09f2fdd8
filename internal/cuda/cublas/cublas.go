// Package cublas multiplies matrices on a GPU with NVIDIA's cuBLAS, which is found and loaded at run time.
//
//	h, err := cublas.Open(d, cublas.Options{})
//	h.Gemm(d.Compute, cublas.Product{M: m, N: n, K: k, A: a, B: b, C: c, Alpha: 1})
//
// Matrices are row-major. Results are the same from run to run on the same device with the same library.
// Factors and products are float32, and so is the arithmetic unless Options.Precision says otherwise.
package cublas

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/libs"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// Precision is the arithmetic within a product of float32 matrices.
type Precision int

// The precisions. TF32 rounds the factors to 10 bits after the point (a relative error of about 5e-4
// each), BF16 to 7 (4e-3); both add in float32. A device without tensor cores for one uses float32.
const (
	F32 Precision = iota
	TF32
	BF16
)

func (p Precision) String() string {
	switch p {
	case F32:
		return "f32"
	case TF32:
		return "tf32"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("Precision(%d)", int(p))
}

// Options choose the library and the arithmetic.
type Options struct {
	Precision Precision
	// Library is the file to load; "" searches with package libs.
	Library string
}

// Handle is cuBLAS on one device. Closing the device closes it.
type Handle struct {
	d         *cuda.Device
	lib       library
	file      string
	version   int
	precision Precision
	h         uintptr
	stream    uintptr // the fields below belong to the device's goroutine
	workspace *cuda.Buffer
}

// library is a loaded cuBLAS. Its calls return errors of type Status.
type library interface {
	create() (h uintptr, version int, err error)
	destroy(h uintptr) error
	setStream(h, stream uintptr) error
	setWorkspace(h uintptr, p cuda.Ptr, n int64) error
	gemm(h uintptr, compute int, p Product) error
}

// Status is a result code of cuBLAS, a cublasStatus_t.
type Status int

func (s Status) Error() string {
	if t, ok := map[Status]string{
		1: "not initialised", 3: "allocation failed", 7: "invalid value", 8: "not supported by this device",
		11: "access to memory failed", 13: "the execution failed", 14: "internal error", 15: "not supported",
	}[s]; ok {
		return "cuBLAS: " + t
	}
	return fmt.Sprintf("cuBLAS error %d", int(s))
}

// Open loads cuBLAS and makes a handle on the device. If the library is missing, the error says how to
// install it; a caller that has other kernels for products can continue without it.
func Open(d *cuda.Device, o Options) (*Handle, error) {
	h := &Handle{d: d, precision: o.Precision, file: o.Library}
	if h.precision.compute() < 0 {
		return nil, fmt.Errorf("cublas: unknown precision %v; choose f32, tf32 or bf16", o.Precision)
	}
	if h.file == "" {
		found, err := libs.Find(libs.CuBLAS, d.Info().Driver)
		if err != nil {
			return nil, err
		}
		h.file = found[0].Path
	}
	var err error
	if h.lib, err = load(h.file); err != nil {
		return nil, fmt.Errorf("cublas: loading %s: %w", h.file, err)
	}
	n := sizes.Products(d.Memory().Limit) // cuBLAS then allocates none
	if h.workspace, err = d.Alloc(cuda.Workspace, n); err != nil {
		return nil, err
	}
	err = d.Do("starting cuBLAS", func() (err error) {
		h.h, h.version, err = h.lib.create()
		return err
	})
	if h.h != 0 {
		d.OnClose(func() { _ = h.lib.destroy(h.h) }) // the device is closed in any case
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, h.file)
	}
	return h, nil
}

// File returns the path of the loaded library.
func (h *Handle) File() string { return h.file }

// Version returns the library's version: 120405 for 12.4.5.
func (h *Handle) Version() int { return h.version }

// Precision returns the arithmetic of the products.
func (h *Handle) Precision() Precision { return h.precision }

// Product is C = Alpha·op(A)·op(B) + Beta·C in float32. op transposes A if TransA is set, and B if TransB is
// set: op(A) is [M,K], op(B) is [K,N] and C is [M,N]. LDA, LDB and LDC are the distances in elements between
// the starts of two consecutive stored rows; 0 means that there are no gaps. If Beta is 0, C is not read.
type Product struct {
	TransA, TransB bool
	M, N, K        int
	Alpha, Beta    float32
	A, B, C        cuda.Ptr
	LDA, LDB, LDC  int
}

// Gemm submits a product to a stream and returns at once; if it fails, the device fails. All products
// of one handle must use the same stream, because they share a workspace.
func (h *Handle) Gemm(s *cuda.Stream, p Product) {
	if p.M == 0 || p.N == 0 {
		return
	}
	fill := func(ld *int, trans bool, rows, cols int) {
		if trans {
			cols = rows
		}
		if *ld == 0 {
			*ld = max(cols, 1)
		}
	}
	fill(&p.LDA, p.TransA, p.M, p.K)
	fill(&p.LDB, p.TransB, p.K, p.N)
	fill(&p.LDC, false, p.M, p.N)
	for _, n := range []int{p.M, p.N, p.K, p.LDA, p.LDB, p.LDC} {
		if n < 0 || n > math.MaxInt32 {
			h.d.Fail("multiplying matrices", cuda.InvalidValue, fmt.Sprintf("cuBLAS does not support a product of [%d,%d] and [%d,%d]", p.M, p.K, p.K, p.N))
			return
		}
	}
	compute := h.precision.compute()
	s.Submit("multiplying matrices by cuBLAS", func(stream uintptr) error {
		if stream != h.stream {
			if err := h.lib.setStream(h.h, stream); err != nil {
				return err
			}
			// Setting the stream has reset the handle's workspace.
			if err := h.lib.setWorkspace(h.h, h.workspace.Ptr, h.workspace.Bytes); err != nil {
				return err
			}
			h.stream = stream
		}
		return h.lib.gemm(h.h, compute, p)
	})
}

// compute returns the cublasComputeType_t, or -1.
func (p Precision) compute() int {
	switch p {
	case F32:
		return 68
	case TF32:
		return 77
	case BF16:
		return 75
	}
	return -1
}
