//go:build cuda && linux && cgo

package backend

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/cublas"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakelibs"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/testkit/backendtest"
)

// onGPU makes the tests run on a real device; "make gpu-check" sets it.
var onGPU = fakegpu.Real()

// open returns a backend on a device, by default a simulated one; both are closed when the test
// ends.
func open(t testing.TB, c fakegpu.Config) *Backend {
	t.Helper()
	if !onGPU {
		fakegpu.New(t, c)
	}
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	be, err := New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		count(d)
		be.Close()
		if err := d.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return be
}

// launched holds the names of the kernels that all tests have launched.
var launched sync.Map

func count(d *cuda.Device) {
	for name := range d.Launches() {
		launched.Store(name, true)
	}
}

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute on the interpreter")
	}
	be := open(t, fakegpu.Config{NoRaces: true, Memory: 8 << 30})
	if onGPU {
		backendtest.Run(t, be)
	} else {
		backendtest.RunSlow(t, be)
	}
}

// withBLAS is open with cuBLAS: the real library on a real device, else the test library.
func withBLAS(t testing.TB, c fakegpu.Config) *Backend {
	be := open(t, c)
	var o cublas.Options
	if !onGPU {
		o.Library = fakelibs.Build(t, "cublas")
	}
	var err error
	if be.blas, err = cublas.Open(be.Device(), o); err != nil {
		if onGPU {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return be
}

// With cuBLAS, the backend uses no kernel of its own for products, in every form of a product,
// including empty ones.
func TestBLAS(t *testing.T) {
	be := withBLAS(t, fakegpu.Config{})
	for _, s := range [][3]int{{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {5, 33, 7}} {
		m, n, k := s[0], s[1], s[2]
		pass := func(backend ops.Backend, transposed bool) [][]float32 {
			f := tensor.NewFwd(tensor.Config{Backend: backend, Grad: true})
			defer f.Close()
			leaf := func(r, c int) *tensor.Tensor {
				x := make([]float32, r*c)
				for i := range x {
					x[i] = float32(i*7%11) - 4
				}
				return f.Leaf(r, c, x, nil)
			}
			x, w, v, u, bias := leaf(m, k), leaf(k, n), leaf(m, 2), leaf(2, n), leaf(1, n)
			first := f.MatMul(x, w)
			if transposed {
				w = leaf(n, k)
				first = f.Linear(x, w, nil)
			}
			y := f.AddRow(f.Add(first, f.MatMul(v, u)), bias)
			if err := f.SumAll(f.Mul(y, y)).Backward(); err != nil {
				t.Fatal(err)
			}
			return [][]float32{slices.Clone(y.Data()), x.Grad(), w.Grad(), v.Grad(), u.Grad(), bias.Grad()}
		}
		for _, transposed := range []bool{false, true} {
			got, want := pass(be, transposed), pass(nil, transposed)
			for i := range want { // small whole numbers, so sums are exact in any order
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%v, transposed %v: result %d is %g, want %g", s, transposed, i, got[i], want[i])
				}
			}
		}
	}
	for name := range be.Device().Launches() {
		if strings.HasPrefix(name, "gemm") {
			t.Errorf("%s was launched although there is cuBLAS", name)
		}
	}
}

// TestMain checks, after all tests of a full run, that they launched every kernel of the backend.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && !testing.Short() {
		for _, name := range kernels.Names() {
			k, _ := kernels.Lookup(name)
			if _, ok := launched.Load(name); !ok && slices.Contains(modules, k.Module) && !unused[name] {
				fmt.Printf("FAIL: no test launched the kernel %s\n", name)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// modules lists the modules whose kernels the backend launches.
var modules = []string{
	"distinct", "dropout", "edges", "elementwise", "gather", "gemm", "hub", "hubedges", "hubmax", "loss", "max", "norm", "optim", "reduce", "rows", "spmm", "transpose", "typed",
}

// unused lists the kernels that no operation needs.
var unused = map[string]bool{"gemm_tt_f32": true} // a product of two transposed factors

// The backend reads rows of a shared table in f16, some of them from a cache, at any width.
func TestTables(t *testing.T) {
	be := open(t, fakegpu.Config{})
	for _, cols := range []int{1, 4, 33, 36} {
		table, bits := make([]float32, 9*cols), make([]uint16, 9*cols)
		for i := range table {
			table[i] = float32(i%31+1) / 4
			f := math.Float32bits(table[i])
			bits[i] = uint16((f>>23&0xff-112)<<10 | f>>13&0x3ff)
		}
		const hot = 3 // this row is read from the cache; the table holds zeros in its place
		name := make([]float32, len(table))
		mem := &Memory{
			Ptr: upload(t, be, bits), Half: true,
			Cache: upload(t, be, bits[hot*cols:(hot+1)*cols]), Slots: upload(t, be, []int32{-1, -1, -1, 0, -1, -1, -1, -1, -1}),
		}
		if err := cuda.CopyIn(be.s, mem.Ptr+cuda.Ptr(2*hot*cols), make([]uint16, cols)); err != nil {
			t.Fatal(err)
		}
		be.Share(name, mem)
		rows := []int32{8, 0, hot, hot, 7}
		h := graphops.HostBlock{NumDst: 3, NumSrc: 5, Indptr: []int64{0, 3, 5, 305}, Indices: []int32{0, 4, 2, 1, 3}}
		for e := range 300 { // more edges than a group of lanes sums
			h.Indices = append(h.Indices, int32(e*3%5))
		}
		b := h.Block()
		passes := func(backend ops.Backend, table []float32) (agg, all []float32) {
			f := tensor.NewFwd(tensor.Config{Backend: backend})
			defer f.Close()
			x := f.RowsInput(table, cols, rows, nil)
			agg = slices.Clone(f.Aggregate(b, x, tensor.Mean).Data())
			return agg, slices.Clone(x.Data())
		}
		agg, all := passes(be, name)
		wantAgg, wantAll := passes(nil, table)
		if !slices.Equal(all, wantAll) {
			t.Errorf("%d columns: rows are %g, want %g", cols, all, wantAll)
		}
		for i, v := range agg {
			if math.Abs(float64(v-wantAgg[i])) > 1e-5 {
				t.Errorf("%d columns: means are %g, want %g", cols, agg, wantAgg)
				break
			}
		}
		be.Drop(name)
	}
}

// upload copies host to memory on the device, which is freed when the device closes.
func upload[T int32 | int64 | uint16](t testing.TB, be *Backend, host []T) cuda.Ptr {
	t.Helper()
	mem, err := be.Device().Alloc(cuda.Features, int64(len(host))*8)
	if err == nil {
		err = cuda.CopyIn(be.s, mem.Ptr, host)
	}
	if err != nil {
		t.Fatal(err)
	}
	return mem.Ptr
}
