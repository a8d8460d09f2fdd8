package remote

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/graphnb/graphnb/gnb/internal/bulk"
	"github.com/graphnb/graphnb/internal/simd"
)

// What a server may say of itself. Nothing is allocated for more.
const (
	mostNodes    = math.MaxInt32
	mostParts    = 1 << 20
	mostRowBytes = 1 << 26 // of a node
	mostBytes    = 1 << 46 // of an array, or of the rows of all nodes
	// Requests for each node, or edge, of the dataset once: with more, an epoch would take hours.
	mostRequests = 20_000
)

// checkHello refuses what no server of a dataset says: sizes that contradict each other or that no machine has.
func checkHello(h *bulk.Hello) error {
	m := &h.Metadata
	element := 4
	if h.Half {
		element = 2
	}
	sparse := m.FeatureFormat != ""
	labels := 0
	switch {
	case m.MultiLabel:
		labels = m.NumClasses
	case m.NumClasses > 0:
		labels = 4
	}
	switch {
	case m.NumNodes < 0 || m.NumNodes > mostNodes || m.NumEdges < 0 || m.NumEdges > mostBytes/4:
		return fmt.Errorf("a graph of %d nodes and %d edges", m.NumNodes, m.NumEdges)
	case m.NumEvents < 0 || m.NumEvents > m.NumEdges || m.NumEvents > 0 && (!h.Edges.Times || h.Arrays[bulk.EventsArray] != 8*m.NumEvents):
		return fmt.Errorf("%d events of %d edges, in a list of %d bytes", m.NumEvents, m.NumEdges, h.Arrays[bulk.EventsArray])
	case h.Parts < 0 || h.Parts > min(mostParts, max(1, m.NumNodes)) || len(h.Sums) > h.Parts:
		return fmt.Errorf("%d parts of %d nodes", h.Parts, m.NumNodes)
	case h.RowBytes < 0 || h.RowBytes > mostRowBytes || h.LabelBytes < 0 || h.LabelBytes > mostRowBytes || m.FeatureDim < 0 || m.NumClasses < 0:
		return fmt.Errorf("%d bytes of features and %d of labels for each node", h.RowBytes, h.LabelBytes)
	case int64(m.NumNodes)*int64(h.RowBytes+h.LabelBytes) > mostBytes:
		return fmt.Errorf("%d nodes with %d bytes of features and labels each", m.NumNodes, h.RowBytes+h.LabelBytes)
	case h.RowBytes%element != 0 || len(m.NodeTypes) == 0 && !sparse && h.RowBytes != 0 && h.RowBytes != element*m.FeatureDim || sparse && h.RowBytes != 0:
		return fmt.Errorf("%d bytes for the %d features of a node", h.RowBytes, m.FeatureDim)
	case h.LabelBytes != 0 && h.LabelBytes != labels:
		return fmt.Errorf("%d bytes for the labels of a node, of %d classes", h.LabelBytes, m.NumClasses)
	case h.Largest < 0 || h.Largest > max(0, m.FeatureDim):
		return fmt.Errorf("%d sparse features of a node, of %d", h.Largest, m.FeatureDim)
	case h.Edges.FeatureCols < 0 || h.Edges.FeatureCols > mostRowBytes/4:
		return fmt.Errorf("%d features of each edge", h.Edges.FeatureCols)
	}
	for name, n := range h.Arrays {
		if n < 0 || n > mostBytes {
			return fmt.Errorf("an array %.40q of %d bytes", name, n)
		}
	}
	return nil
}

// checkLimits refuses limits with which asking would take hours.
func checkLimits(l bulk.Limits, nodes int, edges int64) error {
	if min(l.Nodes, l.Edges, l.Bytes) < 1 {
		return fmt.Errorf("answers for no nodes (%+v)", l)
	}
	if nodes/l.Nodes > mostRequests || edges/int64(l.Edges) > 10*mostRequests {
		return fmt.Errorf("answers at most %d nodes and %d edges a request, so that asking for its %d nodes and %d edges once takes more than %d requests; start it with larger limits (gnb serve --max-nodes, --max-edges)",
			l.Nodes, l.Edges, nodes, edges, mostRequests)
	}
	return nil
}

// checkFinite returns an error that names the first number of rows, little-endian, that is not finite.
func checkFinite(b []byte, half bool) error {
	if half {
		for i := 0; i+2 <= len(b); i += 2 {
			if binary.LittleEndian.Uint16(b[i:])&0x7c00 == 0x7c00 {
				return notFinite(i / 2)
			}
		}
		return nil
	}
	if at := unsafe.SliceData(b); uintptr(unsafe.Pointer(at))%4 == 0 && simd.Finite(unsafe.Slice((*float32)(unsafe.Pointer(at)), len(b)/4)) {
		return nil
	}
	const exponent = 0x7f800000
	for i := 0; i+4 <= len(b); i += 4 {
		if binary.LittleEndian.Uint32(b[i:])&exponent == exponent {
			return notFinite(i / 4)
		}
	}
	return nil
}

// notFinite is the place of a number that is not finite among those of rows.
type notFinite int

func (e notFinite) Error() string { return "a number is not finite" }
