//go:build !unix

package machine

// CPUSeconds is 0: this system's processor time is not read.
func CPUSeconds() float64 { return 0 }
