package ptx

import (
	"fmt"
	"math/bits"
)

// Registers hold unsigned values: bits above the value's width are 0.

func add32(t *thread, in *instr) { t.r[in.d] = uint64(uint32(t.r[in.a]) + uint32(t.r[in.b])) }
func add64(t *thread, in *instr) { t.r[in.d] = t.r[in.a] + t.r[in.b] }
func sub32(t *thread, in *instr) { t.r[in.d] = uint64(uint32(t.r[in.a]) - uint32(t.r[in.b])) }
func sub64(t *thread, in *instr) { t.r[in.d] = t.r[in.a] - t.r[in.b] }
func and(t *thread, in *instr)   { t.r[in.d] = t.r[in.a] & t.r[in.b] }
func or(t *thread, in *instr)    { t.r[in.d] = t.r[in.a] | t.r[in.b] }
func xor(t *thread, in *instr)   { t.r[in.d] = t.r[in.a] ^ t.r[in.b] }

func mul32(t *thread, in *instr) { t.r[in.d] = uint64(uint32(t.r[in.a]) * uint32(t.r[in.b])) }
func mul64(t *thread, in *instr) { t.r[in.d] = t.r[in.a] * t.r[in.b] }
func mad32(t *thread, in *instr) {
	t.r[in.d] = uint64(uint32(t.r[in.a])*uint32(t.r[in.b]) + uint32(t.r[in.c]))
}
func mad64(t *thread, in *instr)      { t.r[in.d] = t.r[in.a]*t.r[in.b] + t.r[in.c] }
func mulWideU32(t *thread, in *instr) { t.r[in.d] = t.r[in.a] * t.r[in.b] }
func mulHiU32(t *thread, in *instr)   { t.r[in.d] = t.r[in.a] * t.r[in.b] >> 32 }
func madWideU32(t *thread, in *instr) { t.r[in.d] = t.r[in.a]*t.r[in.b] + t.r[in.c] }
func mulWideS32(t *thread, in *instr) {
	t.r[in.d] = uint64(int64(int32(t.r[in.a])) * int64(int32(t.r[in.b])))
}

func madWideS32(t *thread, in *instr) {
	t.r[in.d] = uint64(int64(int32(t.r[in.a]))*int64(int32(t.r[in.b]))) + t.r[in.c]
}

func shl32(t *thread, in *instr)  { t.r[in.d] = uint64(uint32(t.r[in.a]) << t.r[in.b]) }
func shl64(t *thread, in *instr)  { t.r[in.d] = t.r[in.a] << t.r[in.b] }
func shrU32(t *thread, in *instr) { t.r[in.d] = t.r[in.a] >> t.r[in.b] }
func shrU64(t *thread, in *instr) { t.r[in.d] = t.r[in.a] >> t.r[in.b] }
func shrS32(t *thread, in *instr) { t.r[in.d] = uint64(uint32(int32(t.r[in.a]) >> t.r[in.b])) }
func shrS64(t *thread, in *instr) { t.r[in.d] = uint64(int64(t.r[in.a]) >> t.r[in.b]) }

// signed returns a value of type t with its sign extended.
func signed(v uint64, t typ) int64 {
	s := 64 - uint(t.bits)
	if t.class == 's' {
		return int64(v<<s) >> s
	}
	return int64(v & t.mask())
}

type function = func(x, y, z uint64) uint64

func shift16(op string, t typ) function {
	return func(x, y, _ uint64) uint64 {
		if op == "shl" {
			return x << y & t.mask()
		}
		return uint64(signed(x, t)>>y) & t.mask()
	}
}

func addSub16(op string, t typ) function {
	return func(x, y, _ uint64) uint64 {
		if op == "sub" {
			y = -y
		}
		return (x + y) & t.mask()
	}
}

// saturating implements add.sat and sub.sat of s32.
func saturating(op string) function {
	return func(x, y, _ uint64) uint64 {
		a, b := int64(int32(x)), int64(int32(y))
		if op == "sub" {
			b = -b
		}
		return uint64(uint32(max(-1<<31, min(1<<31-1, a+b))))
	}
}

func minMax(op string, t typ) function {
	return func(x, y, _ uint64) uint64 {
		less := x < y
		if t.class == 's' {
			less = signed(x, t) < signed(y, t)
		}
		if less == (op == "min") {
			return x
		}
		return y
	}
}

// product implements mul and mad by part: the low half, the high half, or both.
func product(part string, t, to typ, add bool) function {
	return func(x, y, z uint64) uint64 {
		if !add {
			z = 0
		}
		a, b := uint64(signed(x, t)), uint64(signed(y, t))
		if part != "hi" {
			return (a*b + z) & to.mask()
		}
		if t.bits < 64 {
			return (uint64(int64(a*b)>>t.bits) + z) & t.mask()
		}
		hi, _ := bits.Mul64(a, b)
		if t.class == 's' {
			hi -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
		}
		return hi + z
	}
}

func divide(op string, t typ) exec {
	return func(th *thread, in *instr) {
		x, y := th.r[in.a], th.r[in.b]
		if y == 0 {
			th.fail(in, Undefined, 0, "a division by zero")
		}
		var v uint64
		switch a, b := signed(x, t), signed(y, t); {
		case t.class == 's' && op == "div":
			v = uint64(a / b)
		case t.class == 's':
			v = uint64(a % b)
		case op == "div":
			v = x / y
		default:
			v = x % y
		}
		th.r[in.d] = v & t.mask()
	}
}

// carrying decodes arithmetic with the carry flag: .cc writes it; addc, subc and madc read it.
// subc's flag is a borrow.
func (d *decoder) carrying(op, part string, t typ, write bool) error {
	if t.bits < 32 || t.class == 'f' {
		return fmt.Errorf("not of this type")
	}
	read := op == "addc" || op == "subc" || op == "madc"
	mad, minus := op == "mad" || op == "madc", op == "sub" || op == "subc"
	if mad == (part == "") {
		return fmt.Errorf("neither .lo nor .hi")
	}
	var times function
	if mad {
		times = product(part, t, t, false)
	}
	d.in.fn = func(th *thread, in *instr) {
		x, y := th.r[in.a], th.r[in.b]
		if mad {
			x, y = times(x, y, 0), th.r[in.c]
		}
		c := uint64(0)
		if read {
			c = th.carry
		}
		var v, out uint64
		if minus {
			v, out = bits.Sub64(x, y, c)
		} else {
			v, out = bits.Add64(x, y, c)
		}
		if t.bits == 32 {
			out = v >> 32 & 1
		}
		th.r[in.d] = v & t.mask()
		if write {
			th.carry = out
		}
	}
	if mad {
		return d.args(t, t, t, t)
	}
	return d.args(t, t, t)
}
