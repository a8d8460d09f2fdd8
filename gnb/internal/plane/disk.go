package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
)

const (
	// gapBytes is the largest hole between two rows that one request reads too. On the disk of the measurements a
	// request takes 28 µs and 1.2 ns per byte more: a hole of 22 KiB costs as much as a further request.
	gapBytes = 16 << 10
	// requestBytes bounds a request of several rows: a disk's rate does not grow beyond it.
	requestBytes = 256 << 10
	// roundBytes bounds the requests that one lane has in flight.
	roundBytes = 8 << 20
	// roundRequests bounds their number.
	roundRequests = 1 << 10
	// lanes is the number of rounds at the same time: the rows of one are copied while the disk reads another.
	lanes = 2
)

// DiskBuffers is the memory in which a [Disk] reads, unless a row is larger or all rows are smaller.
const DiskBuffers = lanes * roundBytes

// DiskOptions of [Open]. The zero value is a good default.
type DiskOptions struct {
	Cached bool // read through the page cache, as if the file system did not support O_DIRECT
	Pread  bool // read by goroutines, as if the kernel did not support io_uring
}

// Disk is the [Source] of rows of a matrix [rows, rowBytes] in a file that does not fit in memory. It is safe for
// concurrent use; calls wait for each other.
//
// A mapped file reads a page when a row is touched, one page at a time, while the thread that computes waits, and the
// pages that it leaves behind evict others. A Disk is told the rows that a batch needs before the batch is computed. It
// merges neighbouring rows into one request, has many requests in flight, and reads past the page cache (O_DIRECT) where
// the file system allows it. It has at most two buffers of roundBytes, or of one row if that is larger.
//
// Disks reach their rate only with tens of requests in flight. On Linux they are sent by io_uring, hundreds with one
// system call. Where the kernel or a container forbids io_uring, goroutines call pread. Beside two goroutines that compute
// on two cores, 32 goroutines read 2,400 to 3,900 rows of 2.5 KiB per second, because each row waits for the scheduler;
// 1,024 requests per call of io_uring read 12,600 to 25,700. With idle cores both reach the disk's rate, io_uring in a
// third of the processor's time.
type Disk struct {
	name     string
	file     *os.File
	from     int64 // the offset of row 0
	rows     int
	rowBytes int
	size     int64 // of the file
	align    int64 // of requests: of offsets, sizes and memory
	direct   bool
	pread    pread
	rings    atomic.Int32 // lanes that read by io_uring
	broken   atomic.Int32 // lanes whose io_uring had an error
	lanes    chan *lane

	requests, bytes atomic.Int64
	busy            busy
}

// DiskStats is what a [Disk] has done.
type DiskStats struct {
	Requests int64
	Bytes    int64 // read, with holes and what alignment adds
	// Busy is the time in which at least one call of Rows or Scatter was at work.
	Busy time.Duration
}

// busy is the time in which at least one call is at work.
type busy struct {
	mu    sync.Mutex
	calls int       // at work
	since time.Time // they are
	total time.Duration
}

func (b *busy) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls++; b.calls == 1 {
		b.since = now
	}
}

func (b *busy) end(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls--; b.calls == 0 {
		b.total += now.Sub(b.since)
	}
}

// until returns the time so far.
func (b *busy) until(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls > 0 {
		return b.total + now.Sub(b.since)
	}
	return b.total
}

// lane has the memory of one round, and what sends its requests.
type lane struct {
	memory []byte
	round  []request
	engine engine
}

// request reads size bytes at offset at into buf, for the rows first to last-1 of a call. Past the file's end, bytes are
// missing.
type request struct {
	at          int64
	buf         []byte
	first, last int
	got         int
	err         error
}

// engine reads the requests of a round, and sets got and err of each. It reports false if it is broken: it must not be
// used again, nor closed, and the kernel may still write to the memory of the round.
type engine interface {
	read(round []request) bool
	close()
}

// OpenDisk opens the matrix that begins at byte from of a file.
func OpenDisk(path string, from int64, rows, rowBytes int, o DiskOptions) (*Disk, error) {
	if from < 0 || rows < 0 || rowBytes <= 0 {
		return nil, fmt.Errorf("gnb: reading %s: %d rows of %d bytes from byte %d on are no matrix", path, rows, rowBytes, from)
	}
	f, align, direct, err := openFile(path, !o.Cached)
	if err != nil {
		return nil, fmt.Errorf("gnb: reading features: %w", err)
	}
	r := &Disk{name: path, file: f, from: from, rows: rows, rowBytes: rowBytes, align: align, direct: direct, pread: preadOf(f), lanes: make(chan *lane, lanes)}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("gnb: reading features: %w", err)
	}
	if !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("gnb: reading features: %s is not a regular file", path)
	}
	r.size = info.Size()
	if need := from + int64(rows)*int64(rowBytes); r.size < need {
		_ = f.Close()
		return nil, fmt.Errorf("gnb: %s has %d bytes, but %d rows of %d bytes from byte %d on need %d: the file was truncated; write it again", path, r.size, rows, rowBytes, from, need)
	}
	for range lanes {
		l := &lane{round: make([]request, 0, roundRequests)}
		if !o.Pread {
			l.engine = openRing(f, align)
		}
		if l.engine != nil {
			r.rings.Add(1)
		} else {
			l.engine = &pool{r.pread}
		}
		r.lanes <- l
	}
	return r, nil
}

// Direct reports whether requests go past the page cache.
func (r *Disk) Direct() bool { return r.direct }

// String describes how the file is read now.
func (r *Disk) String() string {
	way := "by pread"
	switch rings, broken := r.rings.Load(), r.broken.Load(); {
	case rings > 0 && broken > 0:
		way = "by io_uring and, after an error of it, by pread"
	case rings > 0:
		way = "by io_uring"
	case broken > 0:
		way = "by pread, after an error of io_uring"
	}
	if r.direct {
		return way + " with O_DIRECT"
	}
	return way + " through the page cache, because the file system has no O_DIRECT"
}

// Stats returns the work so far.
func (r *Disk) Stats() DiskStats {
	return DiskStats{r.requests.Load(), r.bytes.Load(), r.busy.until(time.Now())}
}

// Close closes the file and frees the memory. It waits for calls that read; later ones fail. Call it once.
func (r *Disk) Close() error {
	for range lanes {
		l := <-r.lanes
		l.engine.close()
		freeMemory(l.memory)
	}
	close(r.lanes)
	return r.file.Close()
}

// Rows writes the rows ids, which ascend, to dst [len(ids) rows] in their order. It implements [Source].
func (r *Disk) Rows(ctx context.Context, ids []int32, dst []byte) error {
	n := r.rowBytes
	if len(dst) != len(ids)*n {
		return fmt.Errorf("gnb: memory of %d bytes for %d rows of %d", len(dst), len(ids), n)
	}
	return r.Scatter(ctx, ids, func(i int) []byte { return dst[i*n : (i+1)*n] })
}

// Scatter writes row ids[i] to the rowBytes bytes of to(i), for each i. The ids ascend. Two goroutines call to. It ends
// soon after ctx. It implements [Scatterer].
func (r *Disk) Scatter(ctx context.Context, ids []int32, to func(i int) []byte) error {
	for i, v := range ids {
		if v < 0 || int(v) >= r.rows || i > 0 && v < ids[i-1] {
			return fmt.Errorf("gnb: row %d of %s at position %d: rows are 0 to %d, in ascending order", v, r.name, i, r.rows-1)
		}
	}
	r.busy.begin(time.Now())
	defer func() { r.busy.end(time.Now()) }()
	c := call{r: r, ids: ids, to: to}
	var run sync.WaitGroup
	for range lanes - 1 {
		if len(ids) < fewRows { // one lane reads them
			break
		}
		run.Go(func() { c.work(ctx) })
	}
	c.work(ctx)
	run.Wait()
	return c.err
}

// fewRows is the number of rows below which one lane reads all of a call.
const fewRows = 64

// call is one call of Scatter.
type call struct {
	r   *Disk
	ids []int32
	to  func(i int) []byte

	mu   sync.Mutex
	next int // the first id that no round has
	err  error
}

// work reads round after round in a lane of its own.
func (c *call) work(ctx context.Context) {
	l, open := <-c.r.lanes
	if !open {
		c.mu.Lock()
		c.err = errors.Join(c.err, fmt.Errorf("gnb: reading %s: %w; the run has ended", c.r.name, os.ErrClosed))
		c.mu.Unlock()
		return
	}
	defer func() { c.r.lanes <- l }()
	for {
		c.mu.Lock()
		if c.err == nil && ctx.Err() != nil {
			c.err = context.Cause(ctx)
		}
		if c.err != nil || c.next == len(c.ids) {
			c.mu.Unlock()
			return
		}
		c.next = c.r.plan(l, c.ids, c.next)
		c.mu.Unlock()
		if err := c.read(l); err != nil {
			c.mu.Lock()
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
			return
		}
	}
}

// plan fills a lane's round with requests for the ids from next on, and returns the first id that has no room.
func (r *Disk) plan(l *lane, ids []int32, next int) int {
	l.round = l.round[:0]
	used := int64(0)
	for next < len(ids) && len(l.round) < roundRequests {
		lo, hi := r.span(ids[next])
		last := next + 1
		for ; last < len(ids); last++ {
			from, to := r.span(ids[last])
			if from-hi > gapBytes || to-lo > requestBytes {
				break
			}
			hi = to
		}
		if used > 0 && used+hi-lo > roundBytes {
			break
		}
		l.round = append(l.round, request{at: lo, first: next, last: last, got: int(hi - lo)})
		used += hi - lo
		next = last
	}
	l.room(max(used, min(roundBytes, r.all())))
	at := 0
	for i := range l.round {
		q := &l.round[i]
		q.buf, q.got = l.memory[at:at+q.got:at+q.got], 0
		at += len(q.buf)
	}
	return next
}

// room makes the lane's memory large enough.
func (l *lane) room(bytes int64) {
	if int64(len(l.memory)) < bytes {
		freeMemory(l.memory)
		l.memory = newMemory(int(bytes))
	}
}

// all is the size of the matrix with its alignment.
func (r *Disk) all() int64 {
	if r.rows == 0 {
		return 0
	}
	lo, _ := r.span(0)
	_, hi := r.span(int32(r.rows - 1))
	return hi - lo
}

// span returns the aligned bytes that contain a row.
func (r *Disk) span(v int32) (lo, hi int64) {
	lo = r.from + int64(v)*int64(r.rowBytes)
	hi = lo + int64(r.rowBytes)
	return lo / r.align * r.align, (hi + r.align - 1) / r.align * r.align
}

// read reads a lane's round. A broken engine makes place for a pool; it and its memory are left as they are on purpose,
// because the kernel may still use them.
func (r *Disk) read(l *lane) {
	if !l.engine.read(l.round) {
		l.engine, l.memory = &pool{r.pread}, nil
		r.rings.Add(-1)
		r.broken.Add(1)
	}
}

// read reads a lane's round and copies the rows.
func (c *call) read(l *lane) error {
	r := c.r
	r.read(l)
	for i := range l.round {
		q := &l.round[i]
		need := int(r.from + int64(c.ids[q.last-1]+1)*int64(r.rowBytes) - q.at)
		for q.err == nil && q.got < need { // a signal, or a limit of the kernel, may end a request early
			done := q.got / int(r.align) * int(r.align)
			n, err := r.pread(q.buf[done:], q.at+int64(done))
			switch {
			case err != nil:
				q.err = err
			case done+n <= q.got:
				q.err = io.ErrUnexpectedEOF
			default:
				q.got = done + n
			}
		}
		if q.err != nil {
			return r.failed(q)
		}
		r.requests.Add(1)
		r.bytes.Add(int64(q.got))
		for j := q.first; j < q.last; j++ {
			at := int(r.from + int64(c.ids[j])*int64(r.rowBytes) - q.at)
			copy(c.to(j), q.buf[at:at+r.rowBytes])
		}
	}
	if !r.direct {
		forget(r.file, &l.round[0], &l.round[len(l.round)-1])
	}
	return nil
}

// failed describes the error of a request.
func (r *Disk) failed(q *request) error {
	if errors.Is(q.err, io.EOF) || errors.Is(q.err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("gnb: reading %s at byte %d: the file was truncated while it was in use; write it again", r.name, q.at+int64(q.got))
	}
	return fmt.Errorf("gnb: reading %s of %s at byte %d: %w; check the disk", phrase.Bytes(int64(len(q.buf))), r.name, q.at, q.err)
}

// pread reads bytes of a file by one system call. At the file's end it reads fewer, without an error: O_DIRECT does not
// allow a further call from there, whose offset is not aligned.
type pread func(buf []byte, at int64) (int, error)

// pool reads requests by goroutines that call pread.
type pool struct{ pread pread }

// preads is the number of goroutines of a pool.
const preads = 32

func (p *pool) read(round []request) bool {
	var next atomic.Int64
	var run sync.WaitGroup
	for range min(preads, len(round)) {
		run.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(round)); i = next.Add(1) - 1 {
				q := &round[i]
				q.got, q.err = p.pread(q.buf, q.at)
			}
		})
	}
	run.Wait()
	return true
}

func (p *pool) close() {}
