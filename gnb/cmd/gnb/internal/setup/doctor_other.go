//go:build !linux

package setup

import (
	"context"
	"runtime"
)

func checkMemory(context.Context, patient) check {
	return good("not checked on %s", runtime.GOOS)
}

func checkSharedMemory(context.Context, patient) check {
	return good("not used on %s: training runs one worker in the process itself", runtime.GOOS)
}

func checkDisk(_ context.Context, p patient) check {
	for _, place := range p.places {
		if _, err := place.existing(); err != nil {
			return bad("set "+place.env+" to a directory", "%s cannot go to %s: %v", place.what, place.dir, err)
		}
	}
	return good("free space not checked on %s", runtime.GOOS)
}
