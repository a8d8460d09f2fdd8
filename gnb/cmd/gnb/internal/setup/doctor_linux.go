package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/machine"
)

const gib = 1 << 30

func checkMemory(context.Context, patient) check {
	m, err := machine.ReadMemory()
	if err != nil {
		return bad("mount /proc, and use Linux 3.14 or newer", "%v", err)
	}
	detail := phrase.Bytes(m.Free) + " free"
	if m.Limit > 0 {
		detail += fmt.Sprintf(" of this container's %.1f", float64(m.Limit)/gib)
	}
	if m.Free < gib {
		return bad("end other programs, or raise the container's memory limit", "%s; compiling a cell and training a small set take about 1 GiB", detail)
	}
	return good("%s", detail)
}

// checkSharedMemory makes the kind of memory that workers share, and writes a page of it.
func checkSharedMemory(context.Context, patient) check {
	const fix = "use Linux 3.17 or newer, and a container whose seccomp profile allows memfd_create; --workers 1 needs neither"
	fd, err := unix.MemfdCreate("gnb-doctor", unix.MFD_CLOEXEC)
	if err != nil {
		return bad(fix, "memfd_create: %v; workers share memory through it", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 1<<20); err != nil {
		return bad(fix, "growing a memfd: %v", err)
	}
	m, err := unix.Mmap(fd, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return bad(fix, "mapping a memfd: %v", err)
	}
	m[0] = 1
	if err := unix.Munmap(m); err != nil {
		return bad(fix, "unmapping a memfd: %v", err)
	}
	slots, _ := machine.GPUSlots() // no GPUs and an unknown number need the same
	var shm unix.Statfs_t
	err = unix.Statfs("/dev/shm", &shm)
	return judgeShm(len(slots), int64(shm.Blocks)*shm.Bsize, err)
}

// ncclShm is the size of /dev/shm that NVIDIA's guide to NCCL recommends; Docker's default is 64
// MiB.
const ncclShm = gib

// judgeShm returns the finding on the size of /dev/shm, or on the error of reading it. Only NCCL
// uses it, between ranks whose GPUs cannot access each other's memory.
func judgeShm(gpus int, size int64, err error) check {
	const fix = "start the container with --shm-size=1g (Docker, Podman) or mount an emptyDir of medium Memory there (Kubernetes); else mount -o remount,size=1g /dev/shm"
	switch {
	case gpus < 2:
		return good("memfd works; nothing here needs /dev/shm")
	case err != nil:
		return bad(fix, "/dev/shm: %v; NCCL shares memory through it", err)
	case size < ncclShm:
		return bad(fix, "/dev/shm has %s; NCCL shares memory through it, and its guide asks for 1 GiB", phrase.Bytes(size))
	}
	return good("memfd works; /dev/shm has %s", phrase.Bytes(size))
}

func checkDisk(_ context.Context, p patient) check { return judgeDisks(p.places, freeOn) }

// freeOn returns the number of free bytes on a directory's disk.
func freeOn(dir string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return int64(s.Bavail) * s.Bsize, err
}

// judgeDisks returns the finding on the disks of places; room returns the free bytes of a
// directory's disk.
func judgeDisks(places []place, room func(dir string) (int64, error)) check {
	var details []string
	for _, place := range places {
		dir, err := place.existing()
		if err == nil {
			err = unix.Access(dir, unix.W_OK|unix.X_OK)
		}
		var free int64
		if err == nil {
			free, err = room(dir)
		}
		if err != nil {
			return bad("set "+place.env+" to a directory that can be written to", "%s cannot go to %s: %v", place.what, place.dir, err)
		}
		if free < gib {
			return bad("free some space, or set "+place.env+" to a directory on a larger disk", "%s go to %s, which has %s left; checkpoints and compiled cells need 1 GiB", place.what, place.dir, phrase.Bytes(free))
		}
		details = append(details, fmt.Sprintf("%s free for %s in %s", phrase.Bytes(free), place.what, place.dir))
	}
	return good("%s", strings.Join(details, ", "))
}
