package flight

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/flight"
	flatbuffers "github.com/google/flatbuffers/go"
)

// Positions of fields in the tables of Arrow's Message.fbs and Schema.fbs, and values of their enumerations.
const (
	messageType, messageHeader, messageMetadata                         = 6, 8, 12
	schemaFields, schemaMetadata                                        = 6, 8
	fieldName, fieldType, fieldDictionary, fieldChildren, fieldMetadata = 4, 8, 12, 14, 16
	batchBuffers, batchCompression                                      = 8, 10
	keyField, valueField                                                = 4, 6

	isSchema, isDictionaries, isBatch = 1, 2, 3
)

// maxDepth bounds the nesting of types; the accepted ones have two levels.
const maxDepth = 4

// readable are the types that the library may read: Int, FloatingPoint, Utf8, Bool and all kinds of lists. It is up to
// layoutOf which of them a column may have.
var readable = map[byte]string{
	1: "null", 2: "an integer", 3: "a float", 4: "binary", 5: "a string", 6: "a boolean", 7: "a decimal", 8: "a date", 9: "a time", 10: "a timestamp",
	11: "an interval", 12: "a list", 15: "a fixed-size binary", 16: "a fixed-size list", 18: "a duration", 19: "a large binary", 20: "a large string", 21: "a large list",
}

// verify refuses messages for which the library would allocate more than they have bytes, or read beyond them: it
// believes every length. Vectors and strings of a flatbuffer may overlap, so their sizes are added up.
func verify(m *flight.FlightData) (err error) {
	defer func() {
		if recover() != nil { // the flatbuffers package panics at an offset outside the message
			err = errors.New("the message is damaged: an offset points outside it")
		}
	}()
	b := m.GetDataHeader()
	if len(b) == 0 {
		return nil // only metadata
	}
	v := &verifier{b: b, left: len(b)}
	root := table(b, flatbuffers.GetUOffsetT(b))
	if err := v.metadata(root, messageMetadata); err != nil {
		return err
	}
	kind := byte(0)
	if o := root.Offset(messageType); o != 0 {
		kind = root.GetByte(root.Pos + flatbuffers.UOffsetT(o))
	}
	o := root.Offset(messageHeader)
	if o == 0 {
		return fmt.Errorf("the message has no header")
	}
	header := table(b, root.Indirect(root.Pos+flatbuffers.UOffsetT(o)))
	switch kind {
	case isSchema:
		if err := v.metadata(header, schemaMetadata); err != nil {
			return err
		}
		return v.fields(header, schemaFields, 0)
	case isDictionaries:
		return fmt.Errorf("a column is dictionary-encoded; cast it to its plain type")
	case isBatch:
		return v.batch(header, len(m.GetDataBody()))
	}
	return fmt.Errorf("a message of type %d has no place in a stream of record batches", kind)
}

// verifier adds up what a message's parts take.
type verifier struct {
	b    []byte
	left int // bytes
}

func table(b []byte, at flatbuffers.UOffsetT) *flatbuffers.Table {
	return &flatbuffers.Table{Bytes: b, Pos: at}
}

// take counts n elements of a size that begin at a position.
func (v *verifier) take(at flatbuffers.UOffsetT, n, size int) error {
	if n < 0 || n*size > len(v.b)-int(at) || n*size > v.left {
		return fmt.Errorf("the message is damaged: a list of %d elements does not fit it", n)
	}
	v.left -= n * size
	return nil
}

// vector returns where a vector of tables begins and its length.
func (v *verifier) vector(t *flatbuffers.Table, field flatbuffers.VOffsetT, size int) (at flatbuffers.UOffsetT, n int, err error) {
	o := flatbuffers.UOffsetT(t.Offset(field))
	if o == 0 {
		return 0, 0, nil
	}
	at, n = t.Vector(o), t.VectorLen(o)
	return at, n, v.take(at, n, size)
}

// text counts a string.
func (v *verifier) text(t *flatbuffers.Table, field flatbuffers.VOffsetT) error {
	_, _, err := v.vector(t, field, 1)
	return err
}

// metadata checks a vector of keys and values.
func (v *verifier) metadata(t *flatbuffers.Table, field flatbuffers.VOffsetT) error {
	at, n, err := v.vector(t, field, 4)
	for i := 0; i < n && err == nil; i++ {
		pair := table(v.b, t.Indirect(at+flatbuffers.UOffsetT(4*i)))
		if err = v.text(pair, keyField); err == nil {
			err = v.text(pair, valueField)
		}
	}
	return err
}

// fields checks the columns of a schema, or the children of a column.
func (v *verifier) fields(t *flatbuffers.Table, field flatbuffers.VOffsetT, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("a column has more than %d levels", maxDepth)
	}
	at, n, err := v.vector(t, field, 4)
	for i := 0; i < n && err == nil; i++ {
		f := table(v.b, t.Indirect(at+flatbuffers.UOffsetT(4*i)))
		if err := v.text(f, fieldName); err != nil {
			return err
		}
		name := ""
		if o := flatbuffers.UOffsetT(f.Offset(fieldName)); o != 0 {
			name = f.String(f.Pos + o)
		}
		kind := byte(0)
		if o := f.Offset(fieldType); o != 0 {
			kind = f.GetByte(f.Pos + flatbuffers.UOffsetT(o))
		}
		switch {
		case f.Offset(fieldDictionary) != 0:
			return fmt.Errorf("the column %.60q is dictionary-encoded; cast it to its plain type", name)
		case readable[kind] == "":
			return fmt.Errorf("the column %.60q has a type that no column of nodes or edges has; leave it out or cast it", name)
		}
		if err := v.metadata(f, fieldMetadata); err != nil {
			return err
		}
		err = v.fields(f, fieldChildren, depth+1)
	}
	return err
}

// batch checks the buffers of a record batch.
func (v *verifier) batch(t *flatbuffers.Table, body int) error {
	if t.Offset(batchCompression) != 0 {
		return fmt.Errorf("the record batch is compressed; send it without compression")
	}
	const size = 16 // an offset and a length, int64 each
	at, n, err := v.vector(t, batchBuffers, size)
	for i := 0; i < n && err == nil; i++ {
		p := at + flatbuffers.UOffsetT(size*i)
		from, length := t.GetInt64(p), t.GetInt64(p+8)
		if from < 0 || length < 0 || from%8 != 0 || from > int64(body) || length > int64(body)-from {
			return fmt.Errorf("the message is damaged: the buffer of %d bytes at %d is not in its body of %d bytes", length, from, body)
		}
	}
	return err
}
