//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package live

import "io"

// termWidth is 0, no terminal: output is plain lines on this system.
func termWidth(io.Writer) int { return 0 }

// termSize is termWidth and the number of rows.
func termSize(io.Writer) (cols, rows int) { return 0, 0 }
