package ptx

import (
	"fmt"
	"math"
)

// convert decodes cvt.
func (d *decoder) convert() error {
	whole := d.has("rni", "rzi", "rmi", "rpi")
	f := d.flags()
	to, err := d.typ()
	if err != nil {
		return err
	}
	from, err := d.typ()
	if err != nil {
		return err
	}
	if to.class == 'p' || from.class == 'p' || to.class == 'h' || from.class == 'h' {
		return fmt.Errorf("not of these types")
	}
	if err := d.count(2); err != nil {
		return err
	}
	in := d.in
	// Registers may be wider than their values.
	wide := to.bits
	for i, t := range []typ{to, from} {
		if o := d.s.args[i]; o.kind == 'r' && o.bits < t.bits {
			return fmt.Errorf("operand %d has %d bits, not %d", i, o.bits, t.bits)
		} else if i == 0 && o.kind == 'r' {
			wide = o.bits
		}
	}
	if in.a, err = d.b.source(d.s.args[1], from); err != nil {
		return err
	}
	if in.d, err = d.b.target(d.s.args[0]); err != nil {
		return err
	}
	switch {
	case to.class != 'f' && from.class != 'f':
		switch {
		case f.sat:
			d.apply(saturate(to, from, wide))
		case from.class != 's' && to.bits >= from.bits && wide == to.bits || from == (typ{32, 'u'}) && to.bits == 64:
			in.imm = from.mask()
			in.fn = keep
		case from == (typ{32, 's'}) && to.bits == 64:
			in.fn = func(t *thread, in *instr) { t.r[in.d] = uint64(int64(int32(t.r[in.a]))) }
		case to.class != 's' && to.bits <= from.bits:
			in.imm = to.mask()
			in.fn = keep
		default:
			d.apply(func(x, _, _ uint64) uint64 {
				return uint64(signed(uint64(signed(x, from)), to)) & (^uint64(0) >> (64 - wide))
			})
		}
	case from.class != 'f':
		if to.bits == 64 && f.mode != 'n' {
			return fmt.Errorf("f64 is interpreted with .rn only")
		}
		d.apply(fromInt(to, from, f))
	case to.class != 'f':
		if whole == "" {
			return fmt.Errorf("it does not say how to round to an integer")
		}
		d.apply(toInt(to, from, whole, f, wide))
	default:
		if to.bits == 64 && f.mode != 'n' {
			return fmt.Errorf("f64 is interpreted with .rn only")
		}
		d.apply(func(x, _, _ uint64) uint64 {
			v := formats[from.bits].value(flushIf(x, from, f))
			if whole != "" {
				v = integral(v, whole)
			}
			return formats[to.bits].bits(v, f)
		})
	}
	return nil
}

func keep(t *thread, in *instr) { t.r[in.d] = t.r[in.a] & in.imm }

// saturate returns a conversion of integers that clamps to the target's range.
func saturate(to, from typ, wide uint8) function {
	return func(x, _, _ uint64) uint64 {
		v := signed(x, from)
		unsigned64 := from == (typ{64, 'u'})
		switch {
		case to.class != 's' && !unsigned64 && v < 0:
			v = 0
		case to.class != 's' && uint64(v) > to.mask():
			v = int64(to.mask())
		case to.class == 's':
			top := int64(to.mask() >> 1)
			if unsigned64 && x > uint64(top) {
				v = top
			}
			v = max(-top-1, min(top, v))
		}
		return uint64(v) & (^uint64(0) >> (64 - wide))
	}
}

func fromInt(to, from typ, f flags) function {
	return func(x, _, _ uint64) uint64 {
		v := signed(x, from)
		u, minus := uint64(v), from.class == 's' && v < 0
		if minus {
			u = -u
		}
		if to.bits == 64 {
			r := float64(u)
			if minus {
				r = -r
			}
			return math.Float64bits(r)
		}
		r := oddInt(u)
		if minus {
			r = -r
		}
		return formats[to.bits].bits(r, f)
	}
}

// integral rounds to an integer.
func integral(v float64, mode string) float64 {
	switch mode {
	case "rni":
		return math.RoundToEven(v)
	case "rzi":
		return math.Trunc(v)
	case "rmi":
		return math.Floor(v)
	}
	return math.Ceil(v)
}

// toInt returns a conversion that clamps to the integer's range and turns NaN into 0.
func toInt(to, from typ, mode string, f flags, wide uint8) function {
	return func(x, _, _ uint64) uint64 {
		v := integral(formats[from.bits].value(flushIf(x, from, f)), mode)
		low, high := 0.0, math.Ldexp(1, int(to.bits))
		if to.class == 's' {
			high /= 2
			low = -high
		}
		var r uint64
		switch {
		case v != v:
		case v >= high:
			if r = to.mask(); to.class == 's' {
				r >>= 1
			}
		case v <= low:
			r = uint64(int64(low))
		case to.class == 's':
			r = uint64(int64(v))
		default:
			r = uint64(v)
		}
		return uint64(signed(r, to)) & (^uint64(0) >> (64 - wide))
	}
}
