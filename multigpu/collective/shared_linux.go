package collective

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The control file, mapped by every rank and by the supervisor. All words are
// little-endian in effect: it never leaves the machine.
//
//	0       magic u64, world u32, abort u32, abort text's length u32, its claim u32
//	256     abort text
//	4096    region table: 512 × {state u32, refs i32, offset i64, bytes i64}
//	24576   channel 0's words, and 256 bytes later channel 1's:
//	        0    barrier: ranks that have arrived u32
//	        64   barrier: generation u32 (the futex word), sleepers u32
//	        128  allocation: entry i64, error number i64
//	32768   a rank's part, world times for channel 0, then for channel 1:
//	        two headers, waiting flag, two mailboxes
//
// Channel 1 is that of a Comm that came from Split. Headers and mailboxes are double: a rank writes those of collective k+2 only
// after the barrier of k+1, which all reach after having read those of k.
const (
	ctlMagic     = 0x676e62636f6d6d31 // "gnbcomm1"
	ctlWorld     = 8
	ctlAbort     = 12
	ctlAbortLen  = 16
	ctlAbortBusy = 20
	ctlText      = 256
	ctlTextMax   = 2048
	ctlRegions   = 4096
	ctlChannels  = 24576
	ctlRanks     = 32768

	channels    = 2
	channelSize = 256
	chArrived   = 0
	chGen       = 64
	chSleepers  = 68
	chAlloc     = 128

	maxRegions  = 512
	regionEntry = 32

	rankWaiting = 2 * headerSize
	rankMail    = 4096
	mailSize    = 64 << 10
	rankSize    = rankMail + 2*mailSize

	// MaxRanks bounds the ranks of one machine; it keeps the control file small.
	MaxRanks = 1024
)

// Files are the two files without names over which the ranks of a run on one machine exchange data.
// The supervisor makes them, passes both to every worker as inherited descriptors, and uses them to
// abort waits and to find the ranks that wait.
type Files struct {
	// Control and Data are close-on-exec; a child gets them by ExtraFiles.
	Control, Data *os.File
	world         int
	ctl           []byte
}

// NewShared makes the files of a run of world ranks: about 264 KiB per rank, which take memory only
// when used.
func NewShared(world int) (*Files, error) {
	if world < 1 || world > MaxRanks {
		return nil, fmt.Errorf("collective: a run on one machine cannot have %d ranks; choose 1 to %d", world, MaxRanks)
	}
	f := &Files{world: world}
	var err error
	if f.Control, err = memfd("gnb-control"); err != nil {
		return nil, err
	}
	if f.Data, err = memfd("gnb-data"); err != nil {
		return nil, fail(err, f.Close())
	}
	if err := f.Control.Truncate(controlSize(world)); err != nil {
		return nil, fail(fmt.Errorf("collective: sizing the control file: %w", err), f.Close())
	}
	if f.ctl, err = mapFile(f.Control, 0, controlSize(world)); err != nil {
		return nil, fail(err, f.Close())
	}
	*(*uint64)(unsafe.Pointer(&f.ctl[0])) = ctlMagic
	atomic.StoreUint32(word(f.ctl, ctlWorld), uint32(world))
	return f, nil
}

// fail keeps the first error; the one of cleaning up after it adds nothing.
func fail(err, _ error) error { return err }

func controlSize(world int) int64 { return ctlRanks + channels*int64(world)*rankSize }

// Abort ends every current and later wait of every rank, with an error that matches [ErrAborted]
// and contains reason. The first reason is kept.
func (f *Files) Abort(reason string) { abort(f.ctl, reason) }

// Waiting reports whether rank waits in a collective for the others, and at which site.
func (f *Files) Waiting(rank int) (Site, bool) {
	for ch := range channels {
		if s, ok := waiting(f.ctl, f.world, ch, rank); ok {
			return s, true
		}
	}
	return Site{}, false
}

// waiting reports the site at which rank waits in a channel.
func waiting(ctl []byte, world, channel, rank int) (Site, bool) {
	base := rankBase(world, channel, rank)
	flag := word(ctl, base+rankWaiting)
	v := atomic.LoadUint32(flag)
	if v == 0 {
		return Site{}, false
	}
	s := readHeader(headerAt(ctl, base, int(v-1)&1)).site
	return s, atomic.LoadUint32(flag) == v
}

// Close unmaps and closes the supervisor's side; ranks keep theirs.
func (f *Files) Close() error {
	var first error
	if f.ctl != nil {
		first = unix.Munmap(f.ctl)
		f.ctl = nil
	}
	for _, file := range []*os.File{f.Control, f.Data} {
		if file == nil {
			continue
		}
		if err := file.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func abort(ctl []byte, reason string) {
	if !atomic.CompareAndSwapUint32(word(ctl, ctlAbortBusy), 0, 1) {
		return
	}
	if len(reason) > ctlTextMax {
		reason = reason[:ctlTextMax]
	}
	copy(ctl[ctlText:], reason)
	atomic.StoreUint32(word(ctl, ctlAbortLen), uint32(len(reason)))
	atomic.StoreUint32(word(ctl, ctlAbort), 1)
	for ch := range channels {
		futexWake(word(ctl, channelBase(ch)+chGen))
	}
}

func abortText(ctl []byte) string {
	n := min(atomic.LoadUint32(word(ctl, ctlAbortLen)), ctlTextMax)
	return string(ctl[ctlText : ctlText+int(n)])
}

func memfd(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("collective: making a shared memory file (memfd_create): %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mapFile maps bytes of a file, shared. Fd is not used: it would make the
// descriptor blocking.
func mapFile(f *os.File, offset, size int64) ([]byte, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("collective: mapping %s: %w", f.Name(), err)
	}
	var mem []byte
	var mapErr error
	if err := raw.Control(func(fd uintptr) {
		mem, mapErr = unix.Mmap(int(fd), offset, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}); err != nil {
		return nil, fmt.Errorf("collective: mapping %s: %w", f.Name(), err)
	}
	if mapErr != nil {
		return nil, fmt.Errorf("collective: mapping %d bytes of shared memory: %w; there may be too little address space or memory", size, mapErr)
	}
	return mem, nil
}

func word(mem []byte, off int) *uint32 { return (*uint32)(unsafe.Pointer(&mem[off])) }
func long(mem []byte, off int) *int64  { return (*int64)(unsafe.Pointer(&mem[off])) }

func channelBase(channel int) int { return ctlChannels + channel*channelSize }

func rankBase(world, channel, rank int) int { return ctlRanks + (channel*world+rank)*rankSize }

// futexWait sleeps while *addr is val, until woken or for at most timeout. The futex is shared
// between processes, so not FUTEX_PRIVATE. The caller reads the word after every return, so the
// result is ignored.
func futexWait(addr *uint32, val uint32, timeout time.Duration) {
	ts := unix.NsecToTimespec(int64(timeout))
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), 0, /* FUTEX_WAIT */
		uintptr(val), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(addr *uint32) {
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), 1, /* FUTEX_WAKE */
		uintptr(1<<30), 0, 0, 0)
}
