package entry

import (
	"os"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/janpfeifer/gonb/gonbui"
	"golang.org/x/sys/unix"
)

// EndWithKernel ties a notebook's cell to its kernel: a kernel that is killed
// takes the cell along, and the cell its workers. It runs in an initialiser, on
// the main thread of the process, but the signal follows the thread of the
// parent that started it, so a parent that has gone meanwhile is checked for.
func EndWithKernel() {
	if !gonbui.IsNotebook || envknob.Worker.Get() != "" {
		return
	}
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return // the kernel's own supervisor still ends what is left
	}
	if os.Getppid() != parent {
		os.Exit(1)
	}
}
