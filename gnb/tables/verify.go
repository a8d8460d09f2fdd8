package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Positions of fields in the tables of Arrow's File.fbs, Message.fbs and Schema.fbs, and values of their enumerations.
const (
	footerSchema, footerDictionaries, footerBatches, footerMetadata = 6, 8, 10, 12
	messageType, messageHeader, messageBody                         = 6, 8, 10
	schemaFields, schemaMetadata                                    = 6, 8
	fieldChildren, fieldMetadata                                    = 14, 16
	dictionaryData                                                  = 6
	batchLength, batchNodes, batchBuffers, batchCompression         = 4, 6, 8, 10

	isSchema, isDictionaries, isBatch = 1, 2, 3
)

const (
	// maxNesting bounds the nesting of types, and maxMessage the bytes of a message without its body.
	maxNesting = 64
	maxMessage = 1 << 28
	// maxRatio bounds how far a compressed buffer expands.
	maxRatio = 1 << 12
)

var errDamaged = errors.New("it is damaged: its parts do not fit its size")

// verifyArrow refuses an Arrow file or stream for which the library would allocate more than a multiple of its bytes: the
// library believes every length.
func verifyArrow(f io.ReaderAt, size int64, format format) error {
	if format == arrowStream {
		for at := int64(0); at < size; {
			next, err := verifyMessage(f, size, at)
			if err != nil || next == 0 {
				return err
			}
			at = next
		}
		return nil
	}
	var end [10]byte
	if size < 20 {
		return errNoEnd
	}
	if _, err := f.ReadAt(end[:], size-10); err != nil || string(end[4:]) != "ARROW1" {
		return errors.Join(errNoEnd, err)
	}
	n := int64(int32(binary.LittleEndian.Uint32(end[:])))
	b, err := bytesAt(f, size-10, size-10-n, n)
	if err != nil {
		return err
	}
	v := &verifier{b: b, left: len(b)}
	root := flat(b, flatbuffers.GetUOffsetT(b))
	if err := v.schema(v.child(root, footerSchema)); err != nil {
		return err
	}
	if err := v.metadata(root, footerMetadata); err != nil {
		return err
	}
	for _, list := range []flatbuffers.VOffsetT{footerDictionaries, footerBatches} {
		const block = 24 // offset int64, length of the message int32 and a gap, length of the body int64
		at, k, err := v.vector(root, list, block)
		if err != nil {
			return err
		}
		for i := range k {
			p := at + flatbuffers.UOffsetT(block*i)
			from, head, body := root.GetInt64(p), int64(root.GetInt32(p+8)), root.GetInt64(p+16)
			if from < 0 || head < 0 || body < 0 || from > size || head > size-from || body > size-from-head {
				return errDamaged
			}
			if _, err := verifyMessage(f, size, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// errNoEnd is the error of an Arrow file that was cut off.
var errNoEnd = errors.New("there is no footer")

// bytesAt reads n bytes that must lie before an end.
func bytesAt(f io.ReaderAt, end, at, n int64) ([]byte, error) {
	if at < 0 || n < 8 || n > maxMessage || at > end || n > end-at {
		return nil, errDamaged
	}
	b := make([]byte, n)
	_, err := f.ReadAt(b, at)
	return b, err
}

// verifyMessage checks the message at a position, and returns that of the next; 0 at the end of the stream.
func verifyMessage(f io.ReaderAt, size, at int64) (next int64, err error) {
	var head [8]byte
	if n, err := f.ReadAt(head[:], at); n < 8 {
		if n == 0 || errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(head[4:])))
	if at += 8; binary.LittleEndian.Uint32(head[:]) != 0xffffffff { // files before Arrow 0.15 have no such mark
		n, at = int64(int32(binary.LittleEndian.Uint32(head[:]))), at-4
	}
	if n == 0 {
		return 0, nil
	}
	if n > 0 && at+n > size {
		return 0, io.ErrUnexpectedEOF
	}
	b, err := bytesAt(f, size, at, n)
	if err != nil {
		return 0, err
	}
	v := &verifier{b: b, left: len(b)}
	root := flat(b, flatbuffers.GetUOffsetT(b))
	kind, body := byte(0), int64(0)
	if o := root.Offset(messageType); o != 0 {
		kind = root.GetByte(root.Pos + flatbuffers.UOffsetT(o))
	}
	if o := root.Offset(messageBody); o != 0 {
		body = root.GetInt64(root.Pos + flatbuffers.UOffsetT(o))
	}
	if at += n; body < 0 {
		return 0, errDamaged
	} else if body > size-at {
		return 0, io.ErrUnexpectedEOF
	}
	header := v.child(root, messageHeader)
	switch {
	case header == nil:
		return 0, errDamaged
	case kind == isSchema:
		err = v.schema(header)
	case kind == isDictionaries:
		if header = v.child(header, dictionaryData); header == nil {
			return 0, errDamaged
		}
		err = v.batch(header, f, at, body)
	case kind == isBatch:
		err = v.batch(header, f, at, body)
	default:
		err = fmt.Errorf("it has a message of type %d, which is no schema, dictionary or record batch", kind)
	}
	return at + body, err
}

// verifier adds up what a message's parts take, since the vectors of a flatbuffer may overlap.
type verifier struct {
	b    []byte
	left int // bytes
}

func flat(b []byte, at flatbuffers.UOffsetT) *flatbuffers.Table {
	return &flatbuffers.Table{Bytes: b, Pos: at}
}

// child returns a table in a table, or nil.
func (v *verifier) child(t *flatbuffers.Table, field flatbuffers.VOffsetT) *flatbuffers.Table {
	o := t.Offset(field)
	if o == 0 {
		return nil
	}
	return flat(v.b, t.Indirect(t.Pos+flatbuffers.UOffsetT(o)))
}

// vector returns where a vector begins and its length.
func (v *verifier) vector(t *flatbuffers.Table, field flatbuffers.VOffsetT, size int) (at flatbuffers.UOffsetT, n int, err error) {
	o := flatbuffers.UOffsetT(t.Offset(field))
	if o == 0 {
		return 0, 0, nil
	}
	at, n = t.Vector(o), t.VectorLen(o)
	if n < 0 || n*size > len(v.b)-int(at) || n*size > v.left {
		return 0, 0, errDamaged
	}
	v.left -= n * size
	return at, n, nil
}

// metadata checks a vector of keys and values.
func (v *verifier) metadata(t *flatbuffers.Table, field flatbuffers.VOffsetT) error {
	_, _, err := v.vector(t, field, 4)
	return err
}

func (v *verifier) schema(t *flatbuffers.Table) error {
	if t == nil {
		return errDamaged
	}
	if err := v.metadata(t, schemaMetadata); err != nil {
		return err
	}
	return v.fields(t, schemaFields, 0)
}

// fields checks the columns of a schema, or the children of a column.
func (v *verifier) fields(t *flatbuffers.Table, field flatbuffers.VOffsetT, depth int) error {
	at, n, err := v.vector(t, field, 4)
	if err != nil || depth > maxNesting {
		return errors.Join(err, map[bool]error{true: errDamaged}[depth > maxNesting])
	}
	for i := range n {
		f := flat(v.b, t.Indirect(at+flatbuffers.UOffsetT(4*i)))
		if err := v.metadata(f, fieldMetadata); err != nil {
			return err
		}
		if err := v.fields(f, fieldChildren, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// batch checks the sizes of a record batch, whose body begins at a position.
func (v *verifier) batch(t *flatbuffers.Table, f io.ReaderAt, start, body int64) error {
	const pair = 16 // two int64
	rows := int64(0)
	if o := t.Offset(batchLength); o != 0 {
		rows = t.GetInt64(t.Pos + flatbuffers.UOffsetT(o))
	}
	compressed := t.Offset(batchCompression) != 0
	most := 8*body + 1<<20 // rows: a bit each, or columns without values
	if compressed {
		most *= maxRatio
	}
	if rows < 0 || rows > most {
		return errDamaged
	}
	at, n, err := v.vector(t, batchNodes, pair)
	if err != nil {
		return err
	}
	for i := range n {
		p := at + flatbuffers.UOffsetT(pair*i)
		if k, nulls := t.GetInt64(p), t.GetInt64(p+8); k < 0 || k > most || nulls < -1 || nulls > k {
			return errDamaged
		}
	}
	if at, n, err = v.vector(t, batchBuffers, pair); err != nil {
		return err
	}
	for i := range n {
		p := at + flatbuffers.UOffsetT(pair*i)
		from, length := t.GetInt64(p), t.GetInt64(p+8)
		if from < 0 || length < 0 || from > body || length > body-from {
			return errDamaged
		}
		if !compressed || length == 0 {
			continue
		}
		var head [8]byte // the length before compression, -1 if it is not compressed
		if length < 8 {
			return errDamaged
		}
		if _, err := f.ReadAt(head[:], start+from); err != nil {
			return err
		}
		if k := int64(binary.LittleEndian.Uint64(head[:])); k < -1 || k > maxRatio*length {
			return errDamaged
		}
	}
	return nil
}
