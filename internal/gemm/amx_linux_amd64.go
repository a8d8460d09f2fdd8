package gemm

import "syscall"

// permitAMX asks Linux for the right to use AMX's tile registers, for the whole
// process: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
func permitAMX() bool {
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, 0x1023, 18, 0)
	return errno == 0
}
