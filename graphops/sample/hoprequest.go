package sample

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// HopRequest asks for the edges that some nodes of a divided graph take at one hop of a batch. The
// answer depends on the request and the graph alone, so a request can be repeated.
type HopRequest struct {
	Seed             uint64
	Purpose          Purpose
	Epoch, Step, Hop int
	// Picker is [UniformPicker], [WeightedPicker], [LaborPicker] with its options ("labor/16/layers/poisson",
	// 16 being BatchDependency), or the Go type of another [Picker]. Fanout is the fanout of the first three at this hop, -1 for all in-edges.
	Picker string
	Fanout int
	Nodes  []int32
	// Trees is the tree of each node, the position of its seed in Seeds, if trees are disjoint; nil if they are not.
	Trees []int32
	Seeds Seeds
	// AsOf says what seeds with times see and take. Its NodeTimes are not sent: with NodeTimes, the owner of the nodes has those
	// times, of all nodes (AnswererOptions.NodeTimes).
	AsOf      AsOf
	NodeTimes bool
}

// The pickers that every [Answerer] knows: those of [Fanouts], [Weighted] and [Labor].
const (
	UniformPicker  = "uniform"
	WeightedPicker = "weighted"
	LaborPicker    = "labor" // with "/" and BatchDependency, and the names of other options
)

// HopReply is the answer to a [HopRequest].
type HopReply struct {
	// Counts is the number of edges that each node of the request takes, and First the CSC position
	// of the node's first in-edge in the whole graph.
	Counts []int32
	First  []int64
	// Sources are the sources of the edges, node after node and ascending within a node. Offsets are
	// the edges' places among the in-edges of their node: edge e of node i has position
	// First[i]+Offsets[e].
	Sources []int32
	Offsets []int32
	// Edges is what the edges have: weights, features and times.
	Edges graphops.EdgeData
	// Hidden is the number of in-edges of each node that its seed, which has a time, does not see; nil without times.
	Hidden []int32
}

// MaxPickerName is the largest length of HopRequest.Picker in bytes.
const MaxPickerName = 255

const (
	requestMagic  = 0x33514F48 // "HOQ3"
	replyMagic    = 0x33504F48 // "HOP3"
	requestHeader = 48
	replyHeader   = 20
	asOfBytes     = 20      // of a request with times: window, half-life and flags
	hiddenKind    = 1 << 31 // of a reply's kinds: it has Hidden
)

// The flags of a request with times; the strategy is in the bits from strategyShift on.
const (
	strictFlag = 1 << iota
	nodesFlag
	strategyShift = 8
)

// Part returns the request for the nodes [lo, hi) alone, with the seeds of their trees. Its nodes are in q's memory.
func (q *HopRequest) Part(lo, hi int) HopRequest {
	p := *q
	p.Nodes = q.Nodes[lo:hi]
	if q.Seeds.Len() == 0 {
		return p
	}
	p.Trees, p.Seeds = make([]int32, 0, hi-lo), Seeds{}
	own := map[int32]int32{} // the numbers of the part's trees, by those of q's
	for _, tree := range q.Trees[lo:hi] {
		n, ok := own[tree]
		if !ok {
			n = int32(p.Seeds.Len())
			own[tree] = n
			p.Seeds.IDs = append(p.Seeds.IDs, q.Seeds.IDs[tree])
			if q.Seeds.Times != nil {
				p.Seeds.Times = append(p.Seeds.Times, q.Seeds.Times[tree])
			}
		}
		p.Trees = append(p.Trees, n)
	}
	return p
}

// Append appends the encoded request to b: twelve 32-bit words, the picker's name, and the nodes; with disjoint trees the trees of
// the nodes and the seeds, and with their times those and AsOf; all little-endian.
func (q *HopRequest) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = slices.Grow(b, requestSize(q.Picker, len(q.Nodes))+4*len(q.Trees)+12*q.Seeds.Len()+asOfBytes)
	timed := 0
	if q.Seeds.Times != nil {
		timed = 1
	}
	b = le.AppendUint32(b, requestMagic)
	b = le.AppendUint64(b, q.Seed)
	for _, v := range [...]int{int(q.Purpose), q.Epoch, q.Step, q.Hop, q.Fanout, len(q.Picker), len(q.Nodes), q.Seeds.Len(), timed} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = append(b, q.Picker...)
	b = appendWords(b, q.Nodes)
	if q.Seeds.Len() == 0 {
		return b
	}
	b = appendWords(appendWords(b, q.Trees), q.Seeds.IDs)
	if timed == 0 {
		return b
	}
	for _, at := range q.Seeds.Times {
		b = le.AppendUint64(b, uint64(at))
	}
	flags := uint32(q.AsOf.strategy()) << strategyShift
	if q.AsOf.Strict {
		flags |= strictFlag
	}
	if q.NodeTimes {
		flags |= nodesFlag
	}
	b = le.AppendUint64(b, uint64(q.AsOf.Window))
	b = le.AppendUint64(b, uint64(q.AsOf.HalfLife))
	return le.AppendUint32(b, flags)
}

// Decode sets the request to the one that b encodes, in the memory of q's slices. It refuses what no
// sampler sends; whether the nodes exist, the [Answerer] checks. It allocates no more than b has
// bytes.
func (q *HopRequest) Decode(b []byte) error {
	in := message{rest: b}
	magic := in.word()
	low, high := in.word(), in.word()
	purpose, epoch, step, hop, fanout, name, nodes, seeds, timed := in.word(), in.word(), in.word(), in.word(), int32(in.word()), in.word(), in.word(), in.word(), in.word()
	size := uint64(name) + 4*uint64(nodes)
	if seeds > 0 {
		size += 4*uint64(nodes) + (4+8*uint64(timed))*uint64(seeds) + asOfBytes*uint64(timed)
	}
	switch {
	case in.short || magic != requestMagic || timed > 1:
		return fmt.Errorf("sample: a message of %d bytes is no request for a hop; both sides must run the same version", len(b))
	case name > MaxPickerName || uint64(len(in.rest)) != size:
		return fmt.Errorf("sample: a request for a hop announces %d nodes, %d seeds and a picker's name of %d bytes, which are not what its %d bytes hold", nodes, seeds, name, len(b))
	}
	picker := string(in.take(int(name)))
	had := *q
	*q = HopRequest{
		Seed: uint64(high)<<32 | uint64(low), Purpose: Purpose(purpose), Epoch: int(epoch), Step: int(step), Hop: int(hop),
		Picker: picker, Fanout: int(fanout), Nodes: in.words(had.Nodes, int(nodes)),
	}
	if seeds > 0 {
		q.Trees, q.Seeds.IDs = in.words(had.Trees, int(nodes)), in.words(had.Seeds.IDs, int(seeds))
		if timed > 0 {
			times := in.take(8 * int(seeds))
			q.Seeds.Times = resize(had.Seeds.Times, int(seeds))
			for i := range q.Seeds.Times {
				q.Seeds.Times[i] = int64(binary.LittleEndian.Uint64(times[8*i:]))
			}
			var lengths [2]uint64
			in.keys(lengths[:0], 2)
			flags := in.word()
			q.AsOf = AsOf{Window: int64(lengths[0]), HalfLife: int64(lengths[1]), Strict: flags&strictFlag != 0, Strategy: strategyName(flags >> strategyShift)}
			if q.NodeTimes = flags&nodesFlag != 0; flags&(1<<strategyShift-1)&^(strictFlag|nodesFlag) != 0 {
				return fmt.Errorf("sample: a request has options of seeds with times that are not known here (%#x); both sides must run the same version", flags)
			}
		}
	}
	return q.check()
}

// check refuses positions, purposes and fanouts that no sampler has.
func (q *HopRequest) check() error {
	switch {
	case q.Purpose != Training && q.Purpose != Evaluation && q.Purpose != User:
		return fmt.Errorf("sample: a request is for purpose %d, but a sampler's purpose is Training, Evaluation or User", q.Purpose)
	case q.Epoch < 0 || q.Epoch >= MaxEpochs || q.Step < 0 || int64(q.Step) > math.MaxUint32 || q.Hop < 0 || q.Hop >= MaxHops:
		return fmt.Errorf("sample: a request is for epoch %d, step %d, hop %d, but epochs are 0 to %d, steps 0 to 2^32-1 and hops 0 to %d", q.Epoch, q.Step, q.Hop, MaxEpochs-1, MaxHops-1)
	case q.Fanout < -1 || q.Fanout > philox.MaxDraws:
		return fmt.Errorf("sample: a request has fanout %d, but a fanout is 0 to %d, or -1 for all in-neighbours", q.Fanout, philox.MaxDraws)
	case q.Picker == "":
		return errors.New("sample: a request names no picker; both sides must run the same version")
	case q.Seeds.Len() == 0 && len(q.Trees) > 0 || q.Seeds.Len() > 0 && len(q.Trees) != len(q.Nodes) || q.Seeds.Times != nil && len(q.Seeds.Times) != q.Seeds.Len():
		return fmt.Errorf("sample: a request for %d nodes has the trees of %d, and %d times for %d seeds", len(q.Nodes), len(q.Trees), len(q.Seeds.Times), q.Seeds.Len())
	case q.Seeds.Times == nil && !q.AsOf.IsZero():
		return errors.New("sample: a request has options of seeds with times, and its seeds have none")
	case len(q.Picker) > MaxPickerName:
		return fmt.Errorf("sample: the name of the picker %.40s… has %d bytes, but a request has room for %d; give the type a shorter name", q.Picker, len(q.Picker), MaxPickerName)
	}
	return q.AsOf.Check()
}

// Append appends the encoded reply to b: five 32-bit words (a mark, the numbers of nodes and of
// edges, what each edge has, and the number of its features), then Counts, First, for seeds with times Hidden, Sources, Offsets,
// and of all edges the weights, the times and the features, all little-endian.
func (r *HopReply) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = slices.Grow(b, r.Size())
	kinds, cols := kindsOf(r.Edges.Shape())
	if r.Hidden != nil {
		kinds |= hiddenKind
	}
	for _, v := range [...]int{replyMagic, len(r.Counts), len(r.Sources), int(kinds), cols} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = appendWords(b, r.Counts)
	for _, v := range r.First {
		b = le.AppendUint64(b, uint64(v))
	}
	b = appendWords(b, r.Hidden)
	b = appendWords(b, r.Sources)
	b = appendWords(b, r.Offsets)
	return appendEdges(b, &r.Edges)
}

// Size is the length of the encoded reply in bytes.
func (r *HopReply) Size() int {
	return replySize(len(r.Counts), len(r.Sources), r.Edges.Shape()) + 4*len(r.Hidden)
}

// HopSizes returns the lengths in bytes of encoded requests to a number of owners, for a number of nodes in all by a picker, and of
// their replies with a number of edges, which have what have says.
func HopSizes(owners int, p Picker, nodes, edges int, have graphops.EdgeShape) (requests, replies int) {
	return owners*requestSize(pickerName(p), 0) + 4*nodes, owners*replySize(0, 0, have) + replySize(nodes, edges, have) - replySize(0, 0, have)
}

func requestSize(picker string, nodes int) int { return requestHeader + len(picker) + 4*nodes }

func replySize(nodes, edges int, have graphops.EdgeShape) int {
	return replyHeader + 12*nodes + (8+have.Bytes())*edges
}

// Decode sets the reply to the one that b encodes, in the memory of r's slices. It checks the
// lengths; [Divided] checks the rest against the request. It allocates no more than b has bytes,
// rounded up.
func (r *HopReply) Decode(b []byte) error {
	in := message{rest: b}
	magic, nodes, edges, kinds, cols := in.word(), uint64(in.word()), uint64(in.word()), in.word(), in.word()
	hidden := uint64(kinds >> 31)
	shape, ok := shapeOf(kinds&^hiddenKind, cols)
	if in.short || magic != replyMagic || !ok {
		return fmt.Errorf("sample: a message of %d bytes is no answer for a hop; both sides must run the same version", len(b))
	}
	high, bytes := bits.Mul64(edges, uint64(8+shape.Bytes()))
	if rest := uint64(len(in.rest)); high != 0 || bytes > rest || rest-bytes != (12+4*hidden)*nodes {
		return fmt.Errorf("sample: an answer for a hop announces %d nodes and %d edges with %v, which are not what its %d bytes hold", nodes, edges, shape, len(b))
	}
	r.Counts = in.words(r.Counts, int(nodes))
	first := in.take(8 * int(nodes))
	r.First = resize(r.First, int(nodes))
	for i := range r.First {
		r.First[i] = int64(binary.LittleEndian.Uint64(first[8*i:]))
	}
	if r.Hidden = r.Hidden[:0:cap(r.Hidden)]; hidden > 0 {
		r.Hidden = in.words(r.Hidden, int(nodes))
	} else {
		r.Hidden = nil
	}
	r.Sources = in.words(r.Sources, int(edges))
	r.Offsets = in.words(r.Offsets, int(edges))
	r.Edges.SetLen(shape, int(edges))
	in.edges(&r.Edges)
	return nil
}
