// Package cli is what the commands of the command line share: their flags, their output as text or JSON lines, progress,
// errors and exit statuses.
package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Exit statuses of every command.
const (
	StatusOK     = 0
	StatusFailed = 1
	StatusUsage  = 2
)

// Command is one word after "gnb". Run gets the words after its name and writes through out; it
// starts by making its flags with [Output.Flags] and parsing them with [Output.Parse]. The error it returns
// becomes a one-line reason and exit status 1, or 2 when [Usagef] or a flag made it.
type Command struct {
	Program       string // "" for gnb
	Name, Summary string
	Run           func(ctx context.Context, args []string, out *Output) error
}

// words are the command as it is typed.
func (c Command) words() string { return cmp.Or(c.Program, "gnb") + " " + c.Name }

// Run runs c and turns its error into a message and an exit status.
func Run(ctx context.Context, c Command, args []string, stdout, stderr io.Writer) int {
	out := newOutput(c, args, stdout, stderr)
	err := c.Run(ctx, args, out)
	if err == nil {
		err = out.err
	}
	var status ExitStatus
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return StatusOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		out.Fail(err)
		fmt.Fprintf(stderr, "\"%s --help\" explains its flags\n", c.words())
		return StatusUsage
	case errors.Is(err, context.Canceled): // by ctx, or by code that handles ^C itself and may see it first
		out.Fail(errors.New("interrupted"))
		return multigpu.ExitStatus(err, true)
	}
	out.Fail(err)
	return multigpu.ExitStatus(err, errors.Is(err, gnb.ErrInterrupted))
}

// OneLine is err's message without line breaks.
func OneLine(err error) string { return phrase.Sentence(err.Error()) }

// UsageError is a command line that makes no sense; the exit status is 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a [UsageError].
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ExitStatus ends the command with this status and without a message, because the command has
// already printed one.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
