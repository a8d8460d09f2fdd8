package ptx

import "fmt"

// address uses operand i as the address of an access.
func (d *decoder) address(i int) error {
	if i >= len(d.s.args) || d.s.args[i].kind != 'm' {
		return fmt.Errorf("operand %d is not an address", i)
	}
	o := d.s.args[i]
	var err error
	d.in.imm = o.imm
	d.in.a, err = d.b.source(*o.base, b64)
	return err
}

// space reads the state space: g(lobal, or generic), s(hared), l(ocal), p(arameters).
func (d *decoder) space() byte {
	switch d.has("global", "shared", "local", "param", "const") {
	case "shared":
		d.has("cta")
		return 's'
	case "local":
		return 'l'
	case "param":
		return 'p'
	}
	return 'g'
}

// order reads the modifiers for ordering and caching. Strong accesses do not race with each other.
func (d *decoder) order() (strong bool) {
	switch d.has("volatile", "weak", "relaxed", "acquire", "release", "acq_rel", "mmio") {
	case "", "weak":
	default:
		strong = true
		d.has("sys", "gpu", "cta", "gl")
	}
	return strong
}

func (d *decoder) hints() {
	for d.has("nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
		"L2::64B", "L2::128B", "L2::256B", "L2::evict_first", "L2::evict_last", "L2::evict_normal", "L1", "L2") != "" {
	}
}

func (d *decoder) memory(op string) error {
	in := d.in
	strong := d.order()
	space := d.space()
	strong = d.order() || strong
	d.hints()
	switch op {
	case "prefetch", "prefetchu":
		in.fn = func(*thread, *instr) {}
		return nil
	case "atom", "red":
		return d.atomic(op, space)
	}
	n := map[string]int{"": 1, "v2": 2, "v4": 4}[d.has("v2", "v4")]
	d.hints()
	t, err := d.typ()
	if err != nil {
		return err
	}
	if err := d.count(2); err != nil {
		return err
	}
	x := &extra{size: t.bits / 8, signed: t.class == 's', strong: strong}
	at, val := 1, 0
	if op == "st" {
		at, val = 0, 1
	}
	values := []operand{d.s.args[val]}
	if values[0].kind == 'v' {
		values = values[0].vec
	}
	if len(values) != n || n*int(x.size) > 16 {
		return fmt.Errorf("%d values of %d bytes", len(values), x.size)
	}
	for _, v := range values {
		if v.kind == 'r' && v.bits < t.bits {
			return fmt.Errorf("a register of %d bits", v.bits)
		}
		var s int32
		if op == "st" {
			s, err = d.b.source(v, t)
		} else {
			s, err = d.b.target(v)
		}
		if err != nil {
			return err
		}
		x.regs, x.bits = append(x.regs, s), max(v.bits, t.bits)
	}
	in.x, in.sub = x, space
	if space == 'p' && op == "ld" && n == 1 {
		if fixed, err := d.fixedParam(d.s.args[at], x); fixed || err != nil {
			return err
		}
	}
	if space == 'l' && d.b.k.local == 0 {
		return fmt.Errorf("the kernel declares no local memory")
	}
	if err := d.address(at); err != nil {
		return err
	}
	in.access = int32(d.b.k.accesses)
	d.b.k.accesses++
	in.fn = load
	if op == "st" {
		in.fn = store
	}
	if n > 1 || strong || x.signed && x.bits > t.bits {
		return nil
	}
	in.d, in.b = x.regs[0], x.regs[0]
	switch fast := fmt.Sprint(op, string(space), t.bits); fast {
	case "ldg32":
		in.fn = loadGlobal32
	case "ldg64":
		in.fn = loadGlobal64
	case "stg32":
		in.fn = storeGlobal32
	case "stg64":
		in.fn = storeGlobal64
	case "lds32":
		in.fn = loadShared32
	case "sts32":
		in.fn = storeShared32
	}
	return nil
}

// fixedParam turns a load at a constant parameter offset into a move from a slot that the launch
// fills.
func (d *decoder) fixedParam(o operand, x *extra) (bool, error) {
	if o.kind != 'm' || o.base.kind != 's' {
		return false, nil
	}
	v := d.b.variable(o.base.name)
	if v == nil || v.space != ".param" {
		return false, fmt.Errorf("%s is not a parameter", o.base.name)
	}
	off := int(int64(o.imm)) + int(v.at)
	if off < int(v.at) || off+int(x.size) > int(v.at)+v.size {
		return false, fmt.Errorf("%d bytes at %d of parameter %s, which has %d", x.size, int64(o.imm), v.name, v.size)
	}
	p := paramSlot{off: off, size: int(x.size), signed: x.signed, bits: x.bits}
	s, ok := d.b.fixed[p]
	if !ok {
		s = d.b.slot()
		d.b.fixed[p] = s
		p.slot = s
		d.b.k.fixed = append(d.b.k.fixed, p)
	}
	d.in.fn, d.in.d, d.in.a = move, x.regs[0], s
	return true, nil
}

func move(t *thread, in *instr) { t.r[in.d] = t.r[in.a] }

// mov decodes a copy, an address, or packing and unpacking a vector.
func (d *decoder) mov() error {
	t, err := d.typ()
	if err != nil {
		return err
	}
	if err := d.count(2); err != nil {
		return err
	}
	to, from := d.s.args[0], d.s.args[1]
	in := d.in
	switch {
	case to.kind == 'v':
		x := &extra{size: t.bits / uint8(len(to.vec))}
		if in.a, err = d.src(1, t); err != nil {
			return err
		}
		for _, v := range to.vec {
			if v.kind == 'r' && v.bits != x.size {
				return fmt.Errorf("a part of %d bits, not %d", v.bits, x.size)
			}
			s, err := d.b.target(v)
			if err != nil {
				return err
			}
			x.regs = append(x.regs, s)
		}
		in.x = x
		in.fn = func(t *thread, in *instr) {
			v, mask := t.r[in.a], ^uint64(0)>>(64-in.x.size)
			for i, s := range in.x.regs {
				t.r[s] = v >> (i * int(in.x.size)) & mask
			}
		}
		return nil
	case from.kind == 'v':
		x := &extra{size: t.bits / uint8(len(from.vec))}
		for _, v := range from.vec {
			if v.kind == 'r' && v.bits != x.size {
				return fmt.Errorf("a part of %d bits, not %d", v.bits, x.size)
			}
			s, err := d.b.source(v, typ{x.size, 'b'})
			if err != nil {
				return err
			}
			x.regs = append(x.regs, s)
		}
		in.x = x
		in.fn = func(t *thread, in *instr) {
			v := uint64(0)
			for i, s := range in.x.regs {
				v |= t.r[s] << (i * int(in.x.size))
			}
			t.r[in.d] = v
		}
		in.d, err = d.dst(0, t)
		return err
	}
	in.fn = move
	if from.kind == 's' {
		// A shared variable's address fits into 32 bits.
		if in.a, err = d.b.source(from, b64); err != nil {
			return err
		}
		in.d, err = d.dst(0, t)
		return err
	}
	return d.args(t, t)
}

// window decodes cvta, which converts between addresses of a space and generic addresses.
func (d *decoder) window(op string) error {
	in := d.in
	if op == "isspacep" {
		return fmt.Errorf("it is not interpreted")
	}
	to := d.has("to") != ""
	base := uint64(0)
	switch d.has("global", "shared", "local", "const", "param") {
	case "":
		return fmt.Errorf("it names no space")
	case "shared":
		base = sharedWindow
	case "local":
		base = localWindow
	case "param":
		return fmt.Errorf("generic addresses of parameters are not interpreted")
	}
	t, err := d.typ()
	if err != nil {
		return err
	}
	if t.bits != 64 {
		return fmt.Errorf("addresses of %d bits", t.bits)
	}
	if to {
		base = -base
	}
	in.imm, in.fn = base, func(t *thread, in *instr) { t.r[in.d] = t.r[in.a] + in.imm }
	if err := d.count(2); err != nil {
		return err
	}
	if in.a, err = d.b.source(d.s.args[1], t); err != nil {
		return err
	}
	in.d, err = d.dst(0, t)
	return err
}
