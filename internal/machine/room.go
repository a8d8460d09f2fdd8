package machine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/graphnb/graphnb/internal/phrase"
)

// RoomError reports that something needs more memory than is available.
type RoomError struct {
	What string  // "the weights of model \"sage\""
	Need float64 // bytes
	Memory
}

func (e *RoomError) Error() string {
	need := fmt.Sprintf("%.3g bytes", e.Need)
	if e.Need < math.MaxInt64/2 {
		need = phrase.Bytes(int64(e.Need))
	}
	of := "this machine's"
	if e.Limit > 0 {
		of = "the control group's"
	}
	return fmt.Sprintf("%s would take %s of memory, and %s of %s %s are free", e.What, need, phrase.Bytes(e.Free), of, phrase.Bytes(e.Total))
}

// MaxThreads returns the largest number of threads for a process: more than eight per core, or 256,
// only compete for time, and starting a million takes minutes.
func MaxThreads() int { return max(256, 8*runtime.NumCPU()) }

// smallNeed is the size below which Room does not check: the check costs more than the allocation.
const smallNeed = 64 << 20

// Room returns a [*RoomError] if something needs more memory, in bytes, than is available without
// swapping and within the limits of control groups. Callers check before allocating, because the
// kernel would end a process that exceeds the limit. bytes is a float64 because a size computed
// from options may overflow integers. If the system does not report its memory, Room returns nil.
func Room(what string, bytes float64) error {
	if bytes < smallNeed {
		return nil
	}
	m, err := ReadMemory()
	if err != nil {
		return nil // systems other than Linux
	}
	return m.room(what, bytes)
}

func (m Memory) room(what string, bytes float64) error {
	if bytes <= float64(m.Free) {
		return nil
	}
	return &RoomError{What: what, Need: bytes, Memory: m}
}
