package kernels

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda/internal/ptx"
	"github.com/graphnb/graphnb/internal/expect"
)

// gpu runs kernels on the interpreter.
type gpu struct {
	t *testing.T
	m *ptx.Machine
}

var parsed = sync.OnceValues(func() (map[string]*ptx.Kernel, error) {
	all := map[string]*ptx.Kernel{}
	for _, m := range Modules() {
		mod, err := ptx.Parse(m.Name+".ptx", m.PTX)
		if err != nil {
			return nil, err
		}
		for _, k := range mod.Kernels() {
			all[k.Name] = k
		}
	}
	return all, nil
})

// orders lists the orders of threads and blocks in which every kernel runs.
var orders = []ptx.Order{{}, {Descending: true}, {Shuffle: 7}}

// each runs test in every order; with -short, only in the shuffled one.
func each(t *testing.T, test func(g *gpu)) {
	t.Helper()
	tried := orders
	if testing.Short() {
		tried = orders[len(orders)-1:]
	}
	for _, o := range tried {
		m := ptx.NewMachine(ptx.NewMemory(0, 1<<30))
		m.Order = o
		test(&gpu{t, m})
	}
}

// put returns the address of a copy of s on the device.
func put[T int32 | int64 | uint16 | uint32 | float32 | float64](g *gpu, s []T) uint64 {
	g.t.Helper()
	at := g.room(len(s) * int(unsafe.Sizeof(*new(T))))
	b, err := binary.Append(nil, binary.LittleEndian, s)
	if err == nil && len(b) > 0 {
		err = g.m.Memory.Write(at, b)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return at
}

// room allocates n unwritten bytes.
func (g *gpu) room(n int) uint64 {
	g.t.Helper()
	at, err := g.m.Memory.Alloc(int64(max(n, 1)))
	if err != nil {
		g.t.Fatal(err)
	}
	return at
}

// get returns n elements at an address; the interpreter checks that all of them are written.
func get[T int32 | int64 | uint8 | uint32 | float32 | float64](g *gpu, at uint64, n int) []T {
	g.t.Helper()
	out := make([]T, n)
	b := make([]byte, n*int(unsafe.Sizeof(*new(T))))
	if n > 0 {
		if err := g.m.Memory.Read(at, b); err != nil {
			g.t.Fatal(err)
		}
	}
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// run launches a kernel with its shape and, in the last of the orders, with a single block, so that
// it must stride.
func (g *gpu) run(name string, s Shape, args ...any) {
	g.t.Helper()
	all, err := parsed()
	if err != nil {
		g.t.Fatal(err)
	}
	k := all[name]
	if k == nil {
		g.t.Fatalf("there is no kernel %s", name)
	}
	if s.Grid == 0 {
		return
	}
	if g.m.Order.Shuffle != 0 {
		s.Grid = 1
	}
	if err := g.m.Launch(k, ptx.D(s.Grid), ptx.Dim{X: s.X, Y: s.Y}, 0, args...); err != nil {
		g.t.Fatal(err)
	}
	ran.Store(name, true)
}

// ran holds the names of the launched kernels.
var ran sync.Map

// elsewhere maps the modules whose kernels other packages test to these packages.
var elsewhere = map[string]string{"sample": "internal/cuda/sampler", "weighted": "internal/cuda/sampler", "labor": "internal/cuda/sampler", "bysource": "internal/cuda/sampler", "loops": "internal/cuda/sampler", "slots": "internal/cuda/store"}

// TestMain checks, after a full run, that a test has launched every kernel, except those that
// another package tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && !testing.Short() && flag.Lookup("test.run").Value.String() == "" {
		for _, name := range Names() {
			k, _ := Lookup(name)
			if _, ok := ran.Load(name); !ok && elsewhere[k.Module] == "" {
				fmt.Printf("FAIL: no test launched the kernel %s\n", name)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// out allocates memory for n elements that a kernel writes. With acc it holds random values, which
// out also returns for the reference to add to; without acc it is unwritten.
func (g *gpu) out(n int, acc bool) (uint64, []float32) {
	if !acc {
		return g.room(4 * n), make([]float32, n)
	}
	x := random(n, 99)
	return put(g, x), x
}

// asFlag converts a bool to a kernel's flag.
func asFlag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// shapes lists sizes of matrices: empty, one element, next to the sizes of warps and blocks, and rows that held.cuh
// reads in two tiles of four columns at a time.
var shapes = [][2]int{{0, 3}, {3, 0}, {1, 1}, {31, 33}, {32, 32}, {33, 31}, {7, 4}, {1025, 2}, {2, 1025}, {3, 260}}

var cpu = ops.CPU(1)

// buf wraps host memory for the reference.
func buf(x []float32) ops.Buffer { return ops.HostBuffer(x) }

func random(n int, seed uint64) []float32 {
	return expect.Normals(rand.New(rand.NewPCG(uint64(n), seed)), n)
}

// near compares got with want. The tolerance is in units of 2^-23 of the greater of 1 and the
// wanted value.
func near(t *testing.T, what string, got, want []float32, units float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		v := float64(got[i])
		if math.Float32bits(got[i]) == math.Float32bits(w) {
			continue
		}
		if !(math.Abs(v-float64(w)) <= units*0x1p-23*max(1, math.Abs(float64(w)))) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, v, w)
		}
	}
}
