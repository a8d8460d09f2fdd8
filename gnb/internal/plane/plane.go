// Package plane brings the rows of features that a batch reads to the rank that computes it, when the parts of a graph
// are on several machines, or its features larger than memory.
//
// The samples of the next batches are known before these batches are computed, so nothing is guessed: a [Window] is told
// the nodes of each batch when it has been sampled, asks a [Source] for the rows that are neither on this machine nor in
// the [Cache] nor asked for by a batch before, and has them when the batch is computed. An [Exchange] is the Source that
// gets rows from the ranks that have them, and a [Disk] the one that reads them from a file. Ranks on one [Machine] have
// one window together, in memory that they share, whatever the source.
//
// Rows are bytes in the stored type, and node ids are those of the whole graph. Where a row comes from does not change
// it, so results have the same bits with any cache and any window.
package plane

import (
	"context"
	"sync/atomic"
)

// Source gets rows of nodes whose parts are not on this machine.
type Source interface {
	// Rows writes the rows of the nodes ids to dst, in their order. The ids are distinct and ascending, and dst has the
	// bytes of as many rows. One goroutine at a time calls it.
	Rows(ctx context.Context, ids []int32, dst []byte) error
}

// Scatterer is a Source that writes each row to a place of its own, which saves a copy.
type Scatterer interface {
	Source
	// Scatter is Rows with the memory to(i) for the row of ids[i]. Several goroutines may call to.
	Scatter(ctx context.Context, ids []int32, to func(i int) []byte) error
}

// Collective is a Source whose ranks call Rows together: each rank as often as the others, with ids of its own, which
// may be none. Its calls do not end with their context, but when the ranks' connection is aborted. After a call that has
// failed a rank makes no further one.
type Collective interface {
	Source
	// Calls returns the largest n of all ranks. Collective.
	Calls(n int) (int, error)
	// Leave takes the place of a call of Rows: it makes the other ranks' call return [ErrLeft]. It returns when all ranks
	// have called Rows or Leave.
	Leave() error
}

// Own is the rows that are on this machine. It is safe for concurrent use.
type Own interface {
	Has(node int32) bool
	// Gather writes the rows of those of the nodes ids that are here to dst [len(ids) rows], in the order of ids. It
	// may write anything to the other rows.
	Gather(dst []byte, ids []int32) error
}

// Counts counts the rows that batches have read, by source. It is safe for concurrent use.
type Counts struct {
	own, cached, window, remote, bytes atomic.Int64
}

// Rows is the number of rows by source.
type Rows struct {
	Own    int64 // on this machine
	Cached int64 // in the static cache
	Window int64 // asked for by an earlier batch of the window, or by another rank of the machine
	Remote int64 // asked for
	Bytes  int64 // of the rows asked for, or read from disk
	// GPU is the number of rows that were on the rank's GPU, and Copied the bytes of the others that were copied there. A
	// window knows neither; see package feed.
	GPU, Copied int64
	// If the source is a disk: rows read for a batch, requests, seconds of reading, and the disk's limit in bytes per
	// second. A window counts them as Remote; see package feed.
	Disk, Requests int64
	Seconds, Limit float64
}

// Rows returns the counts so far.
func (c *Counts) Rows() Rows {
	return Rows{Own: c.own.Load(), Cached: c.cached.Load(), Window: c.window.Load(), Remote: c.remote.Load(), Bytes: c.bytes.Load()}
}

func (r *Rows) add(o Rows) {
	r.Own += o.Own
	r.Cached += o.Cached
	r.Window += o.Window
	r.Remote += o.Remote
	r.Bytes += o.Bytes
}

func (c *Counts) add(r Rows) {
	if c == nil {
		return
	}
	c.own.Add(r.Own)
	c.cached.Add(r.Cached)
	c.window.Add(r.Window)
	c.remote.Add(r.Remote)
	c.bytes.Add(r.Bytes)
}
