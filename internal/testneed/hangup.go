package testneed

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Hangups restores the default action of SIGHUP, ending the process, for the processes that a test
// starts: if the tests run under nohup, the processes would otherwise inherit that SIGHUP is
// ignored.
func Hangups(t testing.TB) {
	if !signal.Ignored(syscall.SIGHUP) {
		return
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP) // a handled signal is reset to its default by exec, an ignored one is not
	t.Cleanup(func() {
		signal.Stop(c)
		signal.Ignore(syscall.SIGHUP)
	})
}
