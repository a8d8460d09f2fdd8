package entry

import (
	"os"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/janpfeifer/gonb/gonbui"
	"golang.org/x/sys/unix"
)

// EndWithKernel ends a notebook's cell, and with it the cell's workers, when its kernel is killed.
// It runs in an initialiser, on the main thread of the process. The signal depends on the parent's
// thread that started this process, so EndWithKernel also checks whether the parent has ended in
// the meantime.
func EndWithKernel() {
	if !gonbui.IsNotebook || envknob.Worker.Get() != "" {
		return
	}
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return // the kernel's supervisor still ends remaining processes
	}
	if os.Getppid() != parent {
		os.Exit(1)
	}
}
