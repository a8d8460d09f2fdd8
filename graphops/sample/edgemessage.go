package sample

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// What each edge of a message has, as bits of a word.
const (
	weightsKind = 1 << iota // in the order of kindsOf
	timesKind
	featuresKind
	halfKind // the features are float16
	typesKind
	allKinds = 1<<iota - 1
)

// kindsOf returns the words of a message that say what each edge has.
func kindsOf(s graphops.EdgeShape) (kinds uint32, cols int) {
	for i, has := range [...]bool{s.Weighted, s.Times, s.FeatureCols > 0, s.Half, s.Typed} {
		if has {
			kinds |= 1 << i
		}
	}
	return kinds, s.FeatureCols
}

// shapeOf is the inverse of kindsOf; ok is false for words that no shape has.
func shapeOf(kinds, cols uint32) (s graphops.EdgeShape, ok bool) {
	if kinds > allKinds || cols > math.MaxInt32 || (cols > 0) != (kinds&featuresKind != 0) || kinds&(featuresKind|halfKind) == halfKind {
		return s, false
	}
	return graphops.EdgeShape{Weighted: kinds&weightsKind != 0, Times: kinds&timesKind != 0, FeatureCols: int(cols), Half: kinds&halfKind != 0, Typed: kinds&typesKind != 0}, true
}

// appendEdges appends what edges have to a message.
func appendEdges(b []byte, d *graphops.EdgeData) []byte {
	b = appendFloats(b, d.Weights)
	for _, t := range d.Times {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
	}
	for _, t := range d.Types {
		b = binary.LittleEndian.AppendUint16(b, t)
	}
	x := d.Features
	if x == nil {
		return b
	}
	b = appendFloats(b, x.F32)
	for _, v := range x.F16 {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

// edges reads what edges have into d, whose slices have their lengths.
func (m *message) edges(d *graphops.EdgeData) {
	m.floats(d.Weights)
	m.keys64(d.Times)
	m.halves(d.Types)
	if x := d.Features; x != nil {
		m.floats(x.F32)
		m.halves(x.F16)
	}
}

func appendFloats(b []byte, values []float32) []byte {
	at := len(b)
	b = slices.Grow(b, 4*len(values))[:at+4*len(values)]
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[at+4*i:], math.Float32bits(v))
	}
	return b
}

func (m *message) floats(out []float32) {
	raw := m.take(4 * len(out))
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

func (m *message) halves(out []uint16) {
	raw := m.take(2 * len(out))
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
}

func (m *message) keys64(out []int64) {
	raw := m.take(8 * len(out))
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
}
