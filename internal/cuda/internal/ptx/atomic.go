package ptx

import "fmt"

// atomic decodes atom, and red, which has no result.
func (d *decoder) atomic(op string, space byte) error {
	in := d.in
	d.has("relaxed", "acquire", "release", "acq_rel")
	d.has("cta", "gpu", "sys", "gl")
	name := d.has("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
	d.has("noftz")
	d.has("L2")
	t, err := d.typ()
	if err != nil {
		return err
	}
	f := modify(name, t)
	if f == nil {
		return fmt.Errorf("the operation is not known for this type")
	}
	at, n := 1, 3
	if op == "red" {
		at, n = 0, 2
	}
	if name == "cas" {
		n++
	}
	if err := d.count(n); err != nil {
		return err
	}
	if err := d.address(at); err != nil {
		return err
	}
	if in.b, err = d.src(at+1, t); err != nil {
		return err
	}
	if name == "cas" {
		if in.c, err = d.src(at+2, t); err != nil {
			return err
		}
	}
	in.d = d.b.slot()
	if op == "atom" {
		if in.d, err = d.dst(0, t); err != nil {
			return err
		}
	}
	if space == 'l' || space == 'p' {
		return fmt.Errorf("not in this space")
	}
	in.sub, in.x = space, &extra{size: t.bits / 8, strong: true, atom: f}
	in.access = int32(d.b.k.accesses)
	d.b.k.accesses++
	in.fn = change
	return nil
}

// change executes an atomic. It reads the memory, which must have been written before.
func change(t *thread, in *instr) {
	l := t.w.l
	if in.sub != 's' && !t.w.races {
		// Other blocks may run at the same time. The code below may panic, so the lock is released
		// by defer.
		l.atomics.Lock()
		defer l.atomics.Unlock()
	}
	n := int(in.x.size)
	old := word(t.span(in, uint64(n), false), n)
	putWord(t.span(in, uint64(n), true), n, in.x.atom(old, t.r[in.b], t.r[in.c]))
	t.r[in.d] = old
}

// modify returns the function that computes the stored value of an atomic, from the old value and
// its operands.
func modify(op string, t typ) func(old, b, c uint64) uint64 {
	if t.class == 'f' || t.class == 'h' {
		if op != "add" {
			return nil
		}
		add := float("add", t, flags{mode: 'n'})
		return func(old, b, _ uint64) uint64 { return add(old, b, 0) }
	}
	if t.bits < 32 && (op != "cas" || t.bits != 16) {
		return nil
	}
	switch op {
	case "add":
		return func(old, b, _ uint64) uint64 { return (old + b) & t.mask() }
	case "min", "max":
		f := minMax(op, t)
		return func(old, b, _ uint64) uint64 { return f(old, b, 0) }
	case "and":
		return func(old, b, _ uint64) uint64 { return old & b }
	case "or":
		return func(old, b, _ uint64) uint64 { return old | b }
	case "xor":
		return func(old, b, _ uint64) uint64 { return old ^ b }
	case "exch":
		return func(_, b, _ uint64) uint64 { return b }
	case "cas":
		return func(old, b, c uint64) uint64 {
			if old == b {
				return c
			}
			return old
		}
	case "inc":
		return func(old, b, _ uint64) uint64 {
			if old >= b {
				return 0
			}
			return old + 1
		}
	case "dec":
		return func(old, b, _ uint64) uint64 {
			if old == 0 || old > b {
				return b
			}
			return old - 1
		}
	}
	return nil
}
