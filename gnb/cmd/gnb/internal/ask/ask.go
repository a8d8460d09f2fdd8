// Package ask runs programs that answer on their standard output and end.
package ask

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// lingers is how long the output of a program that has ended, or was ended, is waited for:
// a process that it left behind may keep it open.
const lingers = 2 * time.Second

// Run runs a program that answers on its standard output and ends. It returns by ctx's
// end, whatever the program has started.
func Run(ctx context.Context, name string, args ...string) (answer []byte, err error) {
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = lingers
	answer, err = c.Output()
	switch {
	case errors.Is(err, exec.ErrWaitDelay): // it has ended well, and said what it has to say
		return answer, nil
	case err != nil && ctx.Err() != nil:
		return answer, fmt.Errorf("it does not answer: %w", ctx.Err())
	}
	return answer, err
}
