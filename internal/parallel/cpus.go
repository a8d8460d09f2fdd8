package parallel

import (
	"runtime"
	"sync"
)

// CPUs returns the number of processors that this process may use: those of its affinity, or fewer if a control group has a
// quota (as in Kubernetes and in containers), as Go counts them for GOMAXPROCS. The environment variable GOMAXPROCS, and a
// call of runtime.GOMAXPROCS, do not change it: they say how many threads one process runs, and a machine may have several.
var CPUs = sync.OnceValue(func() int {
	set := runtime.GOMAXPROCS(0)
	runtime.SetDefaultGOMAXPROCS()
	n := runtime.GOMAXPROCS(0)
	if n != set { // the environment or the program has set another number
		runtime.GOMAXPROCS(set)
	}
	return n
})
