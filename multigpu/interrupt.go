package multigpu

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interrupts are the signals that interrupt a run: SIGINT, sent by ^C and by ■ in a notebook, and
// SIGHUP, sent by a terminal that closes; under a launcher also SIGTERM, which it sends to end its
// ranks. A signal that the process was started to ignore, such as SIGHUP under nohup, stays ignored.
func Interrupts() []os.Signal {
	var signals []os.Signal
	for _, s := range append([]os.Signal{os.Interrupt, syscall.SIGHUP}, launchedInterrupts()...) {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// Interruptible returns a context that is cancelled when one of [Interrupts] arrives or the
// returned function is called.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := Interrupts()
	if len(signals) == 0 { // Notify without signals would catch all
		return ctx, cancel
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		select {
		case s := <-came:
			if s == syscall.SIGHUP {
				// The terminal has ended too: writing to it must fail, and must not end this
				// process before the checkpoint is written.
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
