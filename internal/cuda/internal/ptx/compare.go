package ptx

import "fmt"

// Comparisons in instr.sub. The unordered ones are true if an operand is NaN.
const (
	eq = iota
	ne
	lt
	le
	gt
	ge
	num
	nan
	unordered = 8 // added to eq to ge
)

var comparisons = map[string]uint8{
	"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge, "lo": lt, "ls": le, "hi": gt, "hs": ge,
	"equ": eq + unordered, "neu": ne + unordered, "ltu": lt + unordered, "leu": le + unordered, "gtu": gt + unordered, "geu": ge + unordered,
	"num": num, "nan": nan,
}

// compare decodes setp, which sets a predicate, and set, which sets a number.
func (d *decoder) compare(op string) error {
	in, s := d.in, d.s
	name := ""
	for c := range comparisons {
		if d.has(c) != "" {
			name = c
		}
	}
	if name == "" {
		return fmt.Errorf("its comparison is not known")
	}
	in.sub = comparisons[name]
	x := &extra{second: -1, bits: 1}
	if c := d.has("and", "or", "xor"); c != "" {
		x.combine = c[0]
	}
	f := flags{ftz: d.has("ftz") != ""}
	to := pred
	var err error
	if op == "set" {
		if to, err = d.typ(); err != nil {
			return err
		}
	}
	t, err := d.typ()
	if err != nil {
		return err
	}
	if name == "lo" || name == "ls" || name == "hi" || name == "hs" {
		t.class = 'u'
	}
	if (t.class != 'f') && (in.sub >= num) || t.class == 'p' || t.class == 'h' {
		return fmt.Errorf("not of this type")
	}
	n := 3
	if x.combine != 0 {
		n = 4
	}
	if err := d.count(n); err != nil {
		return err
	}
	if in.a, err = d.src(1, t); err != nil {
		return err
	}
	if in.b, err = d.src(2, t); err != nil {
		return err
	}
	if n == 4 {
		x.negB = s.args[3].not
		s.args[3].not = false
		if in.c, err = d.src(3, pred); err != nil {
			return err
		}
	}
	if second := s.args[0].second; second != nil {
		if x.second, err = d.b.target(*second); err != nil {
			return err
		}
	}
	if in.d, err = d.dst(0, to); err != nil {
		return err
	}
	test := comparison(t, f)
	switch plain := x.combine == 0 && x.second < 0 && op == "setp"; {
	case plain && t.bits == 32 && t.class == 's':
		in.fn = setpS32
	case plain && t.bits == 64 && t.class == 's':
		in.fn = setpS64
	case plain && t.bits >= 32 && t.class != 'f':
		in.fn = setpU
	case plain && t.bits == 32 && !f.ftz:
		in.fn = setpF32
	default:
		yes := uint64(1)
		if to.class == 'f' {
			yes = formats[to.bits].bits(1, flags{mode: 'n'})
		} else if to.class != 'p' {
			yes = to.mask()
		}
		in.x = x
		in.fn = func(t *thread, in *instr) {
			v := test(in.sub, t.r[in.a], t.r[in.b])
			other := !v
			if in.x.combine != 0 {
				p := (t.r[in.c] != 0) != in.x.negB
				v, other = join(in.x.combine, v, p), join(in.x.combine, other, p)
			}
			t.r[in.d] = yes * truth(v)
			if in.x.second >= 0 {
				t.r[in.x.second] = truth(other)
			}
		}
	}
	return nil
}

func join(how byte, v, p bool) bool {
	switch how {
	case 'a':
		return v && p
	case 'o':
		return v || p
	}
	return v != p
}

// ordered compares two numbers.
func ordered[T int32 | int64 | uint64 | float32 | float64](how uint8, x, y T) bool {
	switch how {
	case eq:
		return x == y
	case ne:
		return x != y
	case lt:
		return x < y
	case le:
		return x <= y
	case gt:
		return x > y
	}
	return x >= y
}

// number compares values that may be NaN.
func number[T float32 | float64](how uint8, x, y T) bool {
	isNaN := x != x || y != y
	switch {
	case how == num:
		return !isNaN
	case how == nan:
		return isNaN
	case isNaN:
		return how >= unordered
	}
	return ordered(how&^unordered, x, y)
}

func setpS32(t *thread, in *instr) {
	t.r[in.d] = truth(ordered(in.sub, int32(t.r[in.a]), int32(t.r[in.b])))
}

func setpS64(t *thread, in *instr) {
	t.r[in.d] = truth(ordered(in.sub, int64(t.r[in.a]), int64(t.r[in.b])))
}
func setpU(t *thread, in *instr)   { t.r[in.d] = truth(ordered(in.sub, t.r[in.a], t.r[in.b])) }
func setpF32(t *thread, in *instr) { t.r[in.d] = truth(number(in.sub, f32(t.r[in.a]), f32(t.r[in.b]))) }

func comparison(t typ, f flags) func(how uint8, x, y uint64) bool {
	switch t.class {
	case 'f':
		ft := formats[t.bits]
		return func(how uint8, x, y uint64) bool {
			return number(how, ft.value(flushIf(x, t, f)), ft.value(flushIf(y, t, f)))
		}
	case 's':
		return func(how uint8, x, y uint64) bool { return ordered(how, signed(x, t), signed(y, t)) }
	}
	return func(how uint8, x, y uint64) bool { return ordered(how, x, y) }
}
