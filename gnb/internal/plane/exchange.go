package plane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// ErrLeft is the error of a call in which another rank has left the loop.
var ErrLeft = errors.New("another rank has left the loop over batches; all ranks must leave it at the same step")

// Exchange is the [Collective] source of ranks that have each other's rows: in each call a rank sends one request to
// each owner, answers those of the others, and receives the rows. A rank that cannot ask or answer says so to all ranks,
// so a call fails on all of them or on none, and no rank waits for another one's next call.
type Exchange struct {
	// Comm connects the ranks; nothing else may use it in another goroutine.
	Comm collective.Comm
	// Site is that of the collectives, the same on all ranks.
	Site collective.Site
	// Owner returns the rank that has a node's row.
	Owner    func(node int32) int
	Own      Own // this rank's rows
	RowBytes int
	// Counts, unless nil, are those of windows: of rows that travel in their true lengths, the rest is taken off.
	Counts *Counts

	asks  [][]int32 // ids for each rank
	send  [][]byte
	wants []int32 // of one rank
}

// Over returns an Exchange of the same rows over another connection.
func (x *Exchange) Over(c collective.Comm) *Exchange {
	return &Exchange{Comm: c, Site: x.Site, Owner: x.Owner, Own: x.Own, RowBytes: x.RowBytes, Counts: x.Counts}
}

// A message begins with a word that says what it is; the words keep what follows aligned.
const (
	headBytes  = 8
	kindAsk    = 1 // and the ids
	kindRows   = 2 // and the rows
	kindLeave  = 3
	kindFailed = 4 // and the reason
	kindTick   = 5 // of a stream; and its rows and ids
)

// What a rank tells the others that it could not do.
const (
	askingRows  = "ask for rows of features"
	givingRows  = "give its rows of features"
	gettingRows = "get rows of features for its machine"
)

// message begins a message in the memory of an older one.
func message(old []byte, kind uint64) []byte {
	return binary.LittleEndian.AppendUint64(old[:0], kind)
}

// Rows implements [Source].
func (x *Exchange) Rows(_ context.Context, ids []int32, dst []byte) error {
	me := x.Comm.Rank()
	failed := x.requests(me, ids)
	if failed == nil && len(dst) != len(ids)*x.RowBytes {
		failed = fmt.Errorf("memory of %d bytes for %d rows of %d", len(dst), len(ids), x.RowBytes)
	}
	for r := range x.send {
		x.send[r] = appendIDs(message(x.send[r], kindAsk), x.asks[r])
	}
	got, err := x.all(me, failed, askingRows)
	if err != nil {
		return err
	}
	for r, b := range got {
		if r != me && failed == nil {
			failed = x.reply(r, b)
		}
	}
	if got, err = x.all(me, failed, givingRows); err != nil {
		return err
	}
	for r, list := range x.asks {
		if r == me {
			continue
		}
		kind, rest := split(got[r])
		if kind != kindRows {
			return fmt.Errorf("rank %d answered a request for %d rows with another message", r, len(list))
		}
		if err := x.check(r, rest, len(list)); err != nil {
			return err
		}
		got[r] = rest
	}
	x.visit(ids, got, func(i int) []byte { return dst[i*x.RowBytes : (i+1)*x.RowBytes] })
	return nil
}

// requests finds the rank of each of the rows ids.
func (x *Exchange) requests(me int, ids []int32) error {
	world := x.Comm.Size()
	if x.asks == nil {
		x.asks, x.send = make([][]int32, world), make([][]byte, world)
	}
	for r := range world {
		x.asks[r] = x.asks[r][:0]
	}
	for _, v := range ids {
		r := x.Owner(v)
		if r < 0 || r >= world || r == me {
			return fmt.Errorf("the features of node %d are on no other rank; the part of this node is missing on the machine of rank %d", v, r)
		}
		x.asks[r] = append(x.asks[r], v)
	}
	return nil
}

// appendIDs appends the encoded ids to b.
func appendIDs(b []byte, ids []int32) []byte {
	for _, v := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// all sends the messages or, if this rank has failed to do what, the reason to all ranks. It fails if a rank has failed,
// or if another rank has left.
func (x *Exchange) all(me int, failed error, what string) ([][]byte, error) {
	if failed != nil {
		for r := range x.send {
			x.send[r] = append(message(nil, kindFailed), what+": "+failed.Error()...)
		}
	}
	x.send[me] = x.send[me][:0]
	got, err := x.Comm.AllToAll(x.Site, x.send)
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, err
	}
	left := false
	for r, b := range got {
		switch kind, rest := split(b); {
		case r == me:
		case kind == kindFailed:
			return nil, fmt.Errorf("rank %d could not %s", r, rest)
		case kind == kindLeave:
			left = true
		}
	}
	if left {
		return nil, ErrLeft
	}
	return got, nil
}

// reply makes the answer to rank r's request.
func (x *Exchange) reply(r int, b []byte) (err error) {
	kind, list := split(b)
	if kind != kindAsk || len(list)%4 != 0 {
		return fmt.Errorf("rank %d sent a request for rows of features that is damaged", r)
	}
	x.send[r], x.wants, err = x.gather(r, list, message(x.send[r], kindRows), x.wants)
	return err
}

// split returns the kind of a message and what follows it.
func split(b []byte) (kind uint64, rest []byte) {
	if len(b) < headBytes {
		return 0, nil
	}
	return binary.LittleEndian.Uint64(b), b[headBytes:]
}

// Calls implements [Collective].
func (x *Exchange) Calls(n int) (int, error) {
	all, err := x.Comm.AllGather(x.Site, binary.LittleEndian.AppendUint64(nil, uint64(n)))
	for _, b := range all {
		if len(b) == 8 {
			n = max(n, int(binary.LittleEndian.Uint64(b)))
		}
	}
	return n, err
}

// Leave implements [Collective].
func (x *Exchange) Leave() error {
	send := make([][]byte, x.Comm.Size())
	for r := range send {
		send[r] = message(nil, kindLeave)
	}
	_, err := x.Comm.AllToAll(x.Site, send)
	return err
}
