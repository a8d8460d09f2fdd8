package npy

import "unsafe"

// word is a value in eight bytes: sixty bits of payload above four bits of tag. Small numbers and
// views of the input are stored in the word itself, so that the stack, lists and dicts of a pickle
// stay within a few times its own size.
type word uint64

const (
	tagNone word = iota
	tagBool
	tagInt    // payload: the number, 60 bits signed
	tagBig    // payload: index into bigs
	tagFloat  // floats
	tagBytes  // input[payload>>28:][:payload&(1<<28-1)]
	tagText   // as for tagBytes
	tagBytes2 // texts
	tagText2  // texts
	tagTuple  // seqs
	tagList   // seqs
	tagDict   // seqs: key, value, key, value, …
	tagArray  // arrays
	tagType   // types
	tagCSR    // csrs: the state
	tagGlobal // the global
)

var tagKind = [16]Kind{
	tagNone: None, tagBool: Bool, tagInt: Int, tagBig: Int, tagFloat: Float,
	tagBytes: Bytes, tagText: Text, tagBytes2: Bytes, tagText2: Text,
	tagTuple: Tuple, tagList: List, tagDict: Dict,
	tagArray: NDArray, tagType: DType, tagCSR: CSRMatrix, tagGlobal: Name,
}

func (w word) tag() word         { return w & 15 }
func (w word) payload() int      { return int(w >> 4) }
func (w word) kind() Kind        { return tagKind[w&15] }
func (w word) int() int64        { return int64(w) >> 4 }
func index(tag word, i int) word { return word(i)<<4 | tag }

func boolWord(b bool) word {
	if b {
		return 1<<4 | tagBool
	}
	return tagBool
}

// keep appends x to a table and returns its index as a word with the given tag.
func keep[T any](d *decoder, table *[]T, x T, tag word) (word, error) {
	if len(*table) == cap(*table) {
		size := max(8, 2*cap(*table))
		if err := d.charge(size * int(unsafe.Sizeof(x))); err != nil {
			return 0, err
		}
		*table = append(make([]T, 0, size), *table...)
	}
	*table = append(*table, x)
	return index(tag, len(*table)-1), nil
}

// intWord stores x in a word, or in bigs if it needs more than 60 bits.
func (d *decoder) intWord(x int64) (word, error) {
	if x<<4>>4 == x {
		return word(x)<<4 | tagInt, nil
	}
	return keep(d, &d.bigs, x, tagBig)
}

func (d *decoder) floatWord(x float64) (word, error) {
	return keep(d, &d.floats, x, tagFloat)
}

const viewLimit = 1 << 28 // longest view, in bytes, that is stored in the word itself

// viewWord stores input[at:at+n] as bytes or text.
func (d *decoder) viewWord(tag word, at, n int) (word, error) {
	if n < viewLimit { // DecodePickle refuses positions beyond 2^31
		return word(at)<<32 | word(n)<<4 | tag, nil
	}
	return d.textWord(tag, d.in[at:at+n:at+n])
}

// textWord stores bytes that are not a short view of the input; the caller charges their memory.
// The tag is tagBytes or tagText.
func (d *decoder) textWord(tag word, s []byte) (word, error) {
	return keep(d, &d.texts, s, tag+tagBytes2-tagBytes)
}

func (d *decoder) text(w word) ([]byte, bool) {
	switch w.tag() {
	case tagBytes, tagText:
		at, n := int(w>>32), int(w>>4)&(viewLimit-1)
		return d.in[at : at+n : at+n], true
	case tagBytes2, tagText2:
		return d.texts[w.payload()], true
	}
	return nil, false
}

// Sequences are stored in blocks, which do not move when their number grows. A block with the
// allocator's overhead takes 12 KiB.
const seqBlock = 511

func (d *decoder) seq(w word) *[]word {
	i := w.payload()
	return &d.seqs[i/seqBlock][i%seqBlock]
}

// newSeq makes a tuple, list or dict of a copy of items.
func (d *decoder) newSeq(tag word, items []word) (word, error) {
	n := d.numSeqs
	if n%seqBlock == 0 {
		// The charge includes the slice of blocks and the copies that its growth discards.
		if err := d.charge(24*seqBlock + 128); err != nil {
			return 0, err
		}
		d.seqs = append(d.seqs, make([][]word, seqBlock))
	}
	d.numSeqs++
	w := index(tag, n)
	if len(items) > 0 {
		if err := d.charge(8 * len(items)); err != nil {
			return 0, err
		}
		s := make([]word, len(items))
		copy(s, items)
		*d.seq(w) = s
	}
	return w, nil
}

// A dict's pairs arrive in batches of a thousand. Each large batch becomes a separate dict, so that
// large dicts are not copied as they grow.
const largeBatch = 256

// extend appends items to the list or dict w.
func (d *decoder) extend(w word, items []word) error {
	if w.tag() == tagDict && (len(items) >= largeBatch || len(d.more[w]) > 0) {
		return d.extendDict(w, items)
	}
	s := d.seq(w)
	if need := len(*s) + len(items); need > cap(*s) {
		size := need
		if len(*s) > 0 {
			size = max(need, 2*cap(*s))
		}
		if err := d.charge(8 * size); err != nil {
			return err
		}
		grown := make([]word, len(*s), size)
		copy(grown, *s)
		*s = grown
	}
	*s = append(*s, items...)
	return nil
}

// extendDict appends pairs to the last of w's further dicts, or to a new one.
func (d *decoder) extendDict(w word, items []word) error {
	more := d.more[w]
	if n := len(more); n > 0 && len(items) < largeBatch && len(*d.seq(more[n-1])) < largeBatch {
		return d.extend(more[n-1], items)
	}
	part, err := d.newSeq(tagDict, items)
	if err != nil {
		return err
	}
	// A word, the same again for the growth of the slice, and the entry of the map.
	if err := d.charge(32); err != nil {
		return err
	}
	if d.more == nil {
		d.more = map[word][]word{}
	}
	if len(more) == 0 {
		if err := d.charge(128); err != nil {
			return err
		}
	}
	d.more[w] = append(more, part)
	return nil
}

// pairs calls visit for the parts of a dict: alternating keys and values.
func (d *decoder) pairs(w word, visit func(items []word) bool) {
	if !visit(*d.seq(w)) {
		return
	}
	for _, part := range d.more[w] {
		if !visit(*d.seq(part)) {
			return
		}
	}
}
