//go:build !linux

package relink

import (
	"io/fs"
	"time"
)

// canTell says whether a file's identity changes whenever the file does. Here it may not.
const canTell = false

func identityOf(info fs.FileInfo) string { return info.ModTime().String() }

func changed(info fs.FileInfo) time.Time { return info.ModTime() }
