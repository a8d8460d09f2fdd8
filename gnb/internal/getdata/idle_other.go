//go:build !linux

package getdata

// idle does nothing: other systems have no idle priority for one thread.
func idle() {}
