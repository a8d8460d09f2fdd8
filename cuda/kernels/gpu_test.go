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

	"github.com/graphnb/graphnb/cuda/internal/ptx"
	"github.com/graphnb/graphnb/graphops/tensor"
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

// orders are those of threads and blocks that every kernel is run in.
var orders = []ptx.Order{{}, {Descending: true}, {Shuffle: 7}}

// each runs test in every order; with -short, in the shuffled one.
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

// put is a copy of s on the device.
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

// room is n bytes that nobody has written.
func (g *gpu) room(n int) uint64 {
	g.t.Helper()
	at, err := g.m.Memory.Alloc(int64(max(n, 1)))
	if err != nil {
		g.t.Fatal(err)
	}
	return at
}

// get is n elements at an address, all of which have been written.
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

// run launches a kernel as its shape says and, in the last of the orders, with a
// single block, which has to stride.
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

// ran are the kernels that were launched.
var ran sync.Map

// elsewhere are the modules whose kernels other packages test.
var elsewhere = map[string]string{"sample": "cuda/sampler", "weighted": "cuda/sampler", "bysource": "cuda/sampler", "slots": "cuda/store"}

// Every kernel is launched by a test of this package, or of the one that elsewhere
// names. It runs last.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" {
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

// out is memory for n elements that a kernel writes: with acc it holds some, which
// are returned too for the reference to add to, without it nobody has written it.
func (g *gpu) out(n int, acc bool) (uint64, []float32) {
	if !acc {
		return g.room(4 * n), make([]float32, n)
	}
	x := random(n, 99)
	return put(g, x), x
}

// asFlag is acc as kernels take it.
func asFlag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// shapes are matrices of every odd size.
var shapes = [][2]int{{0, 3}, {3, 0}, {1, 1}, {31, 33}, {32, 32}, {33, 31}, {7, 4}, {1025, 2}, {2, 1025}}

var cpu = tensor.CPU(1)

// buf is host memory as the reference takes it.
func buf(x []float32) tensor.Buffer { return tensor.HostBuffer(x) }

func random(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(uint64(n), seed))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// near compares with a tolerance in units of 2^-23 of the greater of 1 and the wanted value.
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
