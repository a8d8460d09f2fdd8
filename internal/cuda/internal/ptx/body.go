package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// typ is a PTX type: its class is u, s, b, f, p (predicate) or h (two f16).
type typ struct {
	bits  uint8
	class byte
}

var types = map[string]typ{
	"u8": {8, 'u'}, "u16": {16, 'u'}, "u32": {32, 'u'}, "u64": {64, 'u'}, "s8": {8, 's'}, "s16": {16, 's'}, "s32": {32, 's'}, "s64": {64, 's'},
	"b8": {8, 'b'}, "b16": {16, 'b'}, "b32": {32, 'b'}, "b64": {64, 'b'}, "f16": {16, 'f'}, "f32": {32, 'f'}, "f64": {64, 'f'}, "f16x2": {32, 'h'}, "pred": {1, 'p'},
}

func (t typ) mask() uint64 { return ^uint64(0) >> (64 - uint(t.bits)) }

// operand is one operand as written in the source.
type operand struct {
	kind   byte // r register, n number, s symbol or label, m memory [base+off], v vector, _ nothing
	slot   int32
	bits   uint8 // of a register
	not    bool  // !p
	imm    uint64
	name   string
	base   *operand
	vec    []operand
	second *operand // d|p
}

// statement is one instruction as written in the source.
type statement struct {
	line  int
	op    string
	mods  []string
	guard int32
	not   bool
	args  []operand
}

// special is a slot that holds one of the thread's special registers.
type special struct {
	slot int32
	name string
	what uint8
	axis uint8
}

type paramSlot struct {
	slot      int32
	off, size int
	signed    bool
	bits      uint8 // width of the destination register
}

type symbolSlot struct {
	slot int32
	v    *variable
}

// scope holds the names declared in one pair of braces.
type scope struct {
	regs map[string]operand
	vars map[string]*variable
}

// body parses a kernel's statements.
type body struct {
	p       *parser
	k       *Kernel
	scopes  []scope
	shared  []*variable
	stmts   []statement
	labels  map[string]int
	targets map[string][]string // .branchtargets
	consts  map[uint64]int32
	fixed   map[paramSlot]int32
	special map[string]int32
	symbols map[*variable]int32
	values  map[int32]uint64 // of constant slots
}

func newBody(p *parser, k *Kernel) *body {
	b := &body{
		p: p, k: k, labels: map[string]int{}, targets: map[string][]string{}, consts: map[uint64]int32{}, fixed: map[paramSlot]int32{},
		special: map[string]int32{}, symbols: map[*variable]int32{}, values: map[int32]uint64{},
	}
	b.push()
	return b
}

func (b *body) push() {
	b.scopes = append(b.scopes, scope{map[string]operand{}, map[string]*variable{}})
}

// pop ends a scope. Its registers have been resolved; its variables are resolved later, so they
// stay.
func (b *body) pop() {
	last := b.scopes[len(b.scopes)-1]
	b.scopes = b.scopes[:len(b.scopes)-1]
	for _, v := range last.vars {
		if b.variable(v.name) == nil {
			b.declare(v)
		}
	}
}

// slot returns a new slot.
func (b *body) slot() int32 {
	b.k.slots++
	return int32(b.k.slots - 1)
}

func (b *body) declare(v *variable) { b.scopes[len(b.scopes)-1].vars[v.name] = v }

// variable resolves a name, innermost scope first.
func (b *body) variable(name string) *variable {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if v := b.scopes[i].vars[name]; v != nil {
			return v
		}
	}
	for _, v := range b.p.m.globals {
		if v.name == name {
			return v
		}
	}
	return nil
}

func (b *body) register(name string) (operand, bool) {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if r, ok := b.scopes[i].regs[name]; ok {
			return r, true
		}
	}
	return operand{}, false
}

// param reads one parameter of the entry.
func (b *body) param() error {
	p := b.p
	if err := p.expect(".param"); err != nil {
		return err
	}
	v := &variable{space: ".param", align: 1}
	for strings.HasPrefix(p.peek(), ".") {
		switch word := p.next(); word {
		case ".align":
			n, err := p.count()
			if err != nil {
				return err
			}
			if v.size == 0 { // after .ptr, it is the alignment of the pointed-to memory
				v.align = max(n, 1)
			}
		case ".ptr", ".global", ".const", ".local", ".shared":
		default:
			t, ok := types[word[1:]]
			if !ok {
				return fmt.Errorf("a parameter of type %s", word)
			}
			v.size = int(t.bits) / 8
			v.align = max(v.align, v.size)
		}
	}
	if v.size == 0 {
		return fmt.Errorf("a parameter without a type")
	}
	v.name = p.next()
	if p.accept("[") {
		n, err := p.count()
		if err != nil {
			return err
		}
		v.size *= n
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	off := (b.k.params + v.align - 1) / v.align * v.align
	if off+v.size > 4096 {
		return fmt.Errorf("kernel %s has more than 4096 bytes of parameters", b.k.Name)
	}
	v.at, b.k.params = uint64(off), off+v.size
	b.k.Params = append(b.k.Params, Param{off, v.size})
	b.declare(v)
	return nil
}

// parse reads the body from its opening brace and decodes it.
func (b *body) parse() error {
	p := b.p
	if err := p.expect("{"); err != nil {
		return err
	}
	for depth := 1; depth > 0; {
		if p.at >= len(p.tokens) {
			return fmt.Errorf("the file ends in the body of kernel %s", b.k.Name)
		}
		switch word := p.peek(); {
		case word == "{":
			p.at++
			b.push()
			depth++
		case word == "}":
			p.at++
			if depth--; depth > 0 {
				b.pop()
			}
		case word == ";":
			p.at++
		case p.at+1 < len(p.tokens) && p.tokens[p.at+1].text == ":":
			p.at += 2
			if p.accept(".branchtargets") {
				for {
					b.targets[word] = append(b.targets[word], p.next())
					if !p.accept(",") {
						break
					}
				}
				if err := p.expect(";"); err != nil {
					return err
				}
				continue
			}
			if _, ok := b.labels[word]; ok {
				return fmt.Errorf("label %s is there twice", word)
			}
			b.labels[word] = len(b.stmts)
		case word[0] == '.':
			p.at++
			if err := b.directive(word); err != nil {
				return err
			}
		default:
			if err := b.statement(); err != nil {
				return err
			}
		}
	}
	return b.decode()
}

func (b *body) directive(word string) error {
	p := b.p
	switch word {
	case ".reg":
		return b.reg()
	case ".shared", ".local":
		v, err := p.variable(word)
		if err != nil {
			return err
		}
		b.declare(v)
		if word == ".shared" {
			b.shared = append(b.shared, v)
			return nil
		}
		v.at = uint64((b.k.local + v.align - 1) / v.align * v.align)
		b.k.local = int(v.at) + v.size
		return nil
	case ".pragma":
		return p.skip(";")
	case ".loc":
		for p.at < len(p.tokens) && p.tokens[p.at].line == p.tokens[p.at-1].line {
			p.at++
		}
		return nil
	}
	return fmt.Errorf("%q is not known in a kernel", word)
}

// reg reads a register declaration.
func (b *body) reg() error {
	p := b.p
	t, ok := types[strings.TrimPrefix(p.next(), ".")]
	if !ok {
		return fmt.Errorf("registers of an unknown type")
	}
	for {
		name := p.next()
		n, numbered := 1, false
		if p.accept("<") {
			var err error
			if n, err = p.count(); err != nil {
				return err
			}
			if numbered = true; n > 1<<16 {
				return fmt.Errorf("%d registers", n)
			}
			if err := p.expect(">"); err != nil {
				return err
			}
		}
		for i := range n {
			full := name
			if numbered {
				full += strconv.Itoa(i)
			}
			b.scopes[len(b.scopes)-1].regs[full] = operand{kind: 'r', slot: b.slot(), bits: t.bits}
		}
		b.k.Registers += n
		if p.accept(";") {
			return nil
		}
		if err := p.expect(","); err != nil {
			return err
		}
	}
}

// statement reads one instruction and its semicolon.
func (b *body) statement() error {
	p := b.p
	s := statement{line: p.tokens[p.at].line, guard: -1}
	if p.accept("@") {
		s.not = p.accept("!")
		r, ok := b.register(p.next())
		if !ok || r.bits != 1 {
			return fmt.Errorf("the guard is not a predicate")
		}
		s.guard = r.slot
	}
	parts := strings.Split(p.next(), ".")
	s.op, s.mods = parts[0], parts[1:]
	for first := true; !p.accept(";"); first = false {
		if !first {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		o, err := b.operand()
		if err != nil {
			return err
		}
		s.args = append(s.args, o)
	}
	b.stmts = append(b.stmts, s)
	return nil
}
