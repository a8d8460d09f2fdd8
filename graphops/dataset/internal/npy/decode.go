package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The supported opcodes, under the names of Python's pickletools.
const (
	opMark            = '('
	opStop            = '.'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
)

// refused names the unsupported opcodes, for the error.
var refused = map[byte]string{
	'i': "INST, which calls a class", 'o': "OBJ, which calls a class", 0x92: "NEWOBJ_EX, which calls a class",
	'P': "PERSID, which asks the program for an object", 'Q': "BINPERSID, which asks the program for an object",
	0x82: "EXT1, which uses a registry of names", 0x83: "EXT2, which uses a registry of names", 0x84: "EXT4, which uses a registry of names",
	0x97: "NEXT_BUFFER, which needs a buffer from outside", 0x98: "READONLY_BUFFER, which needs a buffer from outside",
	'0': "POP", '1': "POP_MARK", '2': "DUP",
	0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET",
}

// The opcodes of protocols 0 and 1, which no pickler writes from protocol 2 on. They write numbers
// and strings as Python literals.
const textOpcodes = "FILSVgpdl"

const (
	// A pickle may allocate at most budgetTimes its bytes plus budgetBase. The graph of Planetoid's
	// PubMed, short lists of small numbers, needs 3.4 times its bytes.
	budgetTimes = 3
	budgetBase  = 2 << 20
)

// The memo is stored in blocks, which do not move when the memo grows.
const memoBlock = 1024

type decoder struct {
	in       []byte
	pos      int // of the next byte
	op       int // position of the current opcode
	stack    []word
	marks    []int32            // heights of the stack
	memo     []*[memoBlock]word // value+1; 0: no entry
	memoized int                // entries
	budget   int

	bigs    []int64
	floats  []float64
	texts   [][]byte
	seqs    [][][]word
	numSeqs int
	more    map[word][]word // for each dict, the further dicts that hold its later pairs
	arrays  []*PickleArray
	types   []Type
	csrs    []word
}

// DecodePickle decodes the pickle in, which must end at the last byte. It never panics and never calls a
// function that the pickle names. Errors are [*PickleError]s.
func DecodePickle(in []byte) (Value, error) {
	d := &decoder{in: in, budget: budgetTimes*len(in) + budgetBase}
	if len(in) > math.MaxInt32 {
		return Value{}, d.errorf("it has %d bytes; pickles of at most 2 GiB are read", len(in))
	}
	for {
		d.op = d.pos
		op, err := d.byte()
		if err != nil {
			return Value{}, err
		}
		if op == opStop {
			break
		}
		if err := d.step(op); err != nil {
			return Value{}, err
		}
	}
	switch {
	case len(d.marks) > 0 || len(d.stack) != 1:
		return Value{}, d.errorf("it stops with %d values and %d open marks on its stack, not with one value", len(d.stack), len(d.marks))
	case d.pos != len(in):
		return Value{}, d.errorf("it stops, but %d bytes follow", len(in)-d.pos)
	}
	return Value{d, d.stack[0]}, nil
}

func (d *decoder) errorf(format string, args ...any) error {
	return &PickleError{Pos: d.op, Why: fmt.Sprintf(format, args...)}
}

// charge subtracts n bytes from the budget.
func (d *decoder) charge(n int) error {
	if n > d.budget {
		return d.errorf("what it builds takes more than %d times its %d bytes: it is not a pickle of arrays", budgetTimes, len(d.in))
	}
	d.budget -= n
	return nil
}

func (d *decoder) push(w word) error {
	if len(d.stack) == cap(d.stack) {
		size := max(32, 2*cap(d.stack))
		if err := d.charge(8 * size); err != nil {
			return err
		}
		grown := make([]word, len(d.stack), size)
		copy(grown, d.stack)
		d.stack = grown
	}
	d.stack = append(d.stack, w)
	return nil
}

// made pushes a value, unless making it failed.
func (d *decoder) made(w word, err error) error {
	if err != nil {
		return err
	}
	return d.push(w)
}

// need checks that the stack has n values above the last mark.
func (d *decoder) need(n int) error {
	floor := 0
	if len(d.marks) > 0 {
		floor = int(d.marks[len(d.marks)-1])
	}
	if len(d.stack)-floor < n {
		return d.errorf("the opcode %q needs %d values on the stack, which has %d", d.in[d.op], n, len(d.stack)-floor)
	}
	return nil
}

// top pops the last n values, which the caller must use before the next push.
func (d *decoder) top(n int) ([]word, error) {
	if err := d.need(n); err != nil {
		return nil, err
	}
	at := len(d.stack) - n
	items := d.stack[at:]
	d.stack = d.stack[:at]
	return items, nil
}

// toMark pops the values above the last mark, and the mark.
func (d *decoder) toMark() ([]word, error) {
	if len(d.marks) == 0 {
		return nil, d.errorf("the opcode %q needs a mark on the stack", d.in[d.op])
	}
	at := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	items := d.stack[at:]
	d.stack = d.stack[:at]
	return items, nil
}

func (d *decoder) byte() (byte, error) {
	if d.pos == len(d.in) {
		return 0, d.errorf("it ends here, before its end: it was cut off")
	}
	d.pos++
	return d.in[d.pos-1], nil
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.in)-d.pos) {
		return nil, d.errorf("it claims %d bytes where %d follow: it was cut off or damaged", n, len(d.in)-d.pos)
	}
	d.pos += int(n)
	return d.in[d.pos-int(n) : d.pos], nil
}

// number returns a little-endian number without sign of n bytes.
func (d *decoder) number(n int) (uint64, error) {
	b, err := d.take(uint64(n))
	if err != nil {
		return 0, err
	}
	var buf [8]byte
	copy(buf[:], b)
	return binary.LittleEndian.Uint64(buf[:]), nil
}

// line returns the text up to the next line break.
func (d *decoder) line() ([]byte, error) {
	start := d.pos
	for i := start; i < len(d.in); i++ {
		if d.in[i] == '\n' {
			d.pos = i + 1
			return d.in[start:i], nil
		}
	}
	return nil, d.errorf("it ends within a line of text: it was cut off")
}

func (d *decoder) step(op byte) error {
	switch op {
	case opProto:
		p, err := d.byte()
		if err == nil && p > 5 {
			err = d.errorf("it is of protocol %d; protocols 2 to 5 are read", p)
		}
		return err
	case opFrame:
		n, err := d.number(8)
		if err == nil && n > uint64(len(d.in)-d.pos) {
			err = d.errorf("it claims a frame of %d bytes where %d follow: it was cut off or damaged", n, len(d.in)-d.pos)
		}
		return err
	case opMark:
		if len(d.marks) == cap(d.marks) {
			if err := d.charge(4 * max(32, 2*cap(d.marks))); err != nil {
				return err
			}
			d.marks = append(make([]int32, 0, max(32, 2*cap(d.marks))), d.marks...)
		}
		d.marks = append(d.marks, int32(len(d.stack)))
		return nil
	case opNone:
		return d.push(tagNone)
	case opNewTrue, opNewFalse:
		return d.push(boolWord(op == opNewTrue))
	case opBinInt, opBinInt1, opBinInt2, opLong1, opLong4:
		return d.made(d.integer(op))
	case opBinFloat:
		b, err := d.take(8)
		if err != nil {
			return err
		}
		return d.made(d.floatWord(math.Float64frombits(binary.BigEndian.Uint64(b))))
	case opBinString, opShortBinString, opBinBytes, opShortBinBytes, opBinBytes8, opByteArray8,
		opBinUnicode, opShortBinUnicode, opBinUnicode8:
		return d.made(d.counted(op))
	case opEmptyTuple:
		return d.made(d.newSeq(tagTuple, nil))
	case opEmptyList:
		return d.made(d.newSeq(tagList, nil))
	case opEmptyDict:
		return d.made(d.newSeq(tagDict, nil))
	case opTuple1, opTuple2, opTuple3:
		items, err := d.top(int(op-opTuple1) + 1)
		if err != nil {
			return err
		}
		return d.made(d.newSeq(tagTuple, items))
	case opTuple:
		items, err := d.toMark()
		if err != nil {
			return err
		}
		return d.made(d.newSeq(tagTuple, items))
	case opAppend, opSetItem, opAppends, opSetItems:
		return d.insert(op)
	case opBinGet, opLongBinGet, opBinPut, opLongBinPut, opMemoize:
		return d.remember(op)
	case opGlobal, opStackGlobal:
		return d.made(d.global(op))
	case opReduce, opNewObj:
		items, err := d.top(2)
		if err != nil {
			return err
		}
		return d.made(d.call(op, items[0], items[1]))
	case opBuild:
		items, err := d.top(2)
		if err != nil {
			return err
		}
		obj := items[0]
		if err := d.build(obj, items[1]); err != nil {
			return err
		}
		return d.push(obj)
	}
	if what, ok := refused[op]; ok {
		return d.errorf("the opcode %s; pickles of arrays, lists and dicts do without it", what)
	}
	if strings.IndexByte(textOpcodes, op) >= 0 {
		return d.errorf("the opcode %q is of protocol 0; protocols 2 to 5 are read: write it again with pickle.dump(x, f, 2)", op)
	}
	return d.errorf("0x%02x is not an opcode of a pickle", op)
}

// integer reads the whole numbers, which must fit into 64 bits.
func (d *decoder) integer(op byte) (word, error) {
	switch op {
	case opBinInt, opBinInt1, opBinInt2:
		size := map[byte]int{opBinInt: 4, opBinInt1: 1, opBinInt2: 2}[op]
		x, err := d.number(size)
		if err != nil {
			return 0, err
		}
		if op == opBinInt {
			return d.intWord(int64(int32(x)))
		}
		return d.intWord(int64(x))
	}
	size, err := d.number(map[byte]int{opLong1: 1, opLong4: 4}[op])
	if err != nil {
		return 0, err
	}
	if size > 8 {
		return 0, d.errorf("a whole number of %d bytes; at most 8 are read", size)
	}
	x, err := d.number(int(size))
	if err != nil {
		return 0, err
	}
	shift := 64 - 8*size
	return d.intWord(int64(x<<shift) >> shift)
}

// short returns the beginning of a text for an error.
func short(text []byte) string { return string(text[:min(len(text), 40)]) }

// counted reads strings with a length prefix.
func (d *decoder) counted(op byte) (word, error) {
	size := 4
	switch op {
	case opShortBinString, opShortBinBytes, opShortBinUnicode:
		size = 1
	case opBinBytes8, opByteArray8, opBinUnicode8:
		size = 8
	}
	n, err := d.number(size)
	if err != nil {
		return 0, err
	}
	s, err := d.take(n)
	if err != nil {
		return 0, err
	}
	tag := tagBytes
	if op == opBinUnicode || op == opShortBinUnicode || op == opBinUnicode8 {
		if tag = tagText; !utf8.Valid(s) {
			return 0, d.errorf("a string is not valid UTF-8")
		}
	}
	return d.viewWord(tag, d.pos-len(s), len(s))
}

// insert adds the top values to the list or dict below them.
func (d *decoder) insert(op byte) error {
	var items []word
	var err error
	switch op {
	case opAppend:
		items, err = d.top(1)
	case opSetItem:
		items, err = d.top(2)
	default:
		items, err = d.toMark()
	}
	if err == nil {
		err = d.need(1)
	}
	if err != nil {
		return err
	}
	to := d.stack[len(d.stack)-1]
	want := tagList
	if op == opSetItem || op == opSetItems {
		want = tagDict
	}
	if to.tag() != want {
		return d.errorf("the opcode %q adds to %v; only %v can be added to in that way", op, to.kind(), want.kind())
	}
	if want == tagDict && len(items)%2 != 0 {
		return d.errorf("a dict has a key without a value")
	}
	return d.extend(to, items)
}

// remember stores the last value in the memo, or pushes one from the memo.
func (d *decoder) remember(op byte) error {
	var id uint64
	var err error
	switch op {
	case opMemoize:
		id = uint64(d.memoized)
	case opBinGet, opBinPut:
		id, err = d.number(1)
	default:
		id, err = d.number(4)
	}
	if err != nil {
		return err
	}
	block, i := int(id/memoBlock), id%memoBlock
	if op == opBinGet || op == opLongBinGet {
		if block >= len(d.memo) || d.memo[block] == nil || d.memo[block][i] == 0 {
			return d.errorf("it refers to the memo entry %d, which does not exist", id)
		}
		return d.push(d.memo[block][i] - 1)
	}
	if err := d.need(1); err != nil {
		return err
	}
	if block >= len(d.memo) {
		size := max(block+1, len(d.memo)+len(d.memo)/2)
		if err := d.charge(8 * size); err != nil {
			return err
		}
		d.memo = append(make([]*[memoBlock]word, 0, size), d.memo...)[:size]
	}
	if d.memo[block] == nil {
		if err := d.charge(8 * memoBlock); err != nil {
			return err
		}
		d.memo[block] = new([memoBlock]word)
	}
	if d.memo[block][i] == 0 {
		d.memoized++
	}
	d.memo[block][i] = d.stack[len(d.stack)-1] + 1
	return nil
}
