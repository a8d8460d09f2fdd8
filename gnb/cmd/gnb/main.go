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
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/onhosts"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/deploy"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

func main() {
	if envknob.Worker.Get() != "" {
		// In a worker process of a run, parsing the library's flag runs the worker and does not
		// return, so that no command runs in a worker.
		flag.Parse()
	}
	if ends, err := ranks.Enter(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, cli.OneLine(err))
		os.Exit(cli.StatusFailed)
	} else if ends {
		os.Exit(cli.StatusOK)
	}
	app, err := deploy.Self()
	if err != nil {
		fmt.Fprintln(os.Stderr, cli.OneLine(err))
		os.Exit(cli.StatusFailed)
	}
	if exe, err := os.Executable(); err == nil && envknob.Helper.Get() == "" {
		_ = os.Setenv(envknob.Helper.Name, exe) // a run's panel reads GPUs with this program instead of the gnb on PATH
	}
	ctx, stop := signal.NotifyContext(context.Background(), append(multigpu.Interrupts(), syscall.SIGTERM)...)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	var status int
	if app != nil {
		status = dispatchApp(ctx, app, os.Args[1:], os.Stdout, os.Stderr)
	} else {
		status = dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	multigpu.Leave(status)
	os.Exit(status)
}

// dispatch runs the command that args names and returns the exit status.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printUsage(stderr)
		return cli.StatusUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[0] == "help" {
			return dispatch(ctx, []string{args[1], "--help"}, stdout, stderr)
		}
		printUsage(stdout)
		return cli.StatusOK
	}
	if args[0] == "-version" || args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	for _, c := range append(commands(), onhosts.Serve) {
		if c.Name == args[0] {
			return cli.Run(ctx, c, args[1:], stdout, stderr)
		}
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.Name)
	}
	near := ""
	if n := phrase.Nearest(args[0], names); n != "" {
		near = "is it " + n + "? "
	}
	fmt.Fprintf(stderr, "gnb: there is no command %q; %s\"gnb help\" lists what there is\n", args[0], near)
	return cli.StatusUsage
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, "usage: gnb COMMAND [flags] [arguments]\n\ncommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.Name, c.Summary)
	}
	fmt.Fprint(w, "\n\"gnb COMMAND --help\" explains one; every command takes --json.\n")
}
