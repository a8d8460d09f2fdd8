package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Config configures a pass. The zero value computes on the CPU with GOMAXPROCS threads, without
// dropout and without gradients: inference.
type Config struct {
	Backend ops.Backend // nil: the CPU
	Threads int         // of the CPU backend that is made if Backend is nil; 0: GOMAXPROCS
	// BF16 lets that backend round the factors of matrix products to bfloat16, see
	// gemm.Options.
	BF16 bool
	// Train turns dropout on and records the tape that Backward needs.
	Train bool
	// Grad records the tape even if Train is off; the gradients are then those of the function that
	// evaluation computes.
	Grad bool
	// Seed, Epoch and Step determine dropout masks.
	Seed        uint64
	Epoch, Step int
	// KeepFixed makes [Fwd.Track] change nothing: for the passes of a step after its first, so that what it tracks does not depend
	// on how many of a step's batches one process computes.
	KeepFixed bool
	// Work, if not nil, is increased by passes on the CPU backend made here.
	Work *Work
	// Exchanger gets rows from other ranks for the blocks of cooperative batches; see [Fwd.Sources].
	Exchanger Exchanger
}

// Fwd is a forward pass: its methods are the operations on tensors, and it records how to
// differentiate them. It belongs to one goroutine.
//
// A Fwd keeps its memory from pass to pass: create one and Reset it, rather than create one per
// step.
type Fwd struct {
	cfg   Config
	be    ops.Backend
	own   *ops.Processor // the CPU backend made if Config has none
	meter metered        // own, if its work is counted
	pass  uint64
	mem   arena
	tape  []node
	sites int // dropout calls of this pass
	carry map[any]*Tensor
	masks edgeMasks
	done  bool
	// Copies of host memory on a device, and blocks of sparse inputs, of which a device may also
	// have copies: for this pass.
	copies []ops.Buffer
	blocks []*graphops.Block
}

// node is one step of the tape: back adds to the gradients of the inputs of out.
type node struct {
	out  *Tensor
	back func(dOut ops.Buffer)
}

// NewFwd starts a pass.
func NewFwd(c Config) *Fwd {
	f := &Fwd{}
	f.mem.alloc = func(n int) ops.Buffer { return f.be.Alloc(n) }
	f.mem.drop = func(b ops.Buffer) { f.be.Free(b) }
	f.Reset(c)
	return f
}

// Reset ends the pass and starts another: it clears the tape, counts dropout's call sites from 0
// again, and reuses the memory of all tensors of the Fwd. Tensors of earlier passes must not be
// used any more; operations panic on them.
func (f *Fwd) Reset(c Config) {
	be := c.Backend
	if be == nil {
		if f.own == nil {
			f.own = &ops.Processor{}
		}
		f.own.Threads, f.own.BF16 = c.Threads, c.BF16
		be = f.own
		if c.Work != nil {
			f.meter = metered{Normer: f.own, w: c.Work}
			be = &f.meter
		}
	}
	f.dropCopies()
	if f.be != nil && f.be != be {
		f.mem.close()
	}
	f.cfg, f.be = c, be
	f.mem.reset()
	clear(f.tape)
	f.tape = f.tape[:0]
	f.pass++
	f.sites, f.masks = 0, edgeMasks{}
	clear(f.carry)
	f.done = false
}

// Carry keeps a tensor of this pass under a key, which must be comparable, for a later layer to take by [Fwd.Carried]: rows of
// edges, for example, which the layer's result has no place for. It is gone at the next Reset.
func (f *Fwd) Carry(key any, t *Tensor) {
	f.check("Carry", t)
	if f.carry == nil {
		f.carry = map[any]*Tensor{}
	}
	f.carry[key] = t
}

// Carried returns the tensor that this pass keeps under a key, or nil.
func (f *Fwd) Carried(key any) *Tensor { return f.carry[key] }

// Close frees the memory of all passes. The Fwd and its tensors must not be used afterwards. On the
// CPU the garbage collector frees the memory too.
func (f *Fwd) Close() {
	f.dropCopies()
	f.mem.close()
	f.pass++
	f.tape, f.carry = nil, nil
}

// Held returns the bytes of memory that the tensors of this pass and of earlier ones have taken: those that the
// Fwd keeps, and those that it has left to the garbage collector.
func (f *Fwd) Held() (kept, left int64) { return f.mem.held(), f.mem.left }

// wrap returns host memory as a buffer, for this pass.
func (f *Fwd) wrap(host []float32) ops.Buffer { return f.forPass(f.be.Wrap(host)) }

func (f *Fwd) forPass(b ops.Buffer) ops.Buffer {
	if b.Dev != nil {
		f.copies = append(f.copies, b)
	}
	return b
}

// sparseBlock registers b for this pass and returns it.
func (f *Fwd) sparseBlock(b *graphops.Block) *graphops.Block {
	f.blocks = append(f.blocks, b)
	return b
}

func (f *Fwd) dropCopies() {
	for i, b := range f.blocks {
		b.Reset()
		f.blocks[i] = nil
	}
	f.blocks = f.blocks[:0]
	for i, b := range f.copies {
		f.be.Free(b)
		f.copies[i] = ops.Buffer{}
	}
	f.copies = f.copies[:0]
}

// Config is the configuration of this pass.
func (f *Fwd) Config() Config { return f.cfg }

// Train reports whether this pass trains: dropout is on.
func (f *Fwd) Train() bool { return f.cfg.Train }

// Recording reports whether this pass records gradients.
func (f *Fwd) Recording() bool { return f.cfg.Train || f.cfg.Grad }

// Backend is the backend of the pass.
func (f *Fwd) Backend() ops.Backend { return f.be }

// Input returns a tensor with the given elements [rows·cols], row-major, and no gradient. On the
// CPU data is not copied and must not change until the next Reset. sp identifies the rows; it is
// nil if they belong to no nodes or edges.
func (f *Fwd) Input(rows, cols int, data []float32, sp *ops.Space) *Tensor {
	checkData("Input", rows, cols, data)
	checkSpace("Input", sp, rows)
	return &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, buf: f.wrap(data), sp: sp}
}

// Leaf is an Input with a gradient, which [Tensor.Grad] returns after Backward.
func (f *Fwd) Leaf(rows, cols int, data []float32, sp *ops.Space) *Tensor {
	t := f.Input(rows, cols, data, sp)
	t.leaf, t.need = true, f.Recording()
	return t
}

// Param returns the tensor of a parameter: its W, which must not change until the pass and its
// Backward are over. Backward adds to p.G; if p.G is nil, the parameter is a constant and its
// gradient is not computed.
func (f *Fwd) Param(p *Param) *Tensor {
	if p == nil {
		fail("Param", "the parameter is nil: make it before the forward pass")
	}
	if len(p.W) != p.Rows*p.Cols {
		fail("Param", "parameter %q is [%d,%d] but its W has %d elements", p.Name, p.Rows, p.Cols, len(p.W))
	}
	if p.G != nil && len(p.G) != len(p.W) {
		fail("Param", "parameter %q has %d weights but its G has %d elements", p.Name, len(p.W), len(p.G))
	}
	t := &Tensor{f: f, pass: f.pass, rows: p.Rows, cols: p.Cols, buf: f.wrap(p.W), param: p}
	t.need = f.Recording() && p.G != nil
	return t
}

// Backward computes the gradient of scale·t and adds it to the G of every Param that t depends on,
// and to the Grad of every Leaf. t is [1,1].
//
// It returns an error if the pass records no gradients, if t is not [1,1], and at the second call
// in a pass: add the losses first. A t that depends on no parameter is not an error; all its
// gradients are 0.
func (f *Fwd) Backward(t *Tensor, scale float64) error {
	f.use("Backward", t)
	switch {
	case !f.Recording():
		return phrase.Errorf("tensor: Backward", "the pass records no gradients; set Train or Grad in its Config")
	case t.rows != 1 || t.cols != 1:
		return phrase.Errorf("tensor: Backward", "the tensor is %s, not [1,1]; reduce it first, with SumAll or a loss", t.shape())
	case f.done:
		return phrase.Errorf("tensor: Backward", "it has run in this pass already; add the losses and call it once")
	}
	f.done = true
	if !t.need {
		return nil
	}
	dt, acc := f.gradOf(t)
	one := f.mem.get(1)
	f.be.Upload(one.buf(1), []float32{float32(scale)})
	f.be.Spread(dt, one.buf(1), acc)
	f.mem.put(one)
	f.flush(t)
	for i := len(f.tape) - 1; i >= 0; i-- {
		n := f.tape[i]
		if n.out.grad == nil {
			continue // t does not depend on it
		}
		f.fill(n.out)
		n.back(n.out.grad.buf(n.out.rows * n.out.cols))
		f.mem.put(n.out.grad)
		n.out.grad = nil
	}
	return nil
}

// result makes the output tensor of an operation, with memory.
func (f *Fwd) result(rows, cols int, sp *ops.Space) *Tensor {
	s := f.mem.get(rows * cols)
	return &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, buf: s.buf(rows * cols), sp: sp}
}

// record puts an operation on the tape if one of its inputs needs a gradient.
func (f *Fwd) record(out *Tensor, back func(dOut ops.Buffer), inputs ...*Tensor) *Tensor {
	if !f.Recording() {
		return out
	}
	for _, x := range inputs {
		if x.need {
			out.need = true
			f.tape = append(f.tape, node{out, back})
			break
		}
	}
	return out
}

// gradOf returns the buffer for a contribution to x's gradient, and whether it already holds
// others: then the contribution is added, otherwise it overwrites. flush must follow.
func (f *Fwd) gradOf(x *Tensor) (ops.Buffer, bool) {
	if x.param != nil {
		if f.onHost(x) {
			return f.be.Wrap(x.param.G), true
		}
		if g, ok := f.kept(x.param.G); ok {
			return g, true
		}
	}
	if x.part != nil {
		return f.gradOfPart(x)
	}
	f.fill(x)
	acc := x.grad != nil
	if !acc {
		x.grad = f.mem.get(x.rows * x.cols)
	}
	return x.grad.buf(x.rows * x.cols), acc
}

// kept returns the memory that the backend keeps in place of host memory beyond a pass, or false if it keeps none.
func (f *Fwd) kept(host []float32) (ops.Buffer, bool) {
	if k, ok := f.be.(ops.Keeper); ok {
		return k.Kept(host)
	}
	return ops.Buffer{}, false
}

// flush ends a contribution: a parameter's gradient on a device is copied back.
func (f *Fwd) flush(x *Tensor) {
	if x.part != nil {
		f.flush(x.part.of)
	}
	if x.param == nil || x.grad == nil {
		return
	}
	for i, g := range f.host(x.grad.buf(x.rows * x.cols)) {
		x.param.G[i] += g
	}
	f.mem.put(x.grad)
	x.grad = nil
}

// onHost reports whether the backend computes in host memory.
func (f *Fwd) onHost(x *Tensor) bool { return x.buf.Dev == nil }

// host returns a buffer's content in host memory: the memory itself or a copy.
func (f *Fwd) host(b ops.Buffer) []float32 {
	if b.Dev == nil {
		return b.Host
	}
	out := make([]float32, b.N)
	f.be.Download(out, b)
	return out
}

// give computes one contribution to x's gradient, if x needs a gradient.
func (f *Fwd) give(x *Tensor, add func(dx ops.Buffer, acc bool)) {
	if !x.need {
		return
	}
	dx, acc := f.gradOf(x)
	add(dx, acc)
	f.flush(x)
}

// use checks that the tensors are of this pass, and computes their elements.
func (f *Fwd) use(op string, xs ...*Tensor) {
	f.check(op, xs...)
	for _, x := range xs {
		f.dense(x)
	}
}

// check is use for operations that accept tensors without elements.
func (f *Fwd) check(op string, xs ...*Tensor) {
	for i, x := range xs {
		switch {
		case x == nil:
			fail(op, "argument %d is a nil tensor", i)
		case x.f != f:
			fail(op, "argument %d is a tensor of another Fwd", i)
		case x.pass != f.pass:
			fail(op, "argument %d is a tensor of an earlier pass, whose memory was reused at Reset; compute it again or copy its Data before", i)
		}
	}
}

func checkData(op string, rows, cols int, data []float32) {
	if rows < 0 || cols < 0 || len(data) != rows*cols {
		fail(op, "[%d,%d] needs %d elements but the data has %d", rows, cols, rows*cols, len(data))
	}
}
