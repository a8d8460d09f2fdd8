package ptx

import "fmt"

// flags are the modifiers of floating-point arithmetic.
type flags struct {
	mode     byte // n, z, m or p
	ftz, sat bool
	approx   bool
	nan      bool
}

func (d *decoder) flags() flags {
	f := flags{mode: 'n'}
	if m := d.has("rn", "rz", "rm", "rp"); m != "" {
		f.mode = m[1]
	}
	f.approx = d.has("approx", "full") != ""
	f.ftz = d.has("ftz") != ""
	f.nan = d.has("NaN") != ""
	f.sat = d.has("sat") != ""
	return f
}

// fast holds specialised code for the most frequent forms; other forms call a function on the
// values.
var fast = map[string]exec{
	"add32": add32, "add64": add64, "sub32": sub32, "sub64": sub64, "and": and, "or": or, "xor": xor,
	"mul.lo32": mul32, "mul.lo64": mul64, "mad.lo32": mad32, "mad.lo64": mad64,
	"mul.wide.s32": mulWideS32, "mul.wide.u32": mulWideU32, "mad.wide.s32": madWideS32, "mad.wide.u32": madWideU32, "mul.hi.u32": mulHiU32,
	"shl32": shl32, "shl64": shl64, "shr.u32": shrU32, "shr.u64": shrU64, "shr.s32": shrS32, "shr.s64": shrS64,
	"add.f32": addF32, "sub.f32": subF32, "mul.f32": mulF32, "fma.f32": fmaF32,
}

// arithmetic decodes instructions that compute a value from values only.
func (d *decoder) arithmetic() error {
	op := d.s.op
	part := d.has("lo", "hi", "wide")
	if op == "shf" {
		return d.funnel()
	}
	if op == "lop3" || op == "prmt" {
		return d.bytewise(op)
	}
	f := d.flags()
	d.has("shiftamt")
	carry, approxOp := d.has("cc") != "", false
	t, err := d.typ()
	if err != nil {
		return err
	}
	switch op {
	case "ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", "copysign", "testp":
		approxOp = true
	}
	if t.class == 'f' || t.class == 'h' || approxOp {
		return d.floating(op, t, f)
	}
	if f.ftz || f.approx || f.nan || f.mode != 'n' {
		return fmt.Errorf("a modifier of floating-point arithmetic")
	}
	return d.integer(op, part, t, f.sat, carry)
}

// shapes are the operands of integer instructions by their number of sources.
func (d *decoder) integer(op, part string, t typ, sat, carry bool) error {
	in := d.in
	if carry || op == "addc" || op == "subc" || op == "madc" {
		return d.carrying(op, part, t, carry)
	}
	if sat {
		if t != (typ{32, 's'}) || op != "add" && op != "sub" {
			return fmt.Errorf("only add and sub of s32 saturate")
		}
		d.apply(saturating(op))
		return d.args(t, t, t)
	}
	u32 := typ{32, 'u'}
	switch op {
	case "popc", "clz", "bfind":
		d.apply(counting(op, t, d.shiftAmount()))
		return d.args(u32, t)
	case "not", "cnot", "neg", "abs", "brev":
		g := unary(op, t)
		if g == nil {
			return fmt.Errorf("not of this type")
		}
		d.apply(g)
		return d.args(t, t)
	case "bfe":
		d.apply(extract(t))
		return d.args(t, t, u32, u32)
	case "bfi":
		return d.insert(t)
	case "shl", "shr":
		if in.fn = fast[op+fmt.Sprint(t.bits)]; op == "shr" {
			in.fn = fast[op+"."+class(t)+fmt.Sprint(t.bits)]
		}
		if in.fn == nil {
			d.apply(shift16(op, t))
		}
		return d.args(t, t, u32)
	case "mul", "mad":
		if part == "" {
			return fmt.Errorf("neither .lo, .hi nor .wide")
		}
		to := t
		key := op + "." + part
		if part == "lo" {
			key += fmt.Sprint(t.bits)
		} else {
			key += "." + class(t) + fmt.Sprint(t.bits)
		}
		if part == "wide" {
			if to.bits *= 2; to.bits > 64 {
				return fmt.Errorf("a product of 128 bits")
			}
		}
		if in.fn = fast[key]; in.fn == nil {
			d.apply(product(part, t, to, op == "mad"))
		}
		if op == "mad" {
			return d.args(to, t, t, to)
		}
		return d.args(to, t, t)
	case "dp4a":
		return fmt.Errorf("it is not interpreted")
	}
	if t.class == 'p' && (op == "add" || op == "sub" || op == "min" || op == "max") {
		return fmt.Errorf("not of predicates")
	}
	switch op {
	case "and", "or", "xor":
		in.fn = fast[op]
	case "add", "sub":
		if in.fn = fast[op+fmt.Sprint(t.bits)]; in.fn == nil {
			d.apply(addSub16(op, t))
		}
	case "min", "max", "div", "rem":
		if op == "div" || op == "rem" {
			in.fn = divide(op, t)
		} else {
			d.apply(minMax(op, t))
		}
	default:
		return fmt.Errorf("the instruction is not known")
	}
	return d.args(t, t, t)
}

func class(t typ) string {
	if t.class == 's' {
		return "s"
	}
	return "u"
}

func (d *decoder) shiftAmount() bool {
	for _, m := range d.s.mods {
		if m == "shiftamt" {
			return true
		}
	}
	return false
}

// floating decodes arithmetic of f16, f16x2, f32 and f64.
func (d *decoder) floating(op string, t typ, f flags) error {
	in := d.in
	plain := f.mode == 'n' && !f.ftz && !f.sat && t == (typ{32, 'f'})
	if t.bits == 64 && f.mode != 'n' {
		return fmt.Errorf("f64 is interpreted with .rn only")
	}
	n := 0
	switch op {
	case "abs", "neg", "ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt":
		n = 1
	case "add", "sub", "mul", "div", "min", "max", "copysign":
		n = 2
	case "fma", "mad":
		op, n = "fma", 3
	default:
		return fmt.Errorf("the instruction is not known for this type")
	}
	if g := fast[op+".f32"]; plain && g != nil {
		in.fn = g
	} else {
		g := float(op, t, f)
		if g == nil {
			return fmt.Errorf("not of this type")
		}
		d.apply(g)
	}
	from := [3]typ{t, t, t}
	return d.args(t, from[:n]...)
}
