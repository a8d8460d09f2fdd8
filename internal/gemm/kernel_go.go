package gemm

import (
	"runtime"
	"unsafe"
)

// plain is the path without assembly.
var plain = path{
	name: "go", width: 4, slim: 4, fetchSteps: 4, fetches: 3,
	kernels:     plainKernels,
	slimKernels: plainKernels,
	mask:        func(cols, _ int) uintptr { return uintptr(cols) },
	add:         addGo,
	round:       roundGo,
	peak:        peakGo,
}

// plainKernels are the highest tiles whose sums fit into registers: amd64 has 16 registers, other
// architectures 32.
var plainKernels = func() []rowKernel {
	if runtime.GOARCH == "amd64" {
		return tallKernels[1:]
	}
	return tallKernels
}()

var tallKernels = []rowKernel{{4, tile4x4}, {2, tile2x4}, {1, tile1x4}}

func load(p unsafe.Pointer, offset uintptr) float32 { return *(*float32)(unsafe.Add(p, offset)) }

// begin returns the initial values of a row of a tile; columns beyond the mask are 0.
func (t *tile) begin(row int) (s [4]float32) {
	from := unsafe.Add(t.c, uintptr(row)*t.ldc)
	switch t.mode {
	case fromZero:
		return s
	case fromBias:
		from = t.bias
	}
	copy(s[:], unsafe.Slice((*float32)(from), t.mask))
	return s
}

func (t *tile) end(row int, s [4]float32) {
	copy(unsafe.Slice((*float32)(unsafe.Add(t.c, uintptr(row)*t.ldc)), t.mask), s[:])
}

func addGo(dst, src []float32) {
	for i, v := range src[:len(dst)] {
		dst[i] += v
	}
}

// tile4x4, tile2x4 and tile1x4 name each sum, because the compiler keeps no array in registers.
func tile4x4(t *tile) {
	rs, cs, aAt, bAt := t.rs, t.cs, t.a, t.b
	for i := range t.tiles {
		s0 := t.begin(4 * i)
		s1 := t.begin(4*i + 1)
		s2 := t.begin(4*i + 2)
		s3 := t.begin(4*i + 3)
		s00, s01, s02, s03 := s0[0], s0[1], s0[2], s0[3]
		s10, s11, s12, s13 := s1[0], s1[1], s1[2], s1[3]
		s20, s21, s22, s23 := s2[0], s2[1], s2[2], s2[3]
		s30, s31, s32, s33 := s3[0], s3[1], s3[2], s3[3]
		a, b := uintptr(i)*t.aStep, uintptr(0) // a pointer beyond the last element must not be made
		for range t.k {
			v0, v1, v2, v3 := load(aAt, a), load(aAt, a+rs), load(aAt, a+2*rs), load(aAt, a+3*rs)
			w := load(bAt, b)
			s00 += v0 * w
			s10 += v1 * w
			s20 += v2 * w
			s30 += v3 * w
			w = load(bAt, b+4)
			s01 += v0 * w
			s11 += v1 * w
			s21 += v2 * w
			s31 += v3 * w
			w = load(bAt, b+8)
			s02 += v0 * w
			s12 += v1 * w
			s22 += v2 * w
			s32 += v3 * w
			w = load(bAt, b+12)
			s03 += v0 * w
			s13 += v1 * w
			s23 += v2 * w
			s33 += v3 * w
			a, b = a+cs, b+16
		}
		t.end(4*i, [4]float32{s00, s01, s02, s03})
		t.end(4*i+1, [4]float32{s10, s11, s12, s13})
		t.end(4*i+2, [4]float32{s20, s21, s22, s23})
		t.end(4*i+3, [4]float32{s30, s31, s32, s33})
	}
}

func tile2x4(t *tile) {
	rs, cs, aAt, bAt := t.rs, t.cs, t.a, t.b
	for i := range t.tiles {
		s0 := t.begin(2 * i)
		s1 := t.begin(2*i + 1)
		s00, s01, s02, s03 := s0[0], s0[1], s0[2], s0[3]
		s10, s11, s12, s13 := s1[0], s1[1], s1[2], s1[3]
		a, b := uintptr(i)*t.aStep, uintptr(0)
		for range t.k {
			v0, v1 := load(aAt, a), load(aAt, a+rs)
			w := load(bAt, b)
			s00 += v0 * w
			s10 += v1 * w
			w = load(bAt, b+4)
			s01 += v0 * w
			s11 += v1 * w
			w = load(bAt, b+8)
			s02 += v0 * w
			s12 += v1 * w
			w = load(bAt, b+12)
			s03 += v0 * w
			s13 += v1 * w
			a, b = a+cs, b+16
		}
		t.end(2*i, [4]float32{s00, s01, s02, s03})
		t.end(2*i+1, [4]float32{s10, s11, s12, s13})
	}
}

func tile1x4(t *tile) {
	cs, aAt, bAt := t.cs, t.a, t.b
	for i := range t.tiles {
		s0 := t.begin(i)
		s00, s01, s02, s03 := s0[0], s0[1], s0[2], s0[3]
		a, b := uintptr(i)*t.aStep, uintptr(0)
		for range t.k {
			v0 := load(aAt, a)
			w := load(bAt, b)
			s00 += v0 * w
			w = load(bAt, b+4)
			s01 += v0 * w
			w = load(bAt, b+8)
			s02 += v0 * w
			w = load(bAt, b+12)
			s03 += v0 * w
			a, b = a+cs, b+16
		}
		t.end(i, [4]float32{s00, s01, s02, s03})
	}
}

// peakGo runs multiply-adds of independent variables in registers.
func peakGo() float64 {
	const rounds = 1 << 15
	var s [8]float32
	a, b := float32(0.5), float32(0.25)
	s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	for range rounds {
		s0 += s0*a + b
		s1 += s1*a + b
		s2 += s2*a + b
		s3 += s3*a + b
		s4 += s4*a + b
		s5 += s5*a + b
		s6 += s6*a + b
		s7 += s7*a + b
	}
	sink.Store(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7)
	return rounds * 8 * 2
}
