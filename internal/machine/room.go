package machine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/graphnb/graphnb/internal/units"
)

// RoomError is that something takes more memory than there is.
type RoomError struct {
	What string  // "the weights of model \"sage\""
	Need float64 // bytes
	Memory
}

func (e *RoomError) Error() string {
	need := fmt.Sprintf("%.3g bytes", e.Need)
	if e.Need < math.MaxInt64/2 {
		need = units.Bytes(int64(e.Need))
	}
	of := "this machine's"
	if e.Limit > 0 {
		of = "the control group's"
	}
	return fmt.Sprintf("%s would take %s of memory, and %s of %s %s are free", e.What, need, units.Bytes(e.Free), of, units.Bytes(e.Total))
}

// MaxThreads returns the largest number of threads that a process is given here: beyond eight a core, or 256,
// they only take time from each other, and starting a million takes minutes.
func MaxThreads() int { return max(256, 8*runtime.NumCPU()) }

// smallNeed is what is not asked for: it costs less to take.
const smallNeed = 64 << 20

// Room returns a [*RoomError] where something takes more memory, in bytes, than can be taken without swapping
// and within the limits of control groups: asked before it is taken, which the kernel would end the
// process for. bytes is a float64 because what options come to may be beyond integers. Where the
// system does not say what there is, there is room.
func Room(what string, bytes float64) error {
	if bytes < smallNeed {
		return nil
	}
	m, err := ReadMemory()
	if err != nil {
		return nil // elsewhere than on Linux
	}
	return m.room(what, bytes)
}

func (m Memory) room(what string, bytes float64) error {
	if bytes <= float64(m.Free) {
		return nil
	}
	return &RoomError{What: what, Need: bytes, Memory: m}
}
