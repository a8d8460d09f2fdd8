package multigpu

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// The status page holds each worker's current state, in memory that the launcher also maps, so it
// is current up to the moment a worker dies. Each word has one writer; a reader may see a position
// between two stores.
//
//	0       stop flag u32
//	4096    a rank's part, world times:
//	  0       heartbeats u64, state u32
//	  16      proportional set size at the end, bytes i64
//	  64      epoch+1 i64, step+1 i64, stage's code u32
//	  128     number of stage names u32
//	  256     seconds by stage, in nanoseconds: 32 × i64
//	  512     names by stage: 32 × {length u8, 47 bytes}
//	  4096    last words: length u32, then JSON
const (
	pageStop  = 0
	pageRanks = 4096

	rankBeats  = 0
	rankState  = 8
	rankPss    = 16
	rankEpoch  = 64
	rankStep   = 72
	rankStage  = 80
	rankNames  = 128
	rankNanos  = 256
	rankName   = 512
	rankWords  = 4096
	rankPage   = 64 << 10
	maxStages  = 32
	stageName  = 48
	maxWords   = rankPage - rankWords - 4
	firstStage = "starting"
	otherStage = "other"
)

// States of a worker.
const (
	stateStarting = iota // no line of the handler has run
	stateEntered
	stateDone   // the handler returned nil and all ranks have finished
	stateFailed // the last words say why
)

func pageSize(world int) int { return pageRanks + world*rankPage }

type statusPage struct {
	// mu guards the launcher's mapping against its end; ranks never unmap.
	mu  sync.RWMutex
	mem []byte
}

// newStatusPage is a page in ordinary memory, aligned for 64-bit atomics.
func newStatusPage(world int) *statusPage {
	words := make([]uint64, pageSize(world)/8)
	return &statusPage{mem: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)}
}

func (p *statusPage) stop() *uint32 { return (*uint32)(unsafe.Pointer(&p.mem[pageStop])) }

func (p *statusPage) rank(r int) rankStatus {
	b := pageRanks + r*rankPage
	return rankStatus{mem: p.mem[b : b+rankPage : b+rankPage]}
}

// rankStatus is one rank's part of the page.
type rankStatus struct{ mem []byte }

func (s rankStatus) u32(off int) *uint32 { return (*uint32)(unsafe.Pointer(&s.mem[off])) }
func (s rankStatus) u64(off int) *uint64 { return (*uint64)(unsafe.Pointer(&s.mem[off])) }
func (s rankStatus) i64(off int) *int64  { return (*int64)(unsafe.Pointer(&s.mem[off])) }

func (s rankStatus) beats() uint64      { return atomic.LoadUint64(s.u64(rankBeats)) }
func (s rankStatus) state() uint32      { return atomic.LoadUint32(s.u32(rankState)) }
func (s rankStatus) setState(st uint32) { atomic.StoreUint32(s.u32(rankState), st) }

func (s rankStatus) position() (epoch, step int, stage string) {
	epoch = int(atomic.LoadInt64(s.i64(rankEpoch))) - 1
	step = int(atomic.LoadInt64(s.i64(rankStep))) - 1
	code := int(atomic.LoadUint32(s.u32(rankStage)))
	if code >= int(atomic.LoadUint32(s.u32(rankNames))) || code >= maxStages {
		return epoch, step, firstStage
	}
	return epoch, step, s.name(code)
}

func (s rankStatus) name(code int) string {
	b := s.mem[rankName+code*stageName:]
	return string(b[1 : 1+min(int(b[0]), stageName-1)])
}

func (s rankStatus) times() map[string]time.Duration {
	out := map[string]time.Duration{}
	for code := range min(int(atomic.LoadUint32(s.u32(rankNames))), maxStages) {
		out[s.name(code)] += time.Duration(atomic.LoadInt64(s.i64(rankNanos + 8*code)))
	}
	return out
}

// say stores the last words of a rank: why it ends. They stay readable after the process has ended.
func (s rankStatus) say(words []byte) {
	n := copy(s.mem[rankWords+4:], words[:min(len(words), maxWords)])
	atomic.StoreUint32(s.u32(rankWords), uint32(n))
	s.setState(stateFailed)
}

func (s rankStatus) words() []byte {
	n := min(atomic.LoadUint32(s.u32(rankWords)), maxWords)
	return append([]byte(nil), s.mem[rankWords+4:rankWords+4+int(n)]...)
}

// stageClock gives every moment to exactly one stage: the times of all stages
// add up to the time since it was started.
type stageClock struct {
	mu    sync.Mutex
	page  rankStatus
	codes map[string]int
	code  int
	since time.Time
}

func startClock(page rankStatus) *stageClock {
	c := &stageClock{page: page, codes: map[string]int{}, since: now()}
	c.code = c.codeOf(firstStage)
	return c
}

// codeOf numbers stages in the order of their appearance; stages beyond the table count as "other".
func (c *stageClock) codeOf(name string) int {
	if code, ok := c.codes[name]; ok {
		return code
	}
	code := len(c.codes)
	if code >= maxStages-1 && name != otherStage {
		return c.codeOf(otherStage)
	}
	c.codes[name] = code
	b := c.page.mem[rankName+code*stageName:]
	b[0] = byte(copy(b[1:stageName], name))
	atomic.StoreUint32(c.page.u32(rankNames), uint32(code)+1)
	return code
}

// flush adds the time since the last one to the current stage.
func (c *stageClock) flush() {
	t := now()
	atomic.AddInt64(c.page.i64(rankNanos+8*c.code), max(0, int64(t.Sub(c.since))))
	c.since = t
}

func (c *stageClock) enter(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	c.code = c.codeOf(name)
	atomic.StoreUint32(c.page.u32(rankStage), uint32(c.code))
}

// move counts time of one stage for another, at most as much as the first stage has.
func (c *stageClock) move(from, to string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	source := c.page.i64(rankNanos + 8*c.codeOf(from))
	n := min(int64(d), atomic.LoadInt64(source))
	atomic.AddInt64(source, -n)
	atomic.AddInt64(c.page.i64(rankNanos+8*c.codeOf(to)), n)
}

func (c *stageClock) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	atomic.AddUint64(c.page.u64(rankBeats), 1)
}

func (c *stageClock) times() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	return c.page.times()
}
