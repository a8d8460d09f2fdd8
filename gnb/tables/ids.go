package tables

import (
	"errors"
	"math"
	"strconv"
)

// index finds a node by its original id. Ids that are whole numbers in decimal notation are stored as such, so a table
// may have "17" and another 17; other ids are stored as text. The memory is about 16 to 24 bytes a node, and the bytes
// of the texts.
type index struct {
	n     int
	wide  []int64  // by node: its number, or the end of its text in bytes
	isNum []uint64 // by node, a bit: wide is a number
	bytes []byte
	slots []int32 // node+1 by hash; 0: free
	start []int64 // by node, where its text begins; nil as long as all ids are numbers
	sink  int64   // what warm has read
}

// canonical returns the number that an id is.
func canonical(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 20 || s[0] == '+' || s[0] == '0' && len(s) > 1 || s[0] == '-' && (len(s) == 1 || s[1] == '0') {
		return 0, false
	}
	if c := s[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	x, err := strconv.ParseInt(s, 10, 64)
	return x, err == nil
}

// key is an id in one of its two forms.
type key struct {
	num  int64
	word string
	text bool
}

// The kinds of what is no id.
var (
	errNoID = errors.New("it is missing")
	// errInexactID is wrapped by the error for an id that the file's type cannot have held exactly.
	errInexactID = errors.New("it is a floating-point number so large that neighbouring whole numbers are the same; store ids as text or as whole numbers")
)

// keyOf returns the id in a row: a whole number, or text. The error is errNoID or errInexactID.
func keyOf(v *vec, i int) (k key, err error) {
	if v.missing(i) {
		return k, errNoID
	}
	switch v.class {
	case whole:
		return key{num: v.i[i]}, nil
	case float:
		if !v.exact(i) {
			return k, errInexactID
		}
		if x := v.f[i]; x == math.Trunc(x) {
			return key{num: int64(x)}, nil
		}
	}
	k, ok := keyOfText(v.value(i))
	if !ok {
		err = errNoID
	}
	return k, err
}

func keyOfText(s string) (key, bool) {
	if s == "" {
		return key{}, false
	}
	if x, ok := canonical(s); ok {
		return key{num: x}, true
	}
	return key{word: s, text: true}, true
}

func (k key) hash() uint64 {
	if k.text {
		return hash(k.word)
	}
	return mix(uint64(k.num) + 0x9e3779b97f4a7c15)
}

func (k key) String() string {
	if k.text {
		return k.word
	}
	return strconv.FormatInt(k.num, 10)
}

// is reports whether node v has the id.
func (x *index) is(v int32, k key) bool {
	if num := x.isNum[v/64]>>(v%64)&1 != 0; num || !k.text {
		return num && !k.text && x.wide[v] == k.num
	}
	return string(x.bytes[x.start[v]:x.wide[v]]) == k.word
}

// warmRows is the number of rows whose places are read ahead at a time: their lines of the cache fit into the first levels.
const warmRows = 256

// warm reads the places in the tables of the ids in rows i to i+warmRows of a batch, if i is a multiple of warmRows. The
// reads do not depend on each other, so the processor waits for many of them at once, and find and add then find their
// lines in the cache: for tables larger than the cache this halves their time and more.
func (x *index) warm(v *vec, i, rows int) {
	if i%warmRows != 0 || x.n == 0 || v == nil || v.class != whole {
		return
	}
	var nodes [warmRows]int32
	mask := uint64(len(x.slots) - 1)
	ids := v.i[i:min(i+warmRows, rows)]
	for j, id := range ids {
		nodes[j] = x.slots[key{num: id}.hash()&mask]
	}
	sum := int64(0)
	for _, node := range nodes[:len(ids)] {
		if node > 0 {
			sum += x.wide[node-1]
		}
	}
	x.sink += sum
}

// find returns the node of an id, or -1.
func (x *index) find(k key) int32 {
	if x.n == 0 {
		return -1
	}
	mask := uint64(len(x.slots) - 1)
	for at := k.hash() & mask; ; at = (at + 1) & mask {
		v := x.slots[at] - 1
		if v < 0 || x.is(v, k) {
			return v
		}
	}
}

// add gives the id to the next node; if another node has it, add returns that node and false.
func (x *index) add(k key) (int32, bool) {
	if 3*(x.n+1) > 2*len(x.slots) {
		x.grow()
	}
	mask := uint64(len(x.slots) - 1)
	at := k.hash() & mask
	for x.slots[at] != 0 {
		if v := x.slots[at] - 1; x.is(v, k) {
			return v, false
		}
		at = (at + 1) & mask
	}
	v := x.n
	if v%64 == 0 {
		x.isNum = append(x.isNum, 0)
	}
	switch {
	case !k.text:
		x.isNum[v/64] |= 1 << (v % 64)
		x.wide = append(x.wide, k.num)
	default:
		if x.start == nil {
			x.start = make([]int64, v, v+1)
		}
		for len(x.start) < v {
			x.start = append(x.start, 0)
		}
		x.start = append(x.start, int64(len(x.bytes)))
		x.bytes = append(x.bytes, k.word...)
		x.wide = append(x.wide, int64(len(x.bytes)))
	}
	x.n++
	x.slots[at] = int32(v + 1)
	return int32(v), true
}

func (x *index) grow() {
	x.slots = make([]int32, max(64, 2*len(x.slots)))
	mask := uint64(len(x.slots) - 1)
	for v := range x.n {
		at := x.key(int32(v)).hash() & mask
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = int32(v + 1)
	}
}

// key returns the id of a node.
func (x *index) key(v int32) key {
	if x.isNum[v/64]>>(v%64)&1 != 0 {
		return key{num: x.wide[v]}
	}
	return key{word: string(x.bytes[x.start[v]:x.wide[v]]), text: true}
}
