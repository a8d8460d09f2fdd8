// Package ask runs short programs and returns their standard output.
package ask

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// lingers is the timeout for the output of an ended program: a child process that it left running
// may keep the output open.
const lingers = 2 * time.Second

// Run runs a program and returns its standard output. It returns when ctx ends, even if processes
// started by the program continue.
func Run(ctx context.Context, name string, args ...string) (answer []byte, err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = lingers
	answer, err = c.Output()
	switch {
	case errors.Is(err, exec.ErrWaitDelay): // the program succeeded, and its output is complete
		return answer, nil
	case err != nil && ctx.Err() != nil:
		return answer, fmt.Errorf("it does not answer: %w", ctx.Err())
	}
	return answer, err
}
