// Package bulk is the protocol between graph servers (gnb/serve) and their clients (gnb/remote):
// gRPC methods whose messages are bytes that nothing encodes or copies, under a content-subtype of
// their own. Health and reflection services keep the codec of protocol buffers.
//
// A call has one request and a stream of replies, each of at most [MaxFrame] bytes, so that a server
// holds little memory for a client that reads slowly. All integers are little-endian.
package bulk

import (
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Protocol is the version of the protocol; both sides must have the same.
const Protocol = 4

// Subtype is the content-subtype of the messages.
const Subtype = "gnb"

// Service is the name of the gRPC service, and the others are the names of its methods.
const (
	Service = "graphnb.Graph"
	// HelloMethod returns a [Hello] as JSON. Its request is empty.
	HelloMethod = "Hello"
	// ArrayMethod returns the bytes of an array of all nodes or edges. Its request is the array's name.
	ArrayMethod = "Array"
	// RowsMethod returns rows of features or labels: of dense ones the rows, of sparse features what
	// [DecodeSparse] reads. Its request is a [RowsRequest].
	RowsMethod = "Rows"
	// SampleMethod returns a sample.HopReply. Its request is a sample.HopRequest.
	SampleMethod = "Sample"
)

// Path returns the full name of a method.
func Path(method string) string { return "/" + Service + "/" + method }

// MaxFrame is the largest size of a reply message.
const MaxFrame = 1 << 20

// The keys of a call's metadata.
const (
	// TokenKey is followed by "Bearer " and the token.
	TokenKey = "authorization"
	// DatasetKey is the digest of the dataset that the client expects.
	DatasetKey = "gnb-dataset"
)

// Hello describes what a server has.
type Hello struct {
	Protocol int              `json:"protocol"`
	Version  string           `json:"version"` // of GraphNB
	Digest   string           `json:"digest"`  // of the undivided dataset
	Digests  dataset.Digests  `json:"digests"` // its parts; Whole is Digest
	Metadata dataset.Metadata `json:"metadata"`
	// Parts is the number of parts of the dataset, and Here those that this server has.
	Parts int   `json:"parts"`
	Here  []int `json:"here"`
	// Sums are the digests of the parts; nil if the dataset is not divided.
	Sums []string `json:"sums,omitempty"`
	// RowBytes is the size of a node's features, and LabelBytes that of its labels; 0 if there are none.
	RowBytes   int `json:"row_bytes"`
	LabelBytes int `json:"label_bytes"`
	// Largest is the largest number of elements of a node's features if they are sparse, else 0. The
	// metadata says whether they are.
	Largest int  `json:"largest,omitempty"`
	Half    bool `json:"half,omitempty"` // features are float16
	// Edges says what each edge has.
	Edges graphops.EdgeShape `json:"edges"`
	// Arrays are the sizes of the arrays that the server sends, in bytes.
	Arrays map[string]int64 `json:"arrays"`
	Limits Limits           `json:"limits"`
}

// Limits are the largest requests that a server answers.
type Limits struct {
	Nodes int `json:"nodes"` // of a request
	Edges int `json:"edges"` // of the answer to a request for a hop
	Bytes int `json:"bytes"` // of rows of one answer
}

// The names of arrays. Splits are SplitArray+NAME.
const (
	PartsArray      = "parts"       // int32, the part of each node
	InDegreesArray  = "in_degrees"  // int32
	OutDegreesArray = "out_degrees" // int32
	IndptrArray     = "indptr"      // int64, as in a dataset's directory
	IndicesArray    = "indices"     // int32
	WeightsArray    = "weights"     // float32
	TimesArray      = "edge_times"  // int64
	TypesArray      = "edge_types"  // uint16, numbers of the relations of Hello.Metadata
	// EdgesArray is float32 or float16 [edges, Hello.Edges.FeatureCols].
	EdgesArray  = "edge_features"
	LoopedArray = "looped" // float32, the weight of all in-edges with one self-loop; by part (OfPart)
	LoopsArray  = "loops"  // float32, the weight of the self-loop, NaN if there is none; by part (OfPart)
	SplitArray  = "split_" // int32
	EventsArray = "events" // int64, positions of edges in the order of events
)

// EdgeArrays are the names of the arrays of what each edge has.
func EdgeArrays(s graphops.EdgeShape) (names []string) {
	if s.Weighted {
		names = append(names, WeightsArray)
	}
	if s.Times {
		names = append(names, TimesArray)
	}
	if s.FeatureCols > 0 {
		names = append(names, EdgesArray)
	}
	if s.Typed {
		names = append(names, TypesArray)
	}
	return names
}

// OfPart is the name of an array of one part's nodes, ascending by id.
func OfPart(array string, part int) string { return fmt.Sprintf("%s/%d", array, part) }

// Frame is a message. Out is sent, and freed once it has left. A received message is given to In,
// or copied to Data if In is nil; In must not keep it.
type Frame struct {
	Out  mem.BufferSlice
	In   func(mem.BufferSlice) error
	Data []byte
}

func init() { encoding.RegisterCodecV2(codec{}) }

// codec sends and receives frames.
type codec struct{}

func (codec) Name() string { return Subtype }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*Frame)
	if !ok {
		return nil, fmt.Errorf("bulk: a message is a *Frame, not a %T", v)
	}
	return f.Out, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("bulk: a message is a *Frame, not a %T", v)
	}
	if f.In != nil {
		return f.In(data)
	}
	f.Data = slices.Grow(f.Data[:0], data.Len())[:data.Len()]
	data.CopyTo(f.Data)
	return nil
}

// ServerCodec is the codec of a server that has this protocol's service beside services of protocol buffers. It encodes
// by the message: frames as they are, all others as protocol buffers. So those services can also send a frame that has
// an encoded message in it.
type ServerCodec struct{}

// Name returns the content-subtype of protocol buffers.
func (ServerCodec) Name() string { return proto.Name }

// Marshal encodes a message.
func (ServerCodec) Marshal(v any) (mem.BufferSlice, error) {
	if _, ok := v.(*Frame); ok {
		return codec{}.Marshal(v)
	}
	return encoding.GetCodecV2(proto.Name).Marshal(v)
}

// Unmarshal decodes a message.
func (ServerCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if _, ok := v.(*Frame); ok {
		return codec{}.Unmarshal(data, v)
	}
	return encoding.GetCodecV2(proto.Name).Unmarshal(data, v)
}

// RowsRequest asks for rows of some nodes, in their order.
type RowsRequest struct {
	What  What
	Nodes []int32
}

// What is the kind of rows.
type What uint32

// The kinds of rows.
const (
	Features What = iota
	Labels
)

func (w What) String() string {
	switch w {
	case Features:
		return "features"
	case Labels:
		return "labels"
	}
	return fmt.Sprintf("rows of kind %d", uint32(w))
}

const (
	rowsMagic  = 0x31574F52 // "ROW1"
	rowsHeader = 12
)

// Append appends the encoded request to b.
func (r *RowsRequest) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = slices.Grow(b, rowsHeader+4*len(r.Nodes))
	b = le.AppendUint32(b, rowsMagic)
	b = le.AppendUint32(b, uint32(r.What))
	b = le.AppendUint32(b, uint32(len(r.Nodes)))
	for _, v := range r.Nodes {
		b = le.AppendUint32(b, uint32(v))
	}
	return b
}

// Decode sets the request to the one that b encodes, in the memory of r.Nodes. It allocates no more
// than b has bytes.
func (r *RowsRequest) Decode(b []byte) error {
	le := binary.LittleEndian
	if len(b) < rowsHeader || le.Uint32(b) != rowsMagic {
		return fmt.Errorf("bulk: a message of %d bytes is no request for rows; both sides must run the same version", len(b))
	}
	n := uint64(le.Uint32(b[8:]))
	if uint64(len(b)) != rowsHeader+4*n {
		return fmt.Errorf("bulk: a request for rows announces %d nodes, which are not what its %d bytes hold", n, len(b))
	}
	r.What = What(le.Uint32(b[4:]))
	if r.What > Labels {
		return fmt.Errorf("bulk: a request is for %s, which this version does not have", r.What)
	}
	r.Nodes = slices.Grow(r.Nodes[:0], int(n))[:n]
	for i := range r.Nodes {
		r.Nodes[i] = int32(le.Uint32(b[rowsHeader+4*i:]))
	}
	return nil
}
