package main

import "fmt"

// stream describes a kernel that processes slices of the same length from front to back, one vector
// at a time.
type stream struct {
	name, doc string
	in, out   []string // slices that are read and slices that are written
	scalars   []string // float32 parameters, each in all lanes of a register
	temps     int
	unroll    int
	zero      bool // "zero" is a register of zeros
	body      func(a *asm, r map[string]string)
}

var pointers = []string{"DI", "SI", "DX", "R8", "R9"}

func (s stream) write(a *asm) {
	var slices []string
	for _, list := range [][]string{s.out, s.in} {
		for _, p := range list {
			if !contains(slices, p) {
				slices = append(slices, p)
			}
		}
	}
	params := make([]string, 0, 8)
	for _, p := range slices {
		params = append(params, p+" *float32")
	}
	params = append(params, "n int")
	for _, p := range s.scalars {
		params = append(params, p+" float32")
	}
	a.fn(s.name, s.doc, params...)
	at := map[string]string{}
	for i, p := range slices {
		at[p] = pointers[i]
		a.op("MOVQ %s, %s", a.arg(p), at[p])
	}
	a.op("MOVQ %s, CX", a.arg("n"))
	fixed := map[string]string{}
	top := a.regs - 2 // the last register is AVX2's mask
	for _, p := range s.scalars {
		fixed[p] = a.v(top)
		a.op("VBROADCASTSS %s, %s", a.arg(p), fixed[p])
		top--
	}
	if s.zero {
		fixed["zero"] = a.v(top)
		a.op("VXORPS %[1]s, %[1]s, %[1]s", fixed["zero"])
		top--
	}
	each := len(slices) + s.temps
	unroll := max(1, min(s.unroll, (top+1)/each))

	step := func(unroll int, tail bool) {
		regs := make([]map[string]string, unroll)
		for u := range unroll {
			regs[u] = map[string]string{}
			for name, reg := range fixed {
				regs[u][name] = reg
			}
			for i, p := range slices {
				regs[u][p] = a.v(u*each + i)
			}
			for i := range s.temps {
				regs[u][fmt.Sprintf("t%d", i)] = a.v(u*each + len(slices) + i)
			}
			for _, p := range s.in {
				a.load(fmt.Sprintf("%d(%s)", u*a.bytes(), at[p]), regs[u][p], tail)
			}
		}
		for u := range unroll {
			s.body(a, regs[u])
		}
		for u := range unroll {
			for _, p := range s.out {
				a.store(regs[u][p], fmt.Sprintf("%d(%s)", u*a.bytes(), at[p]), tail)
			}
		}
	}
	loop := func(unroll int) {
		again, done := a.label("loop"), a.label("done")
		a.op("SUBQ $%d, CX", unroll*a.lanes)
		a.op("JLT %s", done)
		a.at(again)
		step(unroll, false)
		for _, p := range slices {
			a.op("ADDQ $%d, %s", unroll*a.bytes(), at[p])
		}
		a.op("SUBQ $%d, CX", unroll*a.lanes)
		a.op("JGE %s", again)
		a.at(done)
		a.op("ADDQ $%d, CX", unroll*a.lanes)
	}
	if unroll > 1 {
		loop(unroll)
	}
	loop(1)
	end := a.label("end")
	a.op("JZ %s", end)
	a.tailMask()
	step(1, true)
	a.at(end)
	a.ret()
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// binary returns a body of one instruction, dst = x op y.
func binary(instr, x, y, dst string) func(a *asm, r map[string]string) {
	return func(a *asm, r map[string]string) { a.op("%s %s, %s, %s", instr, r[y], r[x], r[dst]) }
}

// both returns a body that runs the given bodies in order.
func both(bodies ...func(a *asm, r map[string]string)) func(a *asm, r map[string]string) {
	return func(a *asm, r map[string]string) {
		for _, b := range bodies {
			b(a, r)
		}
	}
}

// ifAbove0 writes dst = v where x > 0 or x is NaN, and +0 elsewhere.
func ifAbove0(x, v, dst string) func(a *asm, r map[string]string) {
	return func(a *asm, r map[string]string) {
		const notLE = 22 // not less or equal, unordered is true, quiet
		if a.name == avx512.name {
			a.op("VCMPPS $%d, %s, %s, K2", notLE, r["zero"], r[x])
			a.op("VMOVAPS.Z %s, K2, %s", r[v], r[dst])
			return
		}
		a.op("VCMPPS $%d, %s, %s, %s", notLE, r["zero"], r[x], r["t0"])
		a.op("VANDPS %s, %s, %s", r["t0"], r[v], r[dst])
	}
}

// whereAbove0 writes dst = v where x > 0; elsewhere, also where x is NaN, dst is unchanged.
func whereAbove0(x, v, dst string) func(a *asm, r map[string]string) {
	return func(a *asm, r map[string]string) {
		const greater = 30
		if a.name == avx512.name {
			a.op("VCMPPS $%d, %s, %s, K2", greater, r["zero"], r[x])
			a.op("VMOVAPS %s, K2, %s", r[v], r[dst])
			return
		}
		a.op("VCMPPS $%d, %s, %s, %s", greater, r["zero"], r[x], r["t0"])
		a.op("VBLENDVPS %[1]s, %[2]s, %[3]s, %[3]s", r["t0"], r[v], r[dst])
	}
}

func streams(a *asm) {
	list := func(names ...string) []string { return names }
	for _, s := range []stream{
		{name: "add", doc: "computes o += x.", in: list("o", "x"), out: list("o"), body: binary("VADDPS", "o", "x", "o")},
		{name: "axpy", doc: "computes o += w·x.", in: list("o", "x"), out: list("o"), scalars: list("w"), body: both(
			binary("VMULPS", "x", "w", "x"), binary("VADDPS", "o", "x", "o"))},
		{name: "scale", doc: "computes o = w·x.", in: list("x"), out: list("o"), scalars: list("w"), body: binary("VMULPS", "x", "w", "o")},
		{name: "add2", doc: "computes o = x + y.", in: list("x", "y"), out: list("o"), body: binary("VADDPS", "x", "y", "o")},
		{name: "add3", doc: "computes o += x + y.", in: list("o", "x", "y"), out: list("o"), body: both(
			binary("VADDPS", "x", "y", "x"), binary("VADDPS", "o", "x", "o"))},
		{name: "sub2", doc: "computes o = x - y.", in: list("x", "y"), out: list("o"), body: binary("VSUBPS", "x", "y", "o")},
		{name: "sub3", doc: "computes o += x - y.", in: list("o", "x", "y"), out: list("o"), body: both(
			binary("VSUBPS", "x", "y", "x"), binary("VADDPS", "o", "x", "o"))},
		{name: "mul2", doc: "computes o = x·y.", in: list("x", "y"), out: list("o"), body: binary("VMULPS", "x", "y", "o")},
		{name: "mul3", doc: "computes o += x·y.", in: list("o", "x", "y"), out: list("o"), body: both(
			binary("VMULPS", "x", "y", "x"), binary("VADDPS", "o", "x", "o"))},
		{name: "relu", doc: "computes o = x where x > 0 or x is NaN, else 0.", in: list("x"), out: list("o"), zero: true, temps: 1, body: ifAbove0("x", "x", "o")},
		{name: "above0", doc: "computes o = grad where x > 0 or x is NaN, else 0.", in: list("grad", "x"), out: list("o"), zero: true, temps: 1, body: ifAbove0("x", "grad", "o")},
		{name: "addAbove0", doc: "computes o += grad where x > 0 or x is NaN.", in: list("o", "grad", "x"), out: list("o"), zero: true, temps: 1, body: both(
			ifAbove0("x", "grad", "grad"), binary("VADDPS", "o", "grad", "o"))},
		{name: "leaky", doc: "computes o = x where x > 0, else w·x.", in: list("x"), out: list("o"), scalars: list("w"), zero: true, temps: 1, body: both(
			binary("VMULPS", "x", "w", "o"), whereAbove0("x", "x", "o"))},
		{name: "leakyGrad", doc: "computes o = grad where x > 0, else w·grad.", in: list("grad", "x"), out: list("o"), scalars: list("w"), zero: true, temps: 1, body: both(
			binary("VMULPS", "grad", "w", "o"), whereAbove0("x", "grad", "o"))},
		{name: "leakyGradAdd", doc: "computes o += grad where x > 0, else o += w·grad.", in: list("o", "grad", "x"), out: list("o"), scalars: list("w"), zero: true, temps: 2, body: both(
			binary("VMULPS", "grad", "w", "t1"), whereAbove0("x", "grad", "t1"), binary("VADDPS", "o", "t1", "o"))},
		{name: "sub2s", doc: "computes o = (x - s) - u.", in: list("x"), out: list("o"), scalars: list("s", "u"), body: both(
			binary("VSUBPS", "x", "s", "o"), binary("VSUBPS", "o", "u", "o"))},
		{name: "expMinus", doc: "computes o = e^(x-s).", in: list("x"), out: list("o"), scalars: list("s"), temps: 3, unroll: 2, body: both(
			binary("VSUBPS", "x", "s", "x"), exp("x", "o"))},
		{name: "minusExp", doc: "computes o = g - s·e^y.", in: list("grad", "y"), out: list("o"), scalars: list("s"), temps: 3, unroll: 2, body: both(
			exp("y", "o"), binary("VMULPS", "o", "s", "o"), binary("VSUBPS", "grad", "o", "o"))},
		{name: "addMinusExp", doc: "computes o += g - s·e^y.", in: list("o", "grad", "y"), out: list("o"), scalars: list("s"), temps: 4, unroll: 2, body: both(
			exp("y", "t3"), binary("VMULPS", "t3", "s", "t3"), binary("VSUBPS", "grad", "t3", "grad"), binary("VADDPS", "o", "grad", "o"))},
		{name: "normal", doc: "computes the normal distribution function and density of x; see Normal.", in: list("x"), out: list("cdf", "density"), zero: true, temps: 3, unroll: 2, body: normal},
		{name: "log1p", doc: "computes o = log(1 + max(0, x)); see Log1p.", in: list("x"), out: list("o"), zero: true, temps: 3, unroll: 2, body: log1p},
		{name: "sgd", doc: "computes w -= lr·(scale·g + decay·w).", in: list("w", "grad"), out: list("w"), scalars: list("lr", "scale", "decay"), temps: 1, body: both(
			decayed, binary("VMULPS", "grad", "lr", "grad"), binary("VSUBPS", "w", "grad", "w"))},
		{
			name: "momentum", doc: "computes d = scale·g + decay·w; b = mu·b + d; w -= lr·b.", in: list("w", "b", "grad"), out: list("w", "b"),
			scalars: list("lr", "scale", "decay", "mu"), temps: 1, body: both(
				decayed, binary("VMULPS", "b", "mu", "b"), binary("VADDPS", "b", "grad", "b"),
				binary("VMULPS", "b", "lr", "t0"), binary("VSUBPS", "w", "t0", "w")),
		},
		{
			name: "nesterov", doc: "computes d = scale·g + decay·w; b = mu·b + d; w -= lr·(d + mu·b).", in: list("w", "b", "grad"), out: list("w", "b"),
			scalars: list("lr", "scale", "decay", "mu"), temps: 1, body: both(
				decayed, binary("VMULPS", "b", "mu", "b"), binary("VADDPS", "b", "grad", "b"),
				binary("VMULPS", "b", "mu", "t0"), binary("VADDPS", "grad", "t0", "t0"),
				binary("VMULPS", "t0", "lr", "t0"), binary("VSUBPS", "w", "t0", "w")),
		},
		{
			name: "adam", doc: "does Adam's update; see Adam.", in: list("w", "m", "v", "grad"), out: list("w", "m", "v"),
			scalars: list("scale", "decay", "b1", "c1", "b2", "c2", "keep", "size", "root", "eps"), temps: 1, unroll: 1, body: both(
				decayed,
				binary("VMULPS", "m", "b1", "m"), binary("VMULPS", "grad", "c1", "t0"), binary("VADDPS", "m", "t0", "m"),
				binary("VMULPS", "v", "b2", "v"), binary("VMULPS", "grad", "c2", "t0"), binary("VMULPS", "t0", "grad", "t0"), binary("VADDPS", "v", "t0", "v"),
				func(a *asm, r map[string]string) { a.op("VSQRTPS %s, %s", r["v"], r["t0"]) },
				binary("VDIVPS", "t0", "root", "t0"), binary("VADDPS", "t0", "eps", "t0"),
				binary("VMULPS", "m", "size", "grad"), binary("VDIVPS", "grad", "t0", "grad"),
				binary("VMULPS", "w", "keep", "w"), binary("VSUBPS", "w", "grad", "w")),
		},
	} {
		if s.unroll == 0 {
			s.unroll = 4
		}
		s.write(a)
	}
}

// decayed writes g = scale·g + decay·w.
func decayed(a *asm, r map[string]string) {
	both(binary("VMULPS", "grad", "scale", "grad"), binary("VMULPS", "w", "decay", "t0"), binary("VADDPS", "grad", "t0", "grad"))(a, r)
}
