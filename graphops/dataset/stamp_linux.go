package dataset

import (
	"io/fs"
	"syscall"
)

// changeTime returns when a file's content, name or mode last changed, in ns, or 0 if unknown.
// Unlike the modification time, no program can set it.
func changeTime(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ctim.Nano()
	}
	return 0
}
