package ops

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// Space is the identity of rows: the nodes or edges that they belong to. Two spaces are equal if
// they name the same ids in the same order. A Space is read-only and may be shared.
type Space struct {
	// IDs are the global ids of the rows. It is nil if row r is node Start+r, or if the ids are in
	// a device's memory; [Space.ID] works in every case.
	IDs   []int32
	Start int32

	// edges: the rows are the edges of the block, and their ids CSC positions.
	edges *graphops.Block
	// of: row r is source row at+r of the block, whose ids a device may have.
	of    *graphops.Block
	at, n int // n is the number of rows if the ids are on a device
}

// ID returns the id of row r: of a node, or the CSC position of an edge. If the ids are on a
// device, the first call copies all ids of the block to the host.
func (s *Space) ID(r int) int64 {
	switch {
	case s.edges != nil:
		return s.edges.Pos(s.edges.Indptr()[0] + int64(r))
	case s.IDs != nil:
		return int64(s.IDs[r])
	case s.OnDevice():
		return int64(s.of.SrcIDs()[s.at+r])
	}
	return int64(s.Start) + int64(r)
}

// Edges returns the block whose edges the rows are, or nil if they are nodes.
func (s *Space) Edges() *graphops.Block { return s.edges }

// Sources returns the block of which row r is source row from+r, or nil if unknown. A backend uses
// it to find ids in its own memory.
func (s *Space) Sources() (b *graphops.Block, from int) { return s.of, s.at }

// SrcSpace is the space of a block's source rows. Pass it to [Fwd.Input] with the input features of
// the block's layer. The rows of a block whose destinations are no sources ([graphops.HostBlock]) have no space: nil.
func SrcSpace(b *graphops.Block) *Space {
	switch {
	case b.Apart():
		return nil
	case b.Remote() != nil:
		return &Space{of: b, n: b.NumSrc}
	}
	return &Space{IDs: b.SrcIDs(), of: b}
}

// DstSpace is the space of a block's destination rows; nil where SrcSpace is.
func DstSpace(b *graphops.Block) *Space {
	switch {
	case b.Apart():
		return nil
	case b.Remote() != nil:
		return &Space{of: b, at: b.DstStart, n: b.NumDst}
	case b.RowsAreNodes():
		return &Space{Start: int32(b.DstStart), of: b, at: b.DstStart}
	}
	return &Space{IDs: b.SrcIDs()[b.DstStart : b.DstStart+b.NumDst], of: b, at: b.DstStart}
}

// EdgeSpace is the space of a block's edges, whose ids are CSC positions; nil where SrcSpace is.
func EdgeSpace(b *graphops.Block) *Space {
	if b.Apart() {
		return nil
	}
	return &Space{edges: b}
}

// Sub returns the space of rows [lo, hi), or nil for a part of a block's edges.
func (s *Space) Sub(lo, hi int) *Space {
	switch {
	case s == nil || s.edges != nil:
		return nil
	case s.OnDevice():
		return &Space{of: s.of, at: s.at + lo, n: hi - lo}
	case s.IDs != nil:
		return &Space{IDs: s.IDs[lo:hi], of: s.of, at: s.at + lo}
	}
	return &Space{Start: s.Start + int32(lo), of: s.of, at: s.at + lo}
}

func (s *Space) Same(o *Space) bool {
	switch {
	case s == o || s.of != nil && s.of == o.of && s.at == o.at:
		return true
	case s.edges != nil || o.edges != nil:
		return s.edges == o.edges
	case s.OnDevice() && o.OnDevice() && s.at == o.at && s.of.Remote().IDsOf() == o.of.Remote().IDsOf():
		return true // the rows of one table, which blocks of a batch share
	}
	a, b := s.ids(), o.ids()
	switch {
	case (a == nil) != (b == nil):
		return false
	case a == nil:
		return s.Start == o.Start
	case len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]:
		return true
	}
	return slices.Equal(a, b)
}

// ids returns IDs, copied from a device if they are there.
func (s *Space) ids() []int32 {
	if s.OnDevice() {
		return s.of.SrcIDs()[s.at : s.at+s.n]
	}
	return s.IDs
}

// OnDevice reports whether the ids are in a device's memory.
func (s *Space) OnDevice() bool { return s.of != nil && s.of.Remote() != nil }
