package tbevents

import (
	"encoding/binary"
	"math"
	"time"
)

// Histogram is how often values occur: Counts[i] of them are in Edges[i] to Edges[i+1].
type Histogram struct {
	Edges, Counts []float64
	Sum, Squares  float64 // of the values, and of their squares
}

// Histogram writes a histogram at a step.
func (e *Writer) Histogram(at time.Time, step int64, tag string, h Histogram) error {
	num := 0.0
	for _, c := range h.Counts {
		num += c
	}
	n := len(h.Counts)
	return e.value(at, step, tag, func(b []byte) []byte {
		return appendMessage(b, valueHisto, func(b []byte) []byte { // HistogramProto
			b = appendDouble(b, 1, h.Edges[0])
			b = appendDouble(b, 2, h.Edges[n])
			b = appendDouble(b, 3, num)
			b = appendDouble(b, 4, h.Sum)
			b = appendDouble(b, 5, h.Squares)
			b = appendDoubles(b, 6, h.Edges[1:]) // upper ends
			return appendDoubles(b, 7, h.Counts)
		})
	})
}

// PNG writes a picture at a step; width and height are its pixels.
func (e *Writer) PNG(at time.Time, step int64, tag string, width, height int, png []byte) error {
	return e.value(at, step, tag, func(b []byte) []byte {
		return appendMessage(b, valueImage, func(b []byte) []byte {
			b = appendInt(b, 1, uint64(height))
			b = appendInt(b, 2, uint64(width))
			b = appendInt(b, 3, 4) // RGBA
			return appendString(b, 4, string(png))
		})
	})
}

// Text writes text, in Markdown, at a step.
func (e *Writer) Text(at time.Time, step int64, tag, text string) error {
	return e.value(at, step, tag, func(b []byte) []byte {
		b = appendMessage(b, valueTensor, func(b []byte) []byte {
			b = appendInt(b, 1, 7)                          // string
			b = appendMessage(b, 2, func(b []byte) []byte { // of the shape [1]
				return appendMessage(b, 2, func(b []byte) []byte { return appendInt(b, 1, 1) })
			})
			return appendString(b, 8, text)
		})
		return appendMessage(b, valueMetadata, func(b []byte) []byte {
			return appendMessage(b, 1, func(b []byte) []byte { return appendString(b, 1, "text") })
		})
	})
}

// value writes an event with one value.
func (e *Writer) value(at time.Time, step int64, tag string, fill func([]byte) []byte) error {
	return e.summary(at, step, func(b []byte) []byte {
		return appendMessage(b, summaryValue, func(b []byte) []byte { return fill(appendString(b, valueTag, tag)) })
	})
}

// More fields of the message Summary.Value.
const (
	valueImage = 4
	valueHisto = 5
)

func appendDoubles(b []byte, field int, xs []float64) []byte {
	b = binary.AppendUvarint(appendKey(b, field, wireBytes), uint64(8*len(xs)))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
