package dataset

import (
	"io/fs"
	"syscall"
)

// changeTime is when a file's content, name or mode was last changed, in ns: no
// program can set it. 0 where it is not known.
func changeTime(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ctim.Nano()
	}
	return 0
}
