//go:build amd64 && !linux

package gemm

// permitAMX returns false: no way to request AMX is known on this system.
func permitAMX() bool { return false }
