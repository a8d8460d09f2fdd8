//go:build !unix

package live

import "time"

// cpuTime is unknown on this system; values computed from it are 0.
func cpuTime() time.Duration { return 0 }
