package philox

import "testing"

// The known answers of Random123 1.14, tests/kat_vectors, philox4x32 with 10 rounds.
func TestKnownAnswers(t *testing.T) {
	cases := []struct {
		name string
		ctr  [4]uint32
		key  uint64
		want [4]uint32
	}{
		{"zeros", [4]uint32{}, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{"ones", [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{"pi", [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, c := range cases {
		if got := Block(c.key, c.ctr); got != c.want {
			t.Errorf("%s: Block = %08x, want %08x", c.name, got, c.want)
		}
	}
}

// The test pins the layout: these words change only together with LayoutVersion.
func TestLayout(t *testing.T) {
	if got, want := C3(User, 3, 7), uint32(5<<28|3<<20|7); got != want {
		t.Errorf("C3 = %#x, want %#x", got, want)
	}
	if got, want := Counter(0x1234_89abcdef, 9, 1), [4]uint32{0x89abcdef, 0x1234 << 16, 9, 1}; got != want {
		t.Errorf("Counter = %x, want %x", got, want)
	}
	s := NewStream(42, 0x1_0000_0005, 3, C3(Sample, 1, 2))
	for j := range 9 {
		c := Counter(0x1_0000_0005, 3, C3(Sample, 1, 2))
		c[1] |= uint32(j / 4)
		if got, want := s.Next(), Block(42, c)[j%4]; got != want {
			t.Fatalf("draw %d = %#x, want word %d of block %d = %#x", j, got, j%4, j/4, want)
		}
	}
}

func TestStreamEnds(t *testing.T) {
	s := NewStream(1, 2, 3, 4)
	for range MaxDraws {
		s.Next()
	}
	defer func() {
		if recover() == nil {
			t.Error("draw 2^18 did not panic")
		}
	}()
	s.Next()
}

func TestBounded(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 1000, 1 << 31} {
		if got := Bounded(0xffffffff, n); got != n-1 {
			t.Errorf("Bounded(max, %d) = %d, want %d", n, got, n-1)
		}
		if got := Bounded(0, n); got != 0 {
			t.Errorf("Bounded(0, %d) = %d, want 0", n, got)
		}
	}
}

func BenchmarkBlock(b *testing.B) {
	c := Counter(1, 2, 3)
	for b.Loop() {
		c = Block(7, c)
	}
	b.ReportMetric(float64(b.N)*4/b.Elapsed().Seconds()/1e6, "Mdraws/s")
}
