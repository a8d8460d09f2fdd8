//go:build !linux

package main

import (
	"context"
	"os"
	"runtime"
)

func checkMemory(context.Context, patient) check {
	return good("not looked at on %s", runtime.GOOS)
}

func checkSharedMemory(context.Context, patient) check {
	return good("not used on %s: training runs one worker in the process itself", runtime.GOOS)
}

func checkDisk(_ context.Context, p patient) check {
	for _, dir := range []string{p.data, os.TempDir()} {
		if _, err := os.Stat(dir); err != nil {
			return bad("make it, or set GNB_DATA or TMPDIR to a directory that exists", "%v", err)
		}
	}
	return good("free space not looked at on %s", runtime.GOOS)
}
