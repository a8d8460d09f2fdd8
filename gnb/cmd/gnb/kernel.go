package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
)

var kernelCommand = cli.Command{Name: "kernel", Summary: "run a notebook kernel (Jupyter starts it)", Run: runKernel}

const kernelHelp = `
Jupyter starts this command for each notebook, as the kernelspec of "gnb install" says. It runs the
GoNB program GONB in a temporary directory. When the kernel ends or is killed, the command ends every
process that the kernel started (cells, workers, and what cells started) and removes the directory.`

// runKernel runs "gnb kernel [--go-bin DIR] GONB ARGS…", or as the guard of a kernel "gnb kernel
// --guard DIR".
func runKernel(ctx context.Context, args []string, out *cli.Output) error {
	flags := out.Flags("GONB [arguments]", kernelHelp)
	goBin := flags.String("go-bin", "", "`directory` of the go command, used when PATH has none")
	guard := flags.String("guard", "", "clean up after the kernel with this `directory` once standard input ends")
	help := flags.Usage
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil { // not out.parse: what follows GONB belongs to it
		if errors.Is(err, flag.ErrHelp) {
			help()
			return err
		}
		return &cli.UsageError{Err: err}
	}
	if *guard != "" {
		if !kernel.IsDir(*guard) {
			return cli.Usagef("--guard %s: not a kernel's directory", *guard)
		}
		return kernel.Guard(*guard)
	}
	if flags.NArg() == 0 {
		return cli.Usagef("the GoNB program to run is missing")
	}
	if _, err := exec.LookPath("go"); err != nil && *goBin != "" {
		if err := os.Setenv("PATH", os.Getenv("PATH")+string(os.PathListSeparator)+*goBin); err != nil {
			return err
		}
	}
	settings, err := kernel.GoSettings(ctx, os.Environ())
	if err != nil {
		return err
	}
	kernel.SweepDirs(os.TempDir())
	dir, release, err := kernel.NewDir(os.TempDir())
	if err != nil {
		return err
	}
	defer release()
	status, err := kernel.Supervise(flags.Args(), kernel.Env(os.Environ(), settings, filepath.Dir(flags.Arg(0)), dir), dir)
	if err != nil {
		return err
	}
	if status != 0 {
		return cli.ExitStatus(status)
	}
	return nil
}
