// Command gnb is GraphNB from a terminal: it installs and runs the notebook kernel, checks the
// machine, and trains, samples and infers with the same library that a notebook cell imports.
//
//	gnb COMMAND [flags] [arguments]
//
// "gnb help" lists the commands and "gnb COMMAND --help" the flags of one. Flags may stand before,
// between and after the arguments.
//
// Every command takes --json: events as JSON lines on standard output, the last of them
// {"event":"result",…}, or {"event":"error",…} when the command failed; runs compare --follow has
// both when it is interrupted. Progress and logs go to standard error. The exit status is 0, 1
// (failed, with a one-line reason) or 2 (wrong usage); 75 under a launcher after an interrupted run,
// which resumes when it is started again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Exit statuses of every command.
const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

func main() {
	if envknob.Worker.Get() != "" {
		// In a worker process of a run, parsing the library's flag runs the worker and does not
		// return, so that no command runs in a worker.
		flag.Parse()
	}
	if ends, err := ranks.Enter(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, oneLine(err))
		os.Exit(statusFailed)
	} else if ends {
		os.Exit(statusOK)
	}
	if exe, err := os.Executable(); err == nil && envknob.Helper.Get() == "" {
		_ = os.Setenv(envknob.Helper.Name, exe) // a run's panel reads GPUs with this program instead of the gnb on PATH
	}
	ctx, stop := signal.NotifyContext(context.Background(), append(multigpu.Interrupts(), syscall.SIGTERM)...)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	status := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	multigpu.Leave(status)
	os.Exit(status)
}

// dispatch runs the command that args names and returns the exit status.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr)
		return statusUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[0] == "help" {
			return dispatch(ctx, []string{args[1], "--help"}, stdout, stderr)
		}
		printUsage(stdout)
		return statusOK
	}
	if args[0] == "-version" || args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	for _, c := range append(commands(), explainCommand) {
		if c.name == args[0] {
			return runCommand(ctx, c, args[1:], stdout, stderr)
		}
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	near := ""
	if n := phrase.Nearest(args[0], names); n != "" {
		near = "is it " + n + "? "
	}
	fmt.Fprintf(stderr, "gnb: there is no command %q; %s\"gnb help\" lists what there is\n", args[0], near)
	return statusUsage
}

// runCommand runs c and turns its error into a message and an exit status.
func runCommand(ctx context.Context, c command, args []string, stdout, stderr io.Writer) int {
	out := newOutput(c, args, stdout, stderr)
	err := c.run(ctx, args, out)
	if err == nil {
		err = out.err
	}
	var status exitStatus
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		out.fail(err)
		fmt.Fprintf(stderr, "\"gnb %s --help\" explains its flags\n", c.name)
		return statusUsage
	case errors.Is(err, context.Canceled): // by ctx, or by code that handles ^C itself and may see it first
		out.fail(errors.New("interrupted"))
		return multigpu.ExitStatus(true)
	}
	out.fail(err)
	return multigpu.ExitStatus(errors.Is(err, gnb.ErrInterrupted))
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, "usage: gnb COMMAND [flags] [arguments]\n\ncommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n\"gnb COMMAND --help\" explains one; every command takes --json.\n")
}

// oneLine is err's message without line breaks.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
