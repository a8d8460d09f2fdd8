package relink

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// canTell says whether a file's identity changes whenever the file does.
const canTell = true

// identityOf returns a file's size, inode and times. The kernel sets the second time, which no program can set back.
func identityOf(info fs.FileInfo) string {
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%o %d %d %d.%d %d.%d", s.Mode, s.Size, s.Ino, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec)
}

// changed returns the later of a file's times.
func changed(info fs.FileInfo) time.Time {
	s := info.Sys().(*syscall.Stat_t)
	if at := time.Unix(s.Ctim.Unix()); at.After(info.ModTime()) {
		return at
	}
	return info.ModTime()
}
