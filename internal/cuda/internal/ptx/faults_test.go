package ptx

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// faults returns the kernels of testdata/faults.cu.
func faults(t *testing.T) *Module {
	t.Helper()
	src, err := os.ReadFile("testdata/faults.ptx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse("faults.ptx", string(src))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFaultsAreOfTheirSource(t *testing.T) {
	src, err := os.ReadFile("testdata/faults.cu")
	if err != nil {
		t.Fatal(err)
	}
	ptx, err := os.ReadFile("testdata/faults.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("// sha256 %x\n", sha256.Sum256(src)); !strings.HasPrefix(string(ptx), want) {
		t.Error("testdata/faults.ptx is not compiled from the current faults.cu; the first lines of faults.cu say how to compile it")
	}
}

// bench is a machine, with helpers that allocate memory in one call.
type bench struct {
	t *testing.T
	*Machine
	mod *Module
}

func newBench(t *testing.T, o Order) *bench {
	m := NewMachine(NewMemory(0, 1<<24))
	m.Order = o
	return &bench{t, m, faults(t)}
}

// words returns memory that holds the given 32-bit words.
func (b *bench) words(w ...uint32) uint64 {
	b.t.Helper()
	var raw []byte
	for _, x := range w {
		raw = binary.LittleEndian.AppendUint32(raw, x)
	}
	addr := b.room(len(raw))
	if err := b.Memory.Write(addr, raw); err != nil {
		b.t.Fatal(err)
	}
	return addr
}

// room returns n bytes of unwritten memory.
func (b *bench) room(n int) uint64 {
	b.t.Helper()
	addr, err := b.Memory.Alloc(int64(n))
	if err != nil {
		b.t.Fatal(err)
	}
	return addr
}

func (b *bench) read(addr uint64, n int) []uint32 {
	b.t.Helper()
	raw := make([]byte, 4*n)
	if err := b.Memory.Read(addr, raw); err != nil {
		b.t.Fatal(err)
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return out
}

func (b *bench) launch(kernel string, grid, block Dim, shared int, args ...any) error {
	b.t.Helper()
	k, err := b.mod.Kernel(kernel)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.Launch(k, grid, block, shared, args...)
}

var orders = map[string]Order{"ascending": {}, "descending": {Descending: true}, "shuffled": {Shuffle: 1}, "shuffled 2": {Shuffle: 2}}

// The interpreter finds each fault in every order of threads, and describes it in words. If two
// threads cause a fault together, the thread that the error names depends on the order.
func TestFaults(t *testing.T) {
	for name, order := range orders {
		for _, c := range []struct {
			what   string
			kind   Kind
			says   string
			launch func(b *bench) error
		}{
			{"an element past the end", OutOfBounds, "0 bytes past the end of the allocation of 160 bytes", func(b *bench) error {
				return b.launch("add_one_too_far", D(2), D(32), 0, b.words(make([]uint32, 40)...), b.words(make([]uint32, 40)...), int64(40))
			}},
			{"an element before the start", OutOfBounds, "4 bytes before the allocation", func(b *bench) error {
				return b.launch("write_before", D(1), D(32), 0, b.room(128))
			}},
			{"a nil pointer", OutOfBounds, "a nil pointer", func(b *bench) error {
				return b.launch("two_blocks", D(1), D(32), 0, uint64(0))
			}},
			{"a host pointer", OutOfBounds, "in no allocation of this device", func(b *bench) error {
				return b.launch("two_blocks", D(1), D(32), 0, uint64(0x7f0000001000))
			}},
			{"another device's memory", OutOfBounds, "in no allocation of this device", func(b *bench) error {
				other, err := NewMemory(1, 1<<20).Alloc(128)
				if err != nil {
					return err
				}
				return b.launch("two_blocks", D(1), D(32), 0, other)
			}},
			{"memory that ends within the access", OutOfBounds, "only 2 of them", func(b *bench) error {
				return b.launch("two_blocks", D(1), D(1), 0, b.room(2))
			}},
			{"freed memory", Freed, "an allocation of 128 bytes that was freed", func(b *bench) error {
				x := b.room(128)
				if err := b.Memory.Free(x); err != nil {
					return err
				}
				b.room(128)
				return b.launch("two_blocks", D(1), D(32), 0, x)
			}},
			{"a misaligned address", Misaligned, "not a multiple of 4", func(b *bench) error {
				return b.launch("odd_address", D(1), D(1), 0, b.room(8))
			}},
			{"unwritten memory", Uninitialised, "byte 0 of them was never written", func(b *bench) error {
				return b.launch("add_one", D(1), D(32), 0, b.room(128), b.room(128), int64(32))
			}},
			{"read-only memory", ReadOnly, "for reading only", func(b *bench) error {
				host := make([]byte, 128)
				addr, err := b.Memory.Map(host, true)
				if err != nil {
					return err
				}
				return b.launch("byte_neighbours", D(1), D(32), 0, addr)
			}},
			{"a removed barrier", Race, "no barrier is between the two", func(b *bench) error {
				return b.launch("tree_sum_no_sync", D(1), D(64), 0, b.room(4), b.words(make([]uint32, 64)...))
			}},
			{"shared memory past the end", OutOfBounds, "offset 128 of the shared memory, which has 128 bytes", func(b *bench) error {
				return b.launch("shared_too_far", D(1), D(32), 128, b.room(128))
			}},
			{"unwritten shared memory", Uninitialised, "byte 28 of shared memory", func(b *bench) error {
				return b.launch("shared_unwritten", D(1), D(64), 0, b.room(256))
			}},
			{"two writers of one address", Race, "wrote in line", func(b *bench) error {
				return b.launch("two_writers", D(1), D(64), 0, b.room(128))
			}},
			{"two blocks that write one address", Race, "blocks of one launch have no order", func(b *bench) error {
				return b.launch("two_blocks", D(2), D(32), 0, b.room(128))
			}},
			{"a read among atomics", Race, "no barrier is between the two", func(b *bench) error {
				return b.launch("counted_and_read", D(1), D(64), 0, b.words(0), b.room(4))
			}},
			{"a barrier that only some threads reach", Barrier, "all threads of a block have to reach a barrier", func(b *bench) error {
				return b.launch("some_at_barrier", D(1), D(64), 0, b.room(256))
			}},
			{"two barriers for one block", Barrier, "all threads of a block have to reach the same", func(b *bench) error {
				return b.launch("two_barriers", D(1), D(64), 0, b.room(256))
			}},
			{"a removed warp barrier", Race, "no barrier is between the two", func(b *bench) error {
				return b.launch("rotate_no_sync", D(1), D(32), 0, b.room(128))
			}},
			{"a shuffle that half a warp reaches", Warp, "waits here for the lanes 0xffffffff", func(b *bench) error {
				return b.launch("half_shuffle", D(1), D(32), 0, b.room(128))
			}},
			{"a shuffle from a lane outside of the block", Warp, "reads lane 8, which takes no part", func(b *bench) error {
				return b.launch("shuffle_from_nobody", D(1), D(8), 0, b.room(128))
			}},
			{"a shuffle outside of its own mask", Warp, "is not in the mask 0xff", func(b *bench) error {
				return b.launch("shuffle_unnamed", D(1), D(16), 0, b.room(128))
			}},
			{"a trap", Trap, "stopped itself", func(b *bench) error {
				return b.launch("stops", D(1), D(4), 0, b.words(0, 1, 2, 3))
			}},
			{"an endless loop", Endless, "without an end", func(b *bench) error {
				b.Limit = 1 << 17
				return b.launch("never_ends", D(1), D(1), 0, b.words(0))
			}},
			{"a division by zero", Undefined, "division by zero", func(b *bench) error {
				return b.launch("divides", D(1), D(1), 0, b.words(1), int32(0))
			}},
			{"unwritten local memory", Uninitialised, "byte 12 of local memory", func(b *bench) error {
				return b.launch("local_array", D(1), D(4), 0, b.room(64), int32(8), int32(1), int32(3))
			}},
			{"local memory past the end", OutOfBounds, "local memory", func(b *bench) error {
				return b.launch("local_array", D(1), D(4), 0, b.room(64), int32(8), int32(16), int32(-1))
			}},
			{"a block too large", BadLaunch, "a block of 257 threads, but the kernel was compiled for 256", func(b *bench) error {
				return b.launch("add_one", D(1), D(257), 0, b.room(4), b.room(4), int64(1))
			}},
			{"a grid too large", BadLaunch, "a device takes", func(b *bench) error {
				return b.launch("add_one", Dim{1, 65536, 1}, D(1), 0, b.room(4), b.room(4), int64(1))
			}},
			{"too much shared memory", BadLaunch, "shared memory", func(b *bench) error {
				return b.launch("shared_too_far", D(1), D(32), 48<<10+1, b.room(128))
			}},
			{"an argument too few", BadLaunch, "3 arguments, and was given 2", func(b *bench) error {
				return b.launch("add_one", D(1), D(1), 0, b.room(4), b.room(4))
			}},
			{"an argument of another size", BadLaunch, "argument 2 is a int32 of 4 bytes, and the parameter has 8", func(b *bench) error {
				return b.launch("add_one", D(1), D(1), 0, b.room(4), b.room(4), int32(1))
			}},
		} {
			t.Run(name+"/"+c.what, func(t *testing.T) {
				err := c.launch(newBench(t, order))
				var f *Fault
				if !errors.As(err, &f) {
					t.Fatalf("no fault: %v", err)
				}
				if f.Kind != c.kind || !strings.Contains(f.Error(), c.says) {
					t.Errorf("the fault is a %v: %v; want a text with %q", f.Kind, f, c.says)
				}
				if c.kind != BadLaunch && (f.Line == 0 || f.Source == "" || !strings.Contains(f.Error(), f.Kernel)) {
					t.Errorf("the fault lacks its position: %v", f)
				}
			})
		}
	}
}

// Correct kernels give correct results in every order of threads, with and without race detection,
// and on two cores.
func TestRightKernels(t *testing.T) {
	for name, order := range orders {
		for _, workers := range []int{0, 2} {
			t.Run(fmt.Sprint(name, " ", workers), func(t *testing.T) {
				b := newBench(t, order)
				b.Races, b.Workers = workers == 0, workers
				ok := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				equal := func(what string, got []uint32, want func(i int) uint32) {
					t.Helper()
					for i, g := range got {
						if g != want(i) {
							t.Errorf("%s: word %d is %#x, not %#x", what, i, g, want(i))
						}
					}
				}
				n := 1025
				x, y := make([]uint32, n), b.room(4*n)
				for i := range x {
					x[i] = uint32(bf(float32(i)))
				}
				dx := b.words(x...)
				ok(b.launch("add_one", D(5), D(256), 0, y, dx, int64(n)))
				equal("add_one", b.read(y, n), func(i int) uint32 { return uint32(bf(float32(i + 1))) })
				ok(b.launch("tree_sum", D(16), D(64), 0, y, dx))
				equal("tree_sum", b.read(y, 16), func(i int) uint32 { return uint32(bf(float32(64*64*i + 63*32))) })
				bytes := b.room(70)
				ok(b.launch("byte_neighbours", D(1), D(70), 0, bytes))
				count := b.words(0)
				ok(b.launch("counted", D(5), D(70), 0, count))
				equal("counted", b.read(count, 1), func(int) uint32 { return 350 })
				ok(b.launch("rotate_sync", D(1), D(32), 0, y))
				equal("rotate_sync", b.read(y, 32), func(i int) uint32 { return uint32((i+1)%32 + 2*((i+2)%32)) })
				out := b.room(4 * 4)
				ok(b.launch("globals", D(1), D(1), 0, out))
				ok(b.launch("globals", D(1), D(4), 0, out))
				equal("globals", b.read(out, 3), func(i int) uint32 { return []uint32{8, 10, 9}[i] })
				addr, size, err := b.Memory.Global(b.mod, "table")
				if err != nil || size != 16 {
					t.Fatal(size, err)
				}
				equal("table", b.read(addr, 4), func(i int) uint32 { return []uint32{3, 1, 4, 6}[i] })
				votes := b.room(4 * 128)
				ok(b.launch("block_votes", D(1), D(128), 0, votes))
				equal("block_votes", b.read(votes, 128), func(int) uint32 { return 43 | 1<<17 })
				local := b.room(16)
				ok(b.launch("local_array", D(1), D(4), 0, local, int32(8), int32(2), int32(-1)))
				equal("local_array", b.read(local, 4), func(i int) uint32 { return uint32((i + 2) * (i + 2)) })
				lanesRight(t, b, 96)
				lanesRight(t, b, 48)
				atomicsRight(t, b)
			})
		}
	}
}

// lanesRight checks votes, matches and shuffles against their definitions.
func lanesRight(t *testing.T, b *bench, n int) {
	out := b.room(4 * (8*n + (n+31)/32))
	if err := b.launch("lanes", D(1), D(n), 0, out); err != nil {
		t.Fatal(err)
	}
	got := b.read(out, 8*n+(n+31)/32)
	for i := range n {
		first := i &^ 31
		last := min(first+32, n)
		lane := i - first
		var third, same uint32
		five, forty := uint32(0), uint32(1)
		for l := first; l < last; l++ {
			if l%3 == 0 {
				third |= 1 << (l - first)
			}
			if l%5 == i%5 {
				same |= 1 << (l - first)
			}
			if l == 5 {
				five = 1
			}
			if l >= 40 {
				forty = 0
			}
		}
		up, down := i, i
		if lane >= 3 {
			up = i - 3
		}
		if lane%8+4 < 8 {
			down = i + 4
		}
		all := uint32(1)<<(last-first) - 1
		for j, want := range []uint32{third, five, forty, uint32(up), uint32(down), uint32(first + lane&^15 + 2), same, all + 1} {
			if g := got[8*i+j]; g != want {
				t.Errorf("lanes: thread %d of %d, value %d is %#x, not %#x", i, n, j, g, want)
			}
		}
		if c := got[8*n+i/32]; c != uint32(last-first) {
			t.Errorf("lanes: warp %d has %d lanes, not %d", i/32, c, last-first)
		}
	}
}

func atomicsRight(t *testing.T, b *bench) {
	blocks, n := 3, 70
	w, d := b.words(0, 100, 0, 0, 0, 0), b.words(0, 0, 0, 0, 0, 0)
	f, s := b.words(uint32(bf(1))), b.words(5, 0)
	k, err := b.mod.Kernel("atomics")
	if err != nil {
		t.Fatal(err)
	}
	// w[5] is a plain write, so each launch has only one block.
	for range blocks {
		if err := b.Launch(k, D(1), D(n), 0, w, d, f, s); err != nil {
			t.Fatal(err)
		}
	}
	// x xor x xor x is x.
	xor, sum := uint32(0), uint64(0)
	for i := range n {
		xor ^= uint32(i)
		sum += uint64(blocks) * uint64(i) << 20
	}
	for name, c := range map[string][2][]uint32{
		"words":  {b.read(w, 6), {uint32(blocks * n), 3, ^uint32(0), uint32(blocks*n) % 7, xor, uint32(n - 1)}},
		"64":     {b.read(d, 6), {uint32(sum), uint32(sum >> 32), 0, uint32(n-1) << 8, 9, 0}},
		"float":  {b.read(f, 1), {uint32(bf(1 + float32(blocks*n)/2))}},
		"signed": {b.read(s, 2), {uint32(neg32(int32(1 - n))), 4}},
	} {
		if fmt.Sprint(c[0]) != fmt.Sprint(c[1]) {
			t.Errorf("atomics, %s: %d, not %d", name, c[0], c[1])
		}
	}
}
