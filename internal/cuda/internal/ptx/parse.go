package ptx

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Module is a parsed PTX file. It is read-only and safe for concurrent use.
type Module struct {
	Name    string
	kernels map[string]*Kernel
	order   []*Kernel // as in the source
	globals []*variable
	src     string
}

// Kernel is one .entry of a module, ready to run. Before [Kernel.Decode], a kernel of [Outline] has only its name.
type Kernel struct {
	Name   string
	Params []Param
	// Shared is the number of bytes of shared memory that the kernel declares; the dynamic shared
	// memory of a launch follows them.
	Shared int
	// MaxThreads is the largest block for which the kernel was compiled (__launch_bounds__), 1024
	// if it does not say.
	MaxThreads int
	// Registers is the number of virtual registers; it is unrelated to the number of a device's
	// registers.
	Registers int

	module   *Module
	text     token // all after the name
	decoded  func() error
	code     []instr
	slots    int          // constants, parameters, symbols and specials, then registers
	template []uint64     // initial values of a thread's first slots, except the following
	specials []special    // slots that differ from thread to thread
	fixed    []paramSlot  // parameters that are read at a constant offset
	symbols  []symbolSlot // slots that hold the address of a module's variable
	params   int          // bytes
	local    int          // bytes per thread
	accesses int          // instructions that read or write memory
}

// Param is one parameter's position in the bytes that a launch passes.
type Param struct{ Offset, Size int }

// variable is memory declared by name.
type variable struct {
	name, space string
	align, size int
	init        []byte
	open        bool // name[]: dynamic shared memory
	at          uint64
}

// Parse parses a module. name is its name in errors. An unsupported statement is an error that
// names its line.
func Parse(name, src string) (*Module, error) {
	m, err := Outline(name, src)
	if err != nil {
		return nil, err
	}
	for _, k := range m.order {
		if err := k.Decode(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Outline parses a module except its kernels, which takes a small part of the time. [Kernel.Decode] parses a kernel.
func Outline(name, src string) (*Module, error) {
	p := &parser{m: &Module{Name: name, kernels: map[string]*Kernel{}, src: src}}
	return p.m, p.read(token{src, 1}, p.module)
}

// read splits a text of the module into tokens and parses them.
func (p *parser) read(text token, parse func() error) (err error) {
	if p.tokens, err = lex(text); err != nil {
		return fmt.Errorf("ptx: %s, %w", p.m.Name, err)
	}
	if err = parse(); err == nil {
		return nil
	}
	line := p.line()
	if at := (*lineError)(nil); errors.As(err, &at) {
		line = at.line
	}
	return fmt.Errorf("ptx: %s, line %d: %w", p.m.Name, line, err)
}

// Decode parses the kernel, once, unless [Parse] has. It is safe for concurrent use.
func (k *Kernel) Decode() error { return k.decoded() }

// Kernels returns the kernels, by name in ascending order.
func (m *Module) Kernels() []*Kernel {
	out := make([]*Kernel, 0, len(m.kernels))
	for _, k := range m.kernels {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Kernel returns the kernel of a name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("ptx: %s has no kernel %q; it has %d others", m.Name, name, len(m.kernels))
}

// ParamBytes returns the total size of all parameters.
func (k *Kernel) ParamBytes() int { return k.params }

// Module returns the module that contains the kernel.
func (k *Kernel) Module() *Module { return k.module }

type parser struct {
	tokens []token
	at     int
	m      *Module
}

// line returns the line of the last token read, which is where an error was found.
func (p *parser) line() int {
	if len(p.tokens) == 0 {
		return 1
	}
	return p.tokens[min(max(p.at-1, 0), len(p.tokens)-1)].line
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at].text
	}
	return ""
}

func (p *parser) next() string {
	t := p.peek()
	p.at++
	return t
}

func (p *parser) accept(text string) bool {
	if p.peek() == text {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if got := p.next(); got != text {
		return fmt.Errorf("%q where %q should be", got, text)
	}
	return nil
}

// skip skips tokens up to and including the next one with the given text.
func (p *parser) skip(text string) error {
	for p.at < len(p.tokens) {
		if p.next() == text {
			return nil
		}
	}
	return fmt.Errorf("the file ends before %q", text)
}

func (p *parser) module() error {
	for p.at < len(p.tokens) {
		var err error
		switch word := p.next(); word {
		case ".version", ".address_size":
			if v := p.next(); word == ".address_size" && v != "64" {
				err = fmt.Errorf("addresses of %s bits; compile for 64", v)
			}
		case ".target":
			p.next()
			for p.accept(",") {
				p.next()
			}
		case ".file":
			for p.at < len(p.tokens) && p.tokens[p.at].line == p.tokens[p.at-1].line {
				p.at++
			}
		case ".extern", ".visible", ".weak":
		case ".global", ".const", ".shared":
			var v *variable
			if v, err = p.variable(word); err == nil {
				p.m.globals = append(p.m.globals, v)
			}
		case ".entry":
			err = p.kernel()
		default:
			err = fmt.Errorf("%q is not known here", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// variable reads the rest of a declaration, and its semicolon.
func (p *parser) variable(space string) (*variable, error) {
	v := &variable{space: space}
	elem := 0
	for strings.HasPrefix(p.peek(), ".") {
		switch word := p.next(); word {
		case ".align":
			n, err := p.count()
			if err != nil {
				return nil, err
			}
			v.align = n
		default:
			t, ok := types[word[1:]]
			if !ok || t.class == 'p' {
				return nil, fmt.Errorf("a variable of type %s", word)
			}
			elem = int(t.bits) / 8
		}
	}
	if elem == 0 {
		return nil, fmt.Errorf("a variable without a type")
	}
	v.name, v.size = p.next(), elem
	v.align = max(v.align, elem)
	if v.align&(v.align-1) != 0 {
		return nil, fmt.Errorf("alignment %d is not a power of 2", v.align)
	}
	for p.accept("[") {
		if p.accept("]") {
			v.open, v.size = true, 0
			continue
		}
		n, err := p.count()
		if err != nil {
			return nil, err
		}
		if v.size *= n; v.size > 1<<30 {
			return nil, fmt.Errorf("variable %s has more than 2^30 bytes", v.name)
		}
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	if p.accept("=") {
		if err := p.initial(v, elem); err != nil {
			return nil, err
		}
	}
	return v, p.expect(";")
}

// initial reads the initial values of a variable: numbers in braces, or one number.
func (p *parser) initial(v *variable, elem int) error {
	v.init = make([]byte, v.size)
	at := 0
	for depth := 0; ; {
		switch {
		case p.accept("{"):
			depth++
			continue
		case p.accept("}"):
			depth--
		default:
			x, err := p.number()
			if err != nil {
				return err
			}
			if at+elem > len(v.init) {
				return fmt.Errorf("variable %s has more values than elements", v.name)
			}
			for b := range elem {
				v.init[at+b] = byte(x >> (8 * b))
			}
			at += elem
		}
		if depth <= 0 {
			return nil
		}
		p.accept(",")
	}
}

// count returns a number that is not negative and fits an int32.
func (p *parser) count() (int, error) {
	x, err := p.number()
	if err == nil && x > 1<<31-1 {
		err = fmt.Errorf("%d is too large", x)
	}
	return int(x), err
}

// number returns an integer or the bits of a floating-point number (0f, 0d).
func (p *parser) number() (uint64, error) {
	negative := p.accept("-")
	text := p.next()
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, fmt.Errorf("%q where a number should be", text)
	}
	var x uint64
	var err error
	switch low := strings.ToLower(text); {
	case strings.HasPrefix(low, "0f") && len(low) == 10:
		x, err = strconv.ParseUint(low[2:], 16, 32)
		if negative {
			x ^= 1 << 31
		}
		return x, err
	case strings.HasPrefix(low, "0d") && len(low) == 18:
		x, err = strconv.ParseUint(low[2:], 16, 64)
		if negative {
			x ^= 1 << 63
		}
		return x, err
	default:
		x, err = strconv.ParseUint(strings.TrimSuffix(low, "u"), 0, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if negative {
		x = -x
	}
	return x, nil
}

// kernel reads a kernel's name and its text, which is one token.
func (p *parser) kernel() error {
	k := &Kernel{Name: p.next(), MaxThreads: 1024, module: p.m}
	if p.m.kernels[k.Name] != nil {
		return fmt.Errorf("kernel %s is there twice", k.Name)
	}
	if p.at >= len(p.tokens) {
		return fmt.Errorf("the file ends before the body of kernel %s", k.Name)
	}
	k.text = p.tokens[p.at]
	p.at++
	k.decoded = sync.OnceValue(func() error {
		p := &parser{m: k.module}
		return p.read(k.text, func() error { return p.entry(k) })
	})
	p.m.kernels[k.Name] = k
	p.m.order = append(p.m.order, k)
	return nil
}

// entry parses a kernel after its name.
func (p *parser) entry(k *Kernel) error {
	b := newBody(p, k)
	if p.accept("(") {
		for !p.accept(")") {
			if err := b.param(); err != nil {
				return err
			}
			p.accept(",")
		}
	}
	for p.peek() != "{" {
		switch word := p.next(); word {
		case ".maxntid", ".reqntid":
			k.MaxThreads = 1
			for {
				n, err := p.count()
				if err != nil {
					return err
				}
				k.MaxThreads *= n
				if !p.accept(",") {
					break
				}
			}
		case ".minnctapersm", ".maxnreg", ".maxnctapersm":
			if _, err := p.count(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is not known before the body of kernel %s", word, k.Name)
		}
	}
	return b.parse()
}
