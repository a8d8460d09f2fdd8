package gemm

import "unsafe"

// plain is the path without assembly.
var plain = path{
	name: "go", width: 4, slim: 4, fetchSteps: 4, fetches: 3,
	kernels:     []rowKernel{{4, tile4x4}, {1, tile1x4}},
	slimKernels: []rowKernel{{4, tile4x4}, {1, tile1x4}},
	mask:        func(cols, _ int) uintptr { return uintptr(cols) },
	add:         addGo,
	round:       roundGo,
	peak:        peakGo,
}

func load(p unsafe.Pointer, offset uintptr) float32 { return *(*float32)(unsafe.Add(p, offset)) }

// begin is the start of a row of a tile; columns beyond the mask are 0.
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

func tile4x4(t *tile) {
	for i := range t.tiles {
		row := 4 * i
		s0, s1, s2, s3 := t.begin(row), t.begin(row+1), t.begin(row+2), t.begin(row+3)
		a := uintptr(i) * t.aStep
		for k := range t.k {
			b := *(*[4]float32)(unsafe.Add(t.b, 16*k))
			at := a + uintptr(k)*t.cs
			v := load(t.a, at)
			s0[0] += v * b[0]
			s0[1] += v * b[1]
			s0[2] += v * b[2]
			s0[3] += v * b[3]
			v = load(t.a, at+t.rs)
			s1[0] += v * b[0]
			s1[1] += v * b[1]
			s1[2] += v * b[2]
			s1[3] += v * b[3]
			v = load(t.a, at+2*t.rs)
			s2[0] += v * b[0]
			s2[1] += v * b[1]
			s2[2] += v * b[2]
			s2[3] += v * b[3]
			v = load(t.a, at+3*t.rs)
			s3[0] += v * b[0]
			s3[1] += v * b[1]
			s3[2] += v * b[2]
			s3[3] += v * b[3]
		}
		t.end(row, s0)
		t.end(row+1, s1)
		t.end(row+2, s2)
		t.end(row+3, s3)
	}
}

func tile1x4(t *tile) {
	for i := range t.tiles {
		s, a := t.begin(i), uintptr(i)*t.aStep
		for k := range t.k {
			b := *(*[4]float32)(unsafe.Add(t.b, 16*k))
			v := load(t.a, a+uintptr(k)*t.cs)
			s[0] += v * b[0]
			s[1] += v * b[1]
			s[2] += v * b[2]
			s[3] += v * b[3]
		}
		t.end(i, s)
	}
}

// peakGo is multiply-adds of independent variables in registers.
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
