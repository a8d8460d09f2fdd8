//go:build amd64 && !linux

package gemm

// permitAMX is false where nothing is known of the system's way to allow AMX.
func permitAMX() bool { return false }
