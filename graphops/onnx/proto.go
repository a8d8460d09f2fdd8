package onnx

import (
	"encoding/binary"
	"math"
)

// message is a protocol buffer message as it is written. The numbers of fields are those of onnx.proto of the ONNX project.
type message []byte

// The wire types of fields.
const (
	varint  = 0
	bytesOf = 2
	fixed32 = 5
)

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field<<3|wire)) }

// int writes an integer or an element of an enumeration.
func (m *message) int(field int, v int64) {
	m.tag(field, varint)
	*m = binary.AppendUvarint(*m, uint64(v))
}

func (m *message) float(field int, v float32) {
	m.tag(field, fixed32)
	*m = binary.LittleEndian.AppendUint32(*m, math.Float32bits(v))
}

func (m *message) bytes(field int, b []byte) {
	m.tag(field, bytesOf)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *message) string(field int, s string) { m.bytes(field, []byte(s)) }

// The types of elements: TensorProto.DataType.
const (
	typeFloat = 1
	typeInt64 = 7
)

// The types of attributes: AttributeProto.AttributeType.
const (
	attributeFloat  = 1
	attributeInt    = 2
	attributeString = 3
)

// The numbers of fields of the messages that are written.
const (
	modelIRVersion = 1 // ModelProto
	modelProducer  = 2
	modelVersion   = 3
	modelDomain    = 4
	modelDoc       = 6
	modelGraph     = 7
	modelOpset     = 8
	modelMetadata  = 14

	opsetVersion = 2 // OperatorSetIdProto

	entryKey   = 1 // StringStringEntryProto
	entryValue = 2

	graphNode        = 1 // GraphProto
	graphName        = 2
	graphInitializer = 5
	graphDoc         = 10
	graphInput       = 11
	graphOutput      = 12

	nodeInput     = 1 // NodeProto
	nodeOutput    = 2
	nodeName      = 3
	nodeOpType    = 4
	nodeAttribute = 5

	attributeName  = 1 // AttributeProto
	attributeF     = 2
	attributeI     = 3
	attributeS     = 4
	attributeKind  = 20
	tensorDims     = 1 // TensorProto
	tensorType     = 2
	tensorName     = 8
	tensorRaw      = 9
	valueName      = 1 // ValueInfoProto
	valueType      = 2
	valueDoc       = 3
	typeTensor     = 1 // TypeProto
	tensorTypeElem = 1 // TypeProto.Tensor
	tensorTypeDims = 2
	shapeDim       = 1 // TensorShapeProto
	dimValue       = 1 // TensorShapeProto.Dimension
	dimParam       = 2
)

const (
	irVersion = 8  // the oldest that operator set 18 goes with
	opset     = 18 // the oldest in which ScatterElements has a maximum
)
