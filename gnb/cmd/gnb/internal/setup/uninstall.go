package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
)

// Uninstall is "gnb uninstall".
var Uninstall = cli.Command{Name: "uninstall", Summary: "remove what \"gnb install\" put there", Run: uninstall}

const uninstallHelp = `
Removes GraphNB's kernels, or with --name one of them. The programs that "gnb install" built go with
the last kernel. Other kernels, JupyterLab, notebooks, runs and datasets stay. A running kernel
continues until it is shut down. If no kernel of GraphNB is installed, the command says so.`

func uninstall(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("", uninstallHelp)
	prefix := fs.String("prefix", "", "Python `prefix` of the kernel (default the active environment)")
	user := fs.Bool("user", false, "remove it from the user's Jupyter directory")
	name := fs.String("name", "", "`name` of the kernelspec to remove (default all GraphNB kernels)")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	jupyter, err := jupyterDir(*prefix, *user)
	if err != nil {
		return err
	}
	ours, err := ourKernels(jupyter)
	if err != nil {
		return err
	}
	var removed []string
	for _, k := range ours {
		if *name != "" && k.name != *name {
			continue
		}
		if err := removeWheels(ctx, k.spec, out); err != nil {
			return err
		}
		if err := os.Remove(k.file); err != nil {
			return fmt.Errorf("removing the kernel: %w", err)
		}
		removeEmpty(filepath.Dir(k.file)) // kept if it holds other files, such as a logo
		out.Printf("removed the kernel %q, %s\n", k.spec.DisplayName, k.file)
		removed = append(removed, k.file)
	}
	if *name != "" && len(removed) == 0 {
		if file := filepath.Join(jupyter, "kernels", *name, "kernel.json"); kernel.IsFile(file) {
			return fmt.Errorf("%s is not a kernel of GraphNB and is left unchanged", file)
		}
	}
	if len(removed) == len(ours) {
		tools := filepath.Dir(kernel.ToolsDir(jupyter))
		if _, err := os.Stat(tools); err == nil {
			if err := os.RemoveAll(tools); err != nil {
				return fmt.Errorf("removing the kernel's programs: %w", err)
			}
			out.Printf("removed %s\n", tools)
			removed = append(removed, tools)
		}
		removeEmpty(filepath.Join(jupyter, "kernels"))
		removeEmpty(jupyter)
	}
	switch {
	case len(removed) > 0:
	case len(ours) > 0:
		out.Printf("there is no kernel %q in %s\n", *name, jupyter)
	default:
		out.Printf("GraphNB has installed nothing in %s\n", jupyter)
	}
	out.Result(struct {
		Removed []string `json:"removed"`
	}{append([]string{}, removed...)})
	return nil
}

// ourKernel is a kernelspec that install wrote.
type ourKernel struct {
	name, file string
	spec       kernelSpec
}

// ourKernels returns the kernelspecs that install wrote below a Jupyter data directory.
func ourKernels(jupyter string) ([]ourKernel, error) {
	entries, err := os.ReadDir(filepath.Join(jupyter, "kernels"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("looking for kernels: %w", err)
	}
	var ours []ourKernel
	for _, e := range entries {
		file := filepath.Join(jupyter, "kernels", e.Name(), "kernel.json")
		// Skip a kernelspec that cannot be read: install may not have written it.
		if spec, err := readSpec(file); err == nil && spec.Metadata[moduleKey] != "" {
			ours = append(ours, ourKernel{e.Name(), file, spec})
		}
	}
	return ours, nil
}

// removeEmpty removes dir if it is empty; install makes it again.
func removeEmpty(dir string) { _ = os.Remove(dir) }

// removeWheels uninstalls the wheels that "gnb install --cuda --wheels" installed with pip.
func removeWheels(ctx context.Context, spec kernelSpec, out *cli.Output) error {
	wheels, prefix := strings.Fields(spec.Metadata[wheelsKey]), spec.Metadata[prefixKey]
	python := filepath.Join(prefix, "bin", "python3")
	if len(wheels) == 0 || !kernel.IsFile(python) {
		return nil
	}
	c := exec.CommandContext(ctx, python, slices.Concat([]string{"-m", "pip", "uninstall", "--yes"}, wheels)...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("removing %s by pip: %w", strings.Join(wheels, " "), err)
	}
	out.Printf("removed %s from %s\n", strings.Join(wheels, ", "), prefix)
	return nil
}
