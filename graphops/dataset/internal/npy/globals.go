package npy

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unsafe"
)

type global int

const (
	globalReconstruct global = iota
	globalFromBuffer
	globalScalar
	globalNDArray
	globalDType
	globalCSR
	globalDefaultDict
	globalList
	globalBytes
	globalEncode
)

// globals holds every name that a pickle may use: the names that NumPy 1 and 2, SciPy and Python 2
// and 3 write for arrays, CSR matrices and plain values.
var globals = map[string]global{
	"numpy.core.multiarray _reconstruct":  globalReconstruct,
	"numpy._core.multiarray _reconstruct": globalReconstruct,
	"numpy.core.numeric _frombuffer":      globalFromBuffer,
	"numpy._core.numeric _frombuffer":     globalFromBuffer,
	"numpy.core.multiarray scalar":        globalScalar,
	"numpy._core.multiarray scalar":       globalScalar,
	"numpy ndarray":                       globalNDArray,
	"numpy dtype":                         globalDType,
	"scipy.sparse.csr csr_matrix":         globalCSR,
	"scipy.sparse._csr csr_matrix":        globalCSR,
	"scipy.sparse._csr csr_array":         globalCSR,
	"collections defaultdict":             globalDefaultDict,
	"__builtin__ list":                    globalList,
	"__builtin__ bytes":                   globalBytes,
	"builtins list":                       globalList,
	"builtins bytes":                      globalBytes,
	"_codecs encode":                      globalEncode,
}

// global reads a name, from two lines of the input or from the stack.
func (d *decoder) global(op byte) (word, error) {
	var module, name []byte
	if op == opGlobal {
		var err error
		if module, err = d.line(); err != nil {
			return 0, err
		}
		if name, err = d.line(); err != nil {
			return 0, err
		}
	} else {
		items, err := d.top(2)
		if err != nil {
			return 0, err
		}
		if items[0].kind() != Text || items[1].kind() != Text {
			return 0, d.errorf("the opcode STACK_GLOBAL needs the names of a module and of what is in it, not %v and %v", items[0].kind(), items[1].kind())
		}
		module, _ = d.text(items[0])
		name, _ = d.text(items[1])
	}
	if len(module) < 80 && len(name) < 80 {
		if g, ok := globals[string(module)+" "+string(name)]; ok {
			return index(tagGlobal, int(g)), nil
		}
	}
	return 0, d.errorf("it names %.80q of the module %.80q, which is none of the types and functions that arrays, lists and dicts consist of; nothing of it was run", name, module)
}

// call implements the opcodes REDUCE and NEWOBJ: it builds a value by its constructor.
func (d *decoder) call(op byte, f, args word) (word, error) {
	if f.tag() != tagGlobal || args.tag() != tagTuple {
		return 0, d.errorf("it calls %v with %v; only names are called, with a tuple", f.kind(), args.kind())
	}
	a := *d.seq(args)
	// is reports whether the arguments have these kinds.
	is := func(kinds ...Kind) bool {
		if len(a) != len(kinds) {
			return false
		}
		for i, k := range kinds {
			if a[i].kind() != k && !(k == Bytes && a[i].kind() == Text) {
				return false
			}
		}
		return true
	}
	isGlobal := func(w word, g global) bool { return w == index(tagGlobal, int(g)) }

	switch g := global(f.payload()); {
	case g == globalCSR && op == opNewObj && len(a) == 0:
		return keep(d, &d.csrs, tagNone, tagCSR)
	case op == opNewObj:
		// The other names are functions, or types that are constructed by calling them.
	case g == globalReconstruct && is(Name, Tuple, Bytes) && isGlobal(a[0], globalNDArray):
		return d.newArray(&PickleArray{})
	case g == globalDType && (is(Bytes) || is(Bytes, Int, Int) || is(Bytes, Bool, Bool)):
		return d.newType(a[0])
	case g == globalFromBuffer && is(Bytes, DType, Tuple, Bytes):
		return d.fromBuffer(a)
	case g == globalScalar && is(DType, Bytes):
		return d.scalar(a[0], a[1])
	case g == globalEncode && is(Text, Bytes):
		return d.latin1(a[0], a[1])
	case g == globalDefaultDict && (len(a) == 0 || is(Name) || is(None)):
		return d.newSeq(tagDict, nil)
	case g == globalBytes && len(a) == 0: // empty bytes in protocol 2, which has no opcode for bytes
		return d.viewWord(tagBytes, 0, 0)
	}
	names := PickleNames()
	name := names[slices.IndexFunc(names, func(n string) bool { return globals[n] == global(f.payload()) })]
	return 0, d.errorf("it calls %s with %d arguments in a way that no array, list or dict needs; nothing of it was run", strings.Replace(name, " ", ".", 1), len(a))
}

func (d *decoder) newArray(a *PickleArray) (word, error) {
	if err := d.charge(int(unsafe.Sizeof(*a))); err != nil {
		return 0, err
	}
	return keep(d, &d.arrays, a, tagArray)
}

// newType makes a dtype; its byte order is part of the state that follows.
func (d *decoder) newType(name word) (word, error) {
	s, _ := d.text(name)
	t, err := ParseType(short(s))
	if err != nil {
		return 0, d.errorf("%v", err)
	}
	return keep(d, &d.types, t, tagType)
}

// build sets the state of a constructed value.
func (d *decoder) build(obj, state word) error {
	switch obj.tag() {
	case tagCSR:
		if state.tag() != tagDict {
			return d.errorf("the state of a CSR matrix is %v, not a dict", state.kind())
		}
		d.csrs[obj.payload()] = state
		return nil
	case tagType:
		return d.buildType(&d.types[obj.payload()], state)
	case tagArray:
		return d.buildArray(d.arrays[obj.payload()], state)
	}
	return d.errorf("the opcode BUILD sets the state of %v; only arrays, dtypes and CSR matrices have one", obj.kind())
}

// buildType sets a type's state: (version, order, subarray, names, fields, size, alignment, flags[,
// metadata]).
func (d *decoder) buildType(t *Type, state word) error {
	if state.tag() != tagTuple || len(*d.seq(state)) < 8 {
		return d.errorf("the state of a dtype is not the tuple that NumPy writes")
	}
	s := *d.seq(state)
	order, ok := d.text(s[1])
	if !ok || len(order) != 1 || !bytes.Contains([]byte("<>|="), order) {
		return d.errorf("the byte order of a dtype is none of <, >, | and =")
	}
	for _, w := range s[2:5] {
		if w.tag() != tagNone {
			return d.errorf("a dtype describes records; only plain arrays are read")
		}
	}
	t.Big = order[0] == '>'
	return nil
}

// buildArray sets an array's state: ([version,] shape, dtype, fortran, data).
func (d *decoder) buildArray(a *PickleArray, state word) error {
	if state.tag() != tagTuple {
		return d.errorf("the state of an array is %v, not a tuple", state.kind())
	}
	s := *d.seq(state)
	if len(s) == 5 {
		s = s[1:]
	}
	if len(s) != 4 || s[0].tag() != tagTuple || s[1].tag() != tagType || s[2].kind() != Bool && s[2].kind() != Int {
		return d.errorf("the state of an array is not the tuple that NumPy writes")
	}
	return d.fill(a, s[0], s[1], s[2] != boolWord(false) && s[2] != tagInt, s[3])
}

// fill sets the elements of an array; their number must match its shape.
func (d *decoder) fill(a *PickleArray, shape, dtype word, fortran bool, data word) error {
	dims := *d.seq(shape)
	if len(dims) > 32 { // NumPy 1's limit
		return d.errorf("an array has %d dimensions; at most 32 are read", len(dims))
	}
	if err := d.charge(8 * len(dims)); err != nil {
		return err
	}
	t := d.types[dtype.payload()]
	next := PickleArray{Type: t, Shape: make([]int, len(dims)), Fortran: fortran}
	for i, w := range dims {
		x, ok := Value{d, w}.Int()
		if !ok || x < 0 || int64(int(x)) != x {
			return d.errorf("dimension %d of an array is not a whole number from 0 on", i)
		}
		next.Shape[i] = int(x)
	}
	count, fits := Count(next.Shape)
	if t.Kind == 'O' {
		if data.tag() != tagList || !fits || int64(len(*d.seq(data))) != count {
			return d.errorf("an array of objects claims the shape %s, but its list has another length", ShapeString(next.Shape))
		}
		next.Objects = Value{d, data}
		*a = next
		return nil
	}
	raw, ok := d.text(data)
	if !ok || data.kind() != Bytes {
		return d.errorf("the elements of an array are %v, not bytes", data.kind())
	}
	size, fits := Header{Type: t, Shape: next.Shape}.Bytes()
	if !fits || size != int64(len(raw)) {
		return d.errorf("an array claims %s, but holds %d bytes", next.Describe(), len(raw))
	}
	next.Data = raw
	*a = next
	return nil
}

// fromBuffer builds an array from (data, dtype, shape, order), as protocol 5 writes it.
func (d *decoder) fromBuffer(args []word) (word, error) {
	order, _ := d.text(args[3])
	if s := string(order); s != "C" && s != "F" {
		return 0, d.errorf("the order of an array is %.10q; C and F are known", order)
	}
	data, dtype, shape := args[0], args[1], args[2]
	w, err := d.newArray(&PickleArray{})
	if err != nil {
		return 0, err
	}
	return w, d.fill(d.arrays[w.payload()], shape, dtype, order[0] == 'F', data)
}

// scalar builds one element of an array.
func (d *decoder) scalar(dtype, data word) (word, error) {
	t := d.types[dtype.payload()]
	raw, _ := d.text(data)
	if data.kind() != Bytes || len(raw) != t.Size {
		return 0, d.errorf("a NumPy %v of %d bytes", t, len(raw))
	}
	switch {
	case t.Kind == 'b':
		return boolWord(raw[0] != 0), nil
	case t.Whole():
		var x [1]int64
		t.Ints(x[:], raw)
		return d.intWord(x[0])
	case t.Kind == 'f' && t.Size == 8 && !t.Big:
		return d.floatWord(math.Float64frombits(binary.LittleEndian.Uint64(raw)))
	case t.Kind == 'f':
		var x [1]float32
		t.Floats(x[:], raw)
		return d.floatWord(float64(x[0]))
	}
	return data, nil
}
