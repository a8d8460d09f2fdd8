package ptx

import (
	"fmt"
	"math/bits"
)

func counting(op string, t typ, amount bool) function {
	return func(x, _, _ uint64) uint64 {
		switch op {
		case "popc":
			return uint64(bits.OnesCount64(x))
		case "clz":
			return uint64(bits.LeadingZeros64(x)) - (64 - uint64(t.bits))
		}
		if t.class == 's' && signed(x, t) < 0 {
			x = ^x & t.mask()
		}
		n := bits.Len64(x)
		switch {
		case n == 0:
			return 0xffffffff
		case amount:
			return uint64(int(t.bits) - n)
		}
		return uint64(n - 1)
	}
}

func unary(op string, t typ) function {
	switch {
	case t.class == 'p' && op == "not":
		return func(x, _, _ uint64) uint64 { return x ^ 1 }
	case t.class == 'p':
		return nil
	}
	return func(x, _, _ uint64) uint64 {
		switch op {
		case "not":
			x = ^x
		case "cnot":
			x = truth(x == 0)
		case "neg":
			x = -x
		case "abs":
			if signed(x, typ{t.bits, 's'}) < 0 {
				x = -x
			}
		case "brev":
			x = bits.Reverse64(x) >> (64 - t.bits)
		}
		return x & t.mask()
	}
}

// extract implements bfe: y is the first bit, z the number of bits.
func extract(t typ) function {
	return func(x, y, z uint64) uint64 {
		pos, n, top := y&0xff, z&0xff, uint64(t.bits)-1
		sign := uint64(0)
		if t.class == 's' && n > 0 {
			sign = x >> min(pos+n-1, top) & 1
		}
		v := uint64(0)
		for i := range top + 1 {
			bit := sign
			if i < n && pos+i <= top {
				bit = x >> (pos + i) & 1
			}
			v |= bit << i
		}
		return v
	}
}

// insert decodes bfi d, a, b, pos, len: bits of a are inserted into b.
func (d *decoder) insert(t typ) error {
	u32 := typ{32, 'u'}
	d.in.fn = func(th *thread, in *instr) {
		a, v, pos, n := th.r[in.a], th.r[in.b], th.r[in.c]&0xff, th.r[in.e]&0xff
		for i := uint64(0); i < n && pos+i < uint64(t.bits); i++ {
			v = v&^(1<<(pos+i)) | a>>i&1<<(pos+i)
		}
		th.r[in.d] = v
	}
	return d.args(t, t, t, u32, u32)
}

// funnel decodes shf: it selects 32 bits of the 64 formed by b (high) and a (low).
func (d *decoder) funnel() error {
	left := d.has("l", "r") == "l"
	clamp := d.has("clamp", "wrap") == "clamp"
	t, err := d.typ()
	if err != nil {
		return err
	}
	d.apply(func(x, y, z uint64) uint64 {
		n := z & 31
		if clamp {
			n = min(z, 32)
		}
		both := y<<32 | x
		if left {
			return both << n >> 32
		}
		return both >> n & 0xffffffff
	})
	return d.args(t, t, t, t)
}

// bytewise decodes lop3, any function of three bits, and prmt, which selects bytes.
func (d *decoder) bytewise(op string) error {
	mode := d.has("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
	t, err := d.typ()
	if err != nil {
		return err
	}
	if t.bits != 32 {
		return fmt.Errorf("not of this type")
	}
	if op == "prmt" {
		d.apply(func(x, y, z uint64) uint64 { return permute(mode, y<<32|x, z) })
		return d.args(t, t, t, t)
	}
	if err := d.count(5); err != nil || d.s.args[4].kind != 'n' {
		return fmt.Errorf("its table is not a number")
	}
	table := d.s.args[4].imm
	d.s.args = d.s.args[:4]
	d.apply(func(x, y, z uint64) uint64 {
		v := uint64(0)
		for i := range uint64(8) {
			if table>>i&1 == 0 {
				continue
			}
			v |= pick(x, i>>2) & pick(y, i>>1) & pick(z, i)
		}
		return v & 0xffffffff
	})
	return d.args(t, t, t, t)
}

// pick returns x if the lowest bit of i is 1, else its complement.
func pick(x, i uint64) uint64 { return x ^ (i&1 - 1) }

// permute implements prmt on the 8 bytes of v.
func permute(mode string, v, sel uint64) uint64 {
	at := func(i uint64) uint64 { return v >> (8 * (i & 7)) & 0xff }
	n := sel & 3
	out := uint64(0)
	for i := range uint64(4) {
		var b uint64
		switch mode {
		case "":
			s := sel >> (4 * i) & 15
			if b = at(s); s&8 != 0 {
				b = 0xff * (b >> 7)
			}
		case "f4e":
			b = at(n + i)
		case "b4e":
			b = at(n - i)
		case "rc8":
			b = at(n)
		case "ecl":
			b = at(max(n, i))
		case "ecr":
			b = at(min(n, i))
		case "rc16":
			b = at(n&1*2 + i&1)
		}
		out |= b << (8 * i)
	}
	return out
}
