package multigpu

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interrupts are the signals that interrupt a run: SIGINT, as ^C and the ■ of a notebook send it,
// and SIGHUP, as a terminal sends it that is closed. One that the process was started to ignore,
// as nohup does with SIGHUP, is left ignored.
func Interrupts() []os.Signal {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// Interruptible is ctx until one of [Interrupts] comes, or the function that it returns is called.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := Interrupts()
	if len(signals) == 0 { // Notify would take none for all
		return ctx, cancel
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		select {
		case s := <-came:
			if s == syscall.SIGHUP {
				// What showed the output has ended too: writing to it is to fail, and not to
				// end this process before the checkpoint is written.
				signal.Ignore(syscall.SIGPIPE)
			}
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel()
	}
}
