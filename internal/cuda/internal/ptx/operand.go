package ptx

import (
	"fmt"
	"strings"
)

// operand reads one operand.
func (b *body) operand() (operand, error) {
	p := b.p
	switch {
	case p.accept("{"):
		o := operand{kind: 'v'}
		for {
			e, err := b.operand()
			if err != nil {
				return o, err
			}
			o.vec = append(o.vec, e)
			if p.accept("}") {
				return o, nil
			}
			if err := p.expect(","); err != nil {
				return o, err
			}
		}
	case p.accept("["):
		base, err := b.operand()
		if err != nil {
			return base, err
		}
		if base.kind != 'r' && base.kind != 's' && base.kind != 'n' {
			return base, fmt.Errorf("an address that is neither register, name nor number")
		}
		o := operand{kind: 'm', base: &base}
		if p.peek() == "+" || p.peek() == "-" {
			p.accept("+")
			if o.imm, err = p.number(); err != nil {
				return o, err
			}
		}
		return o, p.expect("]")
	case p.accept("!"):
		o, err := b.operand()
		if err == nil && (o.kind != 'r' || o.bits != 1) {
			err = fmt.Errorf("! before what is not a predicate")
		}
		o.not = true
		return o, err
	case p.peek() == "-" || p.at < len(p.tokens) && p.tokens[p.at].number():
		x, err := p.number()
		return operand{kind: 'n', imm: x}, err
	}
	name := p.next()
	if name == "" || !wordStart(name[0]) {
		return operand{}, fmt.Errorf("%q where an operand should be", name)
	}
	if name == "_" {
		return operand{kind: '_'}, nil
	}
	o, ok := b.register(name)
	switch {
	case ok:
	case name[0] == '%' || name == "WARP_SZ":
		s, err := b.specialRegister(name)
		if err != nil {
			return o, err
		}
		o = operand{kind: 'r', slot: s, bits: 32}
	default:
		o = operand{kind: 's', name: name}
	}
	if p.accept("|") {
		second, err := b.operand()
		if err != nil {
			return o, err
		}
		o.second = &second
	}
	return o, nil
}

// The special registers, by special.what.
const (
	tidOf uint8 = iota
	ntidOf
	ctaidOf
	nctaidOf
	laneOf
	warpOf
	warpsOf
	warpSize
	dynamicShared
	totalShared
	maskEq
	maskLt
	maskLe
	maskGt
	maskGe
)

var specialNames = map[string]uint8{
	"%tid": tidOf, "%ntid": ntidOf, "%ctaid": ctaidOf, "%nctaid": nctaidOf, // with .x, .y or .z
	"%laneid": laneOf, "%warpid": warpOf, "%nwarpid": warpsOf, "WARP_SZ": warpSize, "%dynamic_smem_size": dynamicShared, "%total_smem_size": totalShared,
	"%lanemask_eq": maskEq, "%lanemask_lt": maskLt, "%lanemask_le": maskLe, "%lanemask_gt": maskGt, "%lanemask_ge": maskGe,
}

func (b *body) specialRegister(name string) (int32, error) {
	base, axis, hasAxis := strings.Cut(name, ".")
	what, ok := specialNames[base]
	if !ok || hasAxis != (what <= nctaidOf) || hasAxis && (len(axis) != 1 || axis[0] < 'x' || axis[0] > 'z') {
		return 0, fmt.Errorf("register %s is not declared, or is one of the device's that the interpreter does not have", name)
	}
	s, ok := b.special[name]
	if !ok {
		s = b.slot()
		b.special[name] = s
		n := uint8(0)
		if hasAxis {
			n = axis[0] - 'x'
		}
		b.k.specials = append(b.k.specials, special{s, name, what, n})
	}
	return s, nil
}

// constant returns the slot of a number.
func (b *body) constant(x uint64) int32 {
	s, ok := b.consts[x]
	if !ok {
		s = b.slot()
		b.consts[x], b.values[s] = s, x
	}
	return s
}

// address returns the slot of the address of a variable in its own space.
func (b *body) address(v *variable) int32 {
	if v.space != ".global" && v.space != ".const" {
		return b.constant(v.at)
	}
	s, ok := b.symbols[v]
	if !ok {
		s = b.slot()
		b.symbols[v] = s
		b.k.symbols = append(b.k.symbols, symbolSlot{s, v})
	}
	return s
}

// source returns the slot of an operand that is read as type t.
func (b *body) source(o operand, t typ) (int32, error) {
	switch o.kind {
	case 'r':
		if o.not {
			return 0, fmt.Errorf("a negated predicate where none can be")
		}
		return o.slot, nil
	case 'n':
		if t.class == 'p' {
			t.bits = 1
		}
		return b.constant(o.imm & t.mask()), nil
	case 's':
		if v := b.variable(o.name); v != nil {
			return b.address(v), nil
		}
		return 0, fmt.Errorf("the name %s is not declared", o.name)
	}
	return 0, fmt.Errorf("an operand of a kind that cannot be here")
}

// target returns the slot of an operand that is written.
func (b *body) target(o operand) (int32, error) {
	switch {
	case o.kind == '_':
		return b.slot(), nil // the result is discarded
	case o.kind != 'r' || o.not:
		return 0, fmt.Errorf("a result goes to a register")
	}
	if _, constant := b.values[o.slot]; constant {
		return 0, fmt.Errorf("a result goes to a register")
	}
	for _, s := range b.k.specials {
		if s.slot == o.slot {
			return 0, fmt.Errorf("register %s cannot be written", s.name)
		}
	}
	return o.slot, nil
}

// layoutShared assigns offsets to the shared variables: the kernel's own first, then the module's
// variables that it uses, and dynamic ones last.
func (b *body) layoutShared() {
	var open []*variable
	place := func(v *variable) {
		v.at = uint64((b.k.Shared + v.align - 1) / v.align * v.align)
		b.k.Shared = int(v.at) + v.size
	}
	all := b.shared
	for _, g := range b.p.m.globals {
		if g.space == ".shared" && b.names(g) {
			// Each kernel has its own layout.
			own := *g
			b.scopes[0].vars[g.name] = &own
			all = append(all, &own)
		}
	}
	for _, v := range all {
		if v.open {
			open = append(open, v)
		} else {
			place(v)
		}
	}
	for _, v := range open {
		v.at = uint64((b.k.Shared + v.align - 1) / v.align * v.align)
		b.k.Shared = int(v.at)
	}
}

// names reports whether a statement names the variable.
func (b *body) names(v *variable) bool {
	is := func(o *operand) bool { return o.kind == 's' && o.name == v.name }
	for i := range b.stmts {
		for j := range b.stmts[i].args {
			if o := &b.stmts[i].args[j]; is(o) || o.kind == 'm' && is(o.base) {
				return true
			}
		}
	}
	return false
}
