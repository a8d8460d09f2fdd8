package getdata

import "golang.org/x/sys/unix"

// idle lets the calling thread run and read only while nothing else wants to. Where a container forbids that, the
// thread keeps its priority.
func idle() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	const whoProcess, classIdle = 1, 3 << 13 // of ioprio_set(2); process 0 is the calling thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, classIdle)
}
