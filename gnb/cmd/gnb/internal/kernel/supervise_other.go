//go:build !linux

package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Supervise runs GoNB and returns its exit status. Only on Linux does it also end processes that a
// cell left running.
func Supervise(argv, env []string, _ string) (int, error) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr, c.Env = os.Stdin, os.Stdout, os.Stderr, env
	if err := c.Start(); err != nil {
		return 0, fmt.Errorf("starting GoNB: %w; \"gnb install\" builds it again", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = c.Process.Signal(s) // GoNB may just have ended
		case <-ended:
			return max(c.ProcessState.ExitCode(), 0), nil
		}
	}
}

// Guard works on Linux only.
func Guard(string) error {
	return errors.New("a kernel's guard runs on Linux only")
}
