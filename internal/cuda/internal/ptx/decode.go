package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// decoder decodes one statement.
type decoder struct {
	b    *body
	s    *statement
	in   *instr
	used []bool // modifiers that the decoder has used
}

// lineError is an error at a line other than the parser's.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// decode turns the statements into code.
func (b *body) decode() error {
	b.layoutShared()
	for i := range b.stmts {
		s := &b.stmts[i]
		in := instr{guard: s.guard, not: s.not, line: int32(s.line)}
		d := &decoder{b, s, &in, make([]bool, len(s.mods))}
		err := d.decode()
		if at := slices.Index(d.used, false); err == nil && at >= 0 {
			err = fmt.Errorf("the modifier .%s is not known", s.mods[at])
		}
		if err != nil {
			return &lineError{s.line, fmt.Errorf("%s: %w", strings.Join(append([]string{s.op}, s.mods...), "."), err)}
		}
		b.k.code = append(b.k.code, in)
	}
	line := int32(b.p.line())
	b.k.code = append(b.k.code, instr{fn: exit, guard: -1, line: line})
	b.arrange()
	return nil
}

// arrange moves the slots that must be initialised in a thread before those of its registers, which
// start with the values that an earlier thread left in them.
func (b *body) arrange() {
	k := b.k
	if k.slots == 0 {
		b.slot() // slot 0 stands for unused operands
	}
	to := make([]int32, k.slots)
	for i := range to {
		to[i] = -1
	}
	n := int32(0)
	first := func(s *int32) {
		if to[*s] < 0 {
			to[*s] = n
			n++
		}
		*s = to[*s]
	}
	k.template = make([]uint64, k.slots)
	for s, v := range b.values {
		at := s
		first(&at)
		k.template[at] = v
	}
	for i := range k.fixed {
		first(&k.fixed[i].slot)
	}
	for i := range k.symbols {
		first(&k.symbols[i].slot)
	}
	for i := range k.specials {
		first(&k.specials[i].slot)
	}
	k.template = k.template[:n]
	for s := range to {
		if to[s] < 0 {
			to[s] = n
			n++
		}
	}
	for i := range k.code {
		in := &k.code[i]
		in.d, in.a, in.b, in.c, in.e = to[in.d], to[in.a], to[in.b], to[in.c], to[in.e]
		if in.guard >= 0 {
			in.guard = to[in.guard]
		}
		if x := in.x; x != nil {
			for j := range x.regs {
				x.regs[j] = to[x.regs[j]]
			}
			if x.second >= 0 {
				x.second = to[x.second]
			}
		}
	}
}

// has returns the first unused modifier of the instruction that is one of the names, or "".
func (d *decoder) has(names ...string) string {
	for i, m := range d.s.mods {
		if !d.used[i] && slices.Contains(names, m) {
			d.used[i] = true
			return m
		}
	}
	return ""
}

// typ returns the next type among the modifiers.
func (d *decoder) typ() (typ, error) {
	for i, m := range d.s.mods {
		if t, ok := types[m]; ok && !d.used[i] {
			d.used[i] = true
			return t, nil
		}
	}
	return typ{}, fmt.Errorf("it has no type")
}

func (d *decoder) count(n ...int) error {
	if !slices.Contains(n, len(d.s.args)) {
		return fmt.Errorf("%d operands", len(d.s.args))
	}
	return nil
}

// src returns the slot of operand i, a value of type t.
func (d *decoder) src(i int, t typ) (int32, error) {
	if i >= len(d.s.args) {
		return 0, fmt.Errorf("operand %d is missing", i)
	}
	o := d.s.args[i]
	if o.kind == 'r' && o.bits != t.bits {
		return 0, fmt.Errorf("operand %d has %d bits, not %d", i, o.bits, t.bits)
	}
	return d.b.source(o, t)
}

// dst returns the slot of operand i, the destination of a value of type t.
func (d *decoder) dst(i int, t typ) (int32, error) {
	if i >= len(d.s.args) {
		return 0, fmt.Errorf("operand %d is missing", i)
	}
	o := d.s.args[i]
	if o.kind == 'r' && o.bits != t.bits {
		return 0, fmt.Errorf("operand %d has %d bits, not %d", i, o.bits, t.bits)
	}
	return d.b.target(o)
}

// args sets the slots: a result of type to, then sources of the given types.
func (d *decoder) args(to typ, from ...typ) error {
	if err := d.count(1 + len(from)); err != nil {
		return err
	}
	for i, s := range []*int32{&d.in.a, &d.in.b, &d.in.c, &d.in.e}[:len(from)] {
		var err error
		if *s, err = d.src(1+i, from[i]); err != nil {
			return err
		}
	}
	var err error
	d.in.d, err = d.dst(0, to)
	return err
}

// apply makes the instruction compute f of its sources.
func (d *decoder) apply(f func(x, y, z uint64) uint64) {
	d.in.x = &extra{f: f}
	d.in.fn = func(t *thread, in *instr) { t.r[in.d] = in.x.f(t.r[in.a], t.r[in.b], t.r[in.c]) }
}

var b32, b64, pred = typ{32, 'b'}, typ{64, 'b'}, typ{1, 'p'}

func (d *decoder) decode() error {
	in := d.in
	switch op := d.s.op; op {
	case "ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu":
		return d.memory(op)
	case "cvta", "isspacep":
		return d.window(op)
	case "mov":
		return d.mov()
	case "cvt":
		return d.convert()
	case "set", "setp":
		return d.compare(op)
	case "selp":
		t, err := d.typ()
		if err != nil {
			return err
		}
		in.fn = selp
		return d.args(t, t, t, pred)
	case "bra":
		d.has("uni")
		in.fn = branch
		if err := d.count(1); err != nil {
			return err
		}
		at, err := d.label(d.s.args[0].name)
		in.imm = uint64(at)
		return err
	case "brx":
		return d.branchIndexed()
	case "ret", "exit":
		d.has("uni")
		in.fn = exit
		return d.count(0)
	case "trap":
		in.fn = func(t *thread, in *instr) {
			t.fail(in, Trap, 0, "the kernel stopped itself by a trap (an assertion, or a case that cannot be)")
		}
		return d.count(0)
	case "membar", "fence":
		d.has("sc", "acq_rel")
		d.has("cta", "gl", "gpu", "sys")
		in.fn = func(*thread, *instr) {}
		return d.count(0)
	case "bar", "barrier":
		return d.barrier()
	case "shfl", "vote", "match":
		return d.lanes(op)
	case "call":
		return fmt.Errorf("calls are not interpreted; make the function __forceinline__")
	}
	return d.arithmetic()
}

func selp(t *thread, in *instr) {
	if t.r[in.c] != 0 {
		t.r[in.d] = t.r[in.a]
	} else {
		t.r[in.d] = t.r[in.b]
	}
}

func branch(t *thread, in *instr) { t.pc = int(in.imm) }

func (d *decoder) label(name string) (int, error) {
	at, ok := d.b.labels[name]
	if !ok {
		return 0, fmt.Errorf("label %q is nowhere", name)
	}
	return at, nil
}

// branchIndexed decodes brx.idx: a jump through a table of labels.
func (d *decoder) branchIndexed() error {
	d.has("idx")
	d.has("uni")
	if err := d.count(2); err != nil {
		return err
	}
	var err error
	if d.in.a, err = d.src(0, b32); err != nil {
		return err
	}
	x := &extra{}
	for _, name := range d.b.targets[d.s.args[1].name] {
		at, err := d.label(name)
		if err != nil {
			return err
		}
		x.targets = append(x.targets, int32(at))
	}
	d.in.x = x
	d.in.fn = func(t *thread, in *instr) {
		i := t.r[in.a]
		if i >= uint64(len(in.x.targets)) {
			t.fail(in, Undefined, 0, "the index %d is beyond the %d targets", i, len(in.x.targets))
		}
		t.pc = int(in.x.targets[i])
	}
	return nil
}

func (d *decoder) barrier() error {
	in := d.in
	d.has("cta")
	if d.has("warp") != "" {
		d.has("sync")
		in.fn, in.fn2 = waitWarp, syncWarp
		if err := d.count(1); err != nil {
			return err
		}
		var err error
		in.c, err = d.src(0, b32)
		return err
	}
	in.fn = waitBarrier
	switch d.has("sync", "red") {
	case "sync":
		d.has("aligned")
		if err := d.count(1); err != nil {
			return fmt.Errorf("barriers of a part of a block are not interpreted: %w", err)
		}
	case "red":
		x := &extra{combine: map[string]byte{"and": 'a', "or": 'o', "popc": 'p'}[d.has("and", "or", "popc")]}
		d.has("aligned")
		t, err := d.typ()
		if err != nil {
			return err
		}
		if err := d.count(3); err != nil {
			return err
		}
		x.negB = d.s.args[2].not
		d.s.args[2].not = false
		if in.a, err = d.src(2, pred); err != nil {
			return err
		}
		in.x = x
		in.d, err = d.dst(0, t)
		return err
	default:
		return fmt.Errorf("this barrier is not interpreted")
	}
	return nil
}

// lanes decodes shfl, vote and match.
func (d *decoder) lanes(op string) error {
	in, x := d.in, &extra{second: -1}
	if d.has("sync") == "" {
		return fmt.Errorf("only the .sync form is interpreted")
	}
	in.fn, in.x = waitWarp, x
	mode := d.has("up", "down", "bfly", "idx", "all", "any", "uni", "ballot")
	if mode == "" {
		return fmt.Errorf("its mode is not known")
	}
	t, err := d.typ()
	if err != nil {
		return err
	}
	mask := 2
	switch {
	case op == "shfl":
		mask = 4
		in.fn2, in.sub = shuffle, mode[0]
		if err := d.count(5); err != nil {
			return err
		}
		if in.b, err = d.src(2, b32); err != nil {
			return err
		}
		if in.e, err = d.src(3, b32); err != nil {
			return err
		}
	case op == "vote":
		in.fn2, in.sub = vote, mode[0]
		if mode == "any" {
			in.sub = 'o'
		}
	default:
		in.fn2, in.sub = match, mode[0]
		if mode == "any" {
			in.sub = 'o'
		}
	}
	if err := d.count(mask + 1); err != nil {
		return err
	}
	if in.c, err = d.src(mask, b32); err != nil {
		return err
	}
	from, to := t, t
	switch op {
	case "vote":
		from = pred
		x.negB = d.s.args[1].not
		d.s.args[1].not = false
	case "match":
		to = b32
	}
	if in.a, err = d.src(1, from); err != nil {
		return err
	}
	if s := d.s.args[0].second; s != nil {
		if x.second, err = d.b.target(*s); err != nil {
			return err
		}
	}
	in.d, err = d.dst(0, to)
	return err
}
