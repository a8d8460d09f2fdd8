package testneed

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Hangups makes SIGHUP end the processes that a test starts, as it does by default, also where the
// tests run under nohup and the processes would inherit that it is ignored.
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
