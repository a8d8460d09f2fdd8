//go:build cuda && linux && cgo

package cublas

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/expect"
)

func open(t *testing.T, o Options) (*cuda.Device, *Handle) {
	t.Helper()
	fakegpu.New(t, fakegpu.Config{})
	d, err := cuda.Open(cuda.Options{Rank: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	h, err := Open(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, h
}

// upload copies x to the device.
func upload(t *testing.T, d *cuda.Device, x []float32) cuda.Ptr {
	t.Helper()
	b, err := d.Alloc(cuda.Activations, int64(4*len(x)))
	if err != nil {
		t.Fatal(err)
	}
	if err := cuda.CopyIn(d.Compute, b.Ptr, x); err != nil {
		t.Fatal(err)
	}
	return b.Ptr
}

// reference computes p on host memory, in float64.
func reference(p Product, a, b, c []float32) []float32 {
	at := func(x []float32, ld int, trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return float64(x[i*ld+j])
	}
	out := append([]float32(nil), c...)
	for i := range p.M {
		for j := range p.N {
			var s float64
			for k := range p.K {
				s += at(a, p.LDA, p.TransA, i, k) * at(b, p.LDB, p.TransB, k, j)
			}
			s *= float64(p.Alpha)
			if p.Beta != 0 {
				s += float64(p.Beta) * float64(c[i*p.LDC+j])
			}
			out[i*p.LDC+j] = float32(s)
		}
	}
	return out
}

func TestGemm(t *testing.T) {
	d, h := open(t, Options{Library: fakelibs.Build(t, "cublas")})
	if h.Version() != 120405 && !fakegpu.Real() {
		t.Errorf("version %d", h.Version())
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []Product{
		{M: 1, N: 1, K: 1, Alpha: 1},
		{M: 3, N: 5, K: 7, Alpha: 1},
		{M: 3, N: 5, K: 7, Alpha: 1, TransA: true},
		{M: 3, N: 5, K: 7, Alpha: 1, TransB: true},
		{M: 4, N: 2, K: 9, Alpha: -2, Beta: 1, TransA: true, TransB: true},
		{M: 33, N: 31, K: 32, Alpha: 1, Beta: 0.5},
		{M: 5, N: 3, K: 0, Alpha: 1}, // C becomes zeros
		{M: 0, N: 3, K: 2, Alpha: 1},
		{M: 3, N: 4, K: 2, Alpha: 1, LDA: 7, LDB: 6, LDC: 9}, // pieces of wider matrices
		{M: 3, N: 4, K: 2, Alpha: 1, TransA: true, TransB: true, LDA: 5, LDB: 3, LDC: 4},
	} {
		want := c
		or := func(ld *int, trans bool, rows, cols int) int {
			if trans {
				rows, cols = cols, rows
			}
			if *ld == 0 {
				*ld = max(cols, 1)
			}
			return rows * *ld
		}
		a := expect.Normals(r, or(&want.LDA, c.TransA, c.M, c.K)+1)
		b := expect.Normals(r, or(&want.LDB, c.TransB, c.K, c.N)+1)
		out := expect.Normals(r, or(&want.LDC, false, c.M, c.N)+1)
		c.A, c.B, c.C = upload(t, d, a), upload(t, d, b), upload(t, d, out)
		h.Gemm(d.Compute, c)
		got := make([]float32, len(out))
		if err := cuda.CopyOut(d.Compute, got, c.C); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for i, w := range reference(want, a, b, out) {
			// Sums of K products of about 1, each rounded to 2^-24.
			if math.Abs(float64(got[i]-w)) > 1e-6*float64(c.K+1) {
				t.Fatalf("%+v: element %d is %v, want %v", c, i, got[i], w)
			}
		}
	}
}

// Only the requested precision reaches the library.
func TestPrecision(t *testing.T) {
	lib := fakelibs.Build(t, "cublas")
	const x = 1 + 1.0/(1<<9) + 1.0/(1<<20) // TF32 rounds away the last term, BF16 the last two
	for p, want := range map[Precision]float32{F32: x, TF32: 1 + 1.0/(1<<9), BF16: 1} {
		t.Run(p.String(), func(t *testing.T) {
			d, h := open(t, Options{Library: lib, Precision: p})
			out := upload(t, d, []float32{0})
			h.Gemm(d.Compute, Product{M: 1, N: 1, K: 1, Alpha: 1, A: upload(t, d, []float32{x}), B: upload(t, d, []float32{1}), C: out})
			got := make([]float32, 1)
			// A real library may take a product of one element without tensor cores.
			if err := cuda.CopyOut(d.Compute, got, out); err != nil || got[0] != want && !(fakegpu.Real() && got[0] == x) {
				t.Errorf("%v, want %v, %v", got, want, err)
			}
			if h.Precision() != p {
				t.Errorf("precision %v", h.Precision())
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	for name, c := range map[string]struct {
		o     Options
		env   string
		words []string
	}{
		"named file":  {Options{}, "/nowhere/libcublas.so.12", []string{"GNB_LIBCUBLAS", "/nowhere"}},
		"no library":  {Options{Library: "/nowhere/libcublas.so.12"}, "", []string{"loading /nowhere"}},
		"another one": {Options{Library: fakelibs.Build(t, "nccl")}, "", []string{"has no cublas", "another version"}},
		"refuses":     {Options{Library: fakelibs.Build(t, "cublas", "-DFAIL_CREATE=1")}, "", []string{"device 0", "rank 1", "starting cuBLAS: cuBLAS: not initialised"}},
		"precision":   {Options{Precision: 9}, "", []string{"unknown precision"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GNB_LIBCUBLAS", c.env)
			fakegpu.New(t, fakegpu.Config{})
			d, err := cuda.Open(cuda.Options{Rank: 1})
			if err != nil {
				t.Fatal(err)
			}
			h, err := Open(d, c.o)
			if h != nil || err == nil {
				t.Fatalf("%v, %v", h, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSizesThatCuBLASDoesNotTake(t *testing.T) {
	fakegpu.New(t, fakegpu.Config{})
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(d, Options{Library: fakelibs.Build(t, "cublas")})
	if err != nil {
		t.Fatal(err)
	}
	h.Gemm(d.Compute, Product{M: 1 << 31, N: 1, K: 1, Alpha: 1})
	if err := d.Compute.Sync(); !errors.Is(err, cuda.InvalidValue) {
		t.Error(err)
	}
	if err := d.Close(); err == nil {
		t.Error("Close does not report the failure")
	}
}
