//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package live

import "io"

// termWidth is 0, no terminal: output is plain lines on this system.
func termWidth(io.Writer) int { return 0 }
