// Package tbevents writes event files, which TensorBoard reads: scalars by step,
// and the hyper-parameters of a run.
//
// A file is a sequence of records: the length of the data as a uint64, a checksum
// of these eight bytes, the data, and a checksum of that; all little-endian. The
// checksum is CRC-32C, rotated by 15 bits and with a constant added, so that a
// checksum of data that holds one is as good as any (TensorFlow,
// core/lib/io/record_writer.h and core/lib/hash/crc32c.h). The data is a message
// Event in the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding),
// of which this package writes the few fields that are needed.
package tbevents

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// FileName returns a name that TensorBoard recognises as an event file; TensorBoard reads the files
// of a directory in order of the times in their names. suffix must not contain separators.
func FileName(at time.Time, suffix string) string {
	return fmt.Sprintf("events.out.tfevents.%010d.%s", at.Unix(), suffix)
}

// Writer writes the events of one run. Its methods must not be called concurrently. After an error,
// the file is unusable.
type Writer struct {
	w   io.Writer
	buf []byte
}

// New begins a file with the format's version and a session start, which makes readers discard the
// events of earlier files of the same run. at is the event's time, as in all methods.
func New(w io.Writer, at time.Time) (*Writer, error) {
	e := &Writer{w: w}
	if err := e.event(at, 0, func(b []byte) []byte { return appendString(b, eventFileVersion, "brain.Event:2") }); err != nil {
		return nil, err
	}
	return e, e.event(at, 0, func(b []byte) []byte {
		return appendMessage(b, eventSessionLog, func(b []byte) []byte { return appendInt(b, 1, sessionStart) })
	})
}

// Scalar is a named number at a step. A slash in a tag groups charts. Numbers are stored as
// float32; NaN and infinities are shown as such.
type Scalar struct {
	Tag   string
	Value float64
}

// Scalars writes numbers at a step, in one event.
func (e *Writer) Scalars(at time.Time, step int64, values ...Scalar) error {
	if len(values) == 0 {
		return nil
	}
	return e.summary(at, step, func(b []byte) []byte {
		for _, v := range values {
			b = appendMessage(b, summaryValue, func(b []byte) []byte {
				b = appendString(b, valueTag, v.Tag)
				b = appendKey(b, valueSimple, wire32)
				return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Value)))
			})
		}
		return b
	})
}

// HParams writes the run's hyper-parameters for TensorBoard's table: values are float64, bool or
// string. Runs of one group are repetitions with the same values.
func (e *Writer) HParams(at time.Time, group string, values map[string]any) error {
	for name, v := range values {
		switch v.(type) {
		case float64, bool, string:
		default:
			return fmt.Errorf("tbevents: the hyper-parameter %s is a %T; it can be a float64, bool or string", name, v)
		}
	}
	return e.plugin(at, "_hparams_/session_start_info", 3, func(b []byte) []byte {
		for _, name := range slices.Sorted(maps.Keys(values)) { // map<string, google.protobuf.Value>
			b = appendMessage(b, 1, func(b []byte) []byte {
				b = appendString(b, 1, name)
				return appendMessage(b, 2, func(b []byte) []byte {
					switch v := values[name].(type) {
					case float64:
						return appendDouble(b, 2, v)
					case string:
						return appendString(b, 3, v)
					case bool:
						return appendInt(b, 4, map[bool]uint64{true: 1}[v])
					}
					return b
				})
			})
		}
		b = appendString(b, 4, group)
		return appendDouble(b, 5, seconds(at))
	})
}

// Status is the final status of a run, for the table of hyper-parameters.
type Status uint64

// The final statuses of a run.
const (
	Unknown Status = 0
	Success Status = 1
	Failure Status = 2
)

// End writes the final status of the run.
func (e *Writer) End(at time.Time, s Status) error {
	return e.plugin(at, "_hparams_/session_end_info", 4, func(b []byte) []byte {
		return appendDouble(appendInt(b, 1, uint64(s)), 2, seconds(at))
	})
}

// plugin writes data of the hyper-parameter plug-in: a field of its message, as the metadata of an
// empty tensor.
func (e *Writer) plugin(at time.Time, tag string, field int, fill func([]byte) []byte) error {
	return e.summary(at, 0, func(b []byte) []byte {
		return appendMessage(b, summaryValue, func(b []byte) []byte {
			b = appendString(b, valueTag, tag)
			b = appendMessage(b, valueTensor, func(b []byte) []byte {
				b = appendInt(b, 1, 1)                             // float
				return appendMessage(b, 2, func(b []byte) []byte { // of the shape [0]
					return appendMessage(b, 2, func(b []byte) []byte { return b })
				})
			})
			return appendMessage(b, valueMetadata, func(b []byte) []byte {
				return appendMessage(b, 1, func(b []byte) []byte {
					b = appendString(b, 1, "hparams")
					return appendMessage(b, 2, func(b []byte) []byte { return appendMessage(b, field, fill) })
				})
			})
		})
	})
}

// Fields of the messages Event, Summary, Summary.Value and SessionLog.
const (
	eventTime        = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	eventSessionLog  = 7

	summaryValue = 1

	valueTag      = 1
	valueSimple   = 2
	valueTensor   = 8
	valueMetadata = 9

	sessionStart = 1
)

func (e *Writer) summary(at time.Time, step int64, fill func([]byte) []byte) error {
	return e.event(at, step, func(b []byte) []byte { return appendMessage(b, eventSummary, fill) })
}

// event writes an event as a record, in one write.
func (e *Writer) event(at time.Time, step int64, fill func([]byte) []byte) error {
	const head = 12 // size of the length and its checksum
	b := append(e.buf[:0], make([]byte, head)...)
	b = appendDouble(b, eventTime, seconds(at))
	if step != 0 {
		b = appendInt(b, eventStep, uint64(step))
	}
	b = fill(b)
	binary.LittleEndian.PutUint64(b, uint64(len(b)-head))
	binary.LittleEndian.PutUint32(b[8:], checksum(b[:8]))
	b = binary.LittleEndian.AppendUint32(b, checksum(b[head:]))
	e.buf = b
	if _, err := e.w.Write(b); err != nil {
		return fmt.Errorf("tbevents: writing an event: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the masked CRC-32C.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

// The wire types of protocol buffers.
const (
	wireInt   = 0
	wire64    = 1
	wireBytes = 2
	wire32    = 5
)

func appendKey(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field)<<3|uint64(wire))
}

func appendInt(b []byte, field int, x uint64) []byte {
	return binary.AppendUvarint(appendKey(b, field, wireInt), x)
}

func appendDouble(b []byte, field int, x float64) []byte {
	return binary.LittleEndian.AppendUint64(appendKey(b, field, wire64), math.Float64bits(x))
}

func appendString(b []byte, field int, s string) []byte {
	return append(binary.AppendUvarint(appendKey(b, field, wireBytes), uint64(len(s))), s...)
}

// appendMessage appends a nested message, prefixed with its length.
func appendMessage(b []byte, field int, fill func([]byte) []byte) []byte {
	inner := fill(nil)
	b = binary.AppendUvarint(appendKey(b, field, wireBytes), uint64(len(inner)))
	return append(b, inner...)
}
