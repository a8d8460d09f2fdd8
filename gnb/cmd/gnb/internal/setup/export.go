package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/export"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Export is "gnb export".
var Export = cli.Command{Name: "export", Summary: "make a program of a notebook's cell, for a cluster", Run: runExport}

const exportHelp = `
Writes a Go program with the statements of one cell (behind its line %%), and with what this cell and the
cells before it declare, and builds it. Under Slurm, mpirun, torchrun or Kubernetes the program takes its
rank from the launcher, as "gnb train" does; started alone, it starts its own workers. The cell is the last
one that runs statements, or code cell --cell, counted from the top. Commands of the notebook (lines that
begin with ! or %) are left out, and named.

The program is a module of its own that uses the library that cells use. For MPI build it again with
-tags mpi (docs/cluster.md). --out must not exist yet.`

// programName returns the name of a notebook's program and module: its file's, with - for what a module's name cannot have.
func programName(notebook string) string {
	words := strings.FieldsFunc(strings.TrimSuffix(filepath.Base(notebook), ".ipynb"), func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-", c)
	})
	return cmp.Or(strings.Trim(strings.Join(words, "-"), ".-"), "program")
}

func runExport(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("NOTEBOOK", exportHelp)
	cell := fs.Int("cell", 0, "`number` of the code cell (default the last with %%)")
	to := fs.String("out", "", "`directory` to write (default the notebook's name)")
	dev := fs.String("dev", "", "checkout `directory` of the library (default that of cells)")
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	name := programName(rest[0])
	if *to == "" {
		*to = name
	}
	if info, err := os.Stat(rest[0]); err == nil && info.IsDir() {
		return cli.Usagef("%s is a directory, and this command takes a notebook; gnb export-model exports a run", rest[0])
	}
	raw, err := os.ReadFile(rest[0])
	if err != nil {
		return err
	}
	p, err := export.Of(raw, *cell)
	if err != nil {
		return fmt.Errorf("%s: %w", rest[0], err)
	}
	if *dev == "" {
		if *dev, err = libraryDir(ctx); err != nil {
			return err
		}
	}
	if *dev, err = filepath.Abs(*dev); err != nil {
		return err
	}
	if err := isModule(*dev); err != nil {
		return err
	}
	if _, err := os.Lstat(*to); err == nil {
		return fmt.Errorf("%s exists already; remove it, or write elsewhere with --out", *to)
	}
	if err := os.Mkdir(*to, 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"main.go": fmt.Sprintf("// Command %s is code cell %d of %s, written by gnb export.\n%s", name, p.Cell, filepath.Base(rest[0]), p.Source),
		"go.mod":  "module " + name + "\n\ngo 1.26.0\n",
		"go.work": fmt.Sprintf("go 1.26.0\n\nuse (\n\t.\n\t%q\n)\n", filepath.ToSlash(*dev)),
	} {
		if err := os.WriteFile(filepath.Join(*to, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := buildExported(ctx, *to, name); err != nil {
		return err
	}
	for _, l := range p.Left {
		out.Logf("left out: %s", l)
	}
	file := filepath.Join(*to, kernel.ExeName(name))
	out.Printf("code cell %d of %s is the program %s; its source is %s\n", p.Cell, rest[0], file, filepath.Join(*to, "main.go"))
	out.Result(struct {
		Program string   `json:"program"`
		Source  string   `json:"source"`
		Cell    int      `json:"cell"`
		Left    []string `json:"left_out"`
	}{file, filepath.Join(*to, "main.go"), p.Cell, p.Left})
	return nil
}

// buildExported adds the imports that cells leave to the kernel, and builds the program.
func buildExported(ctx context.Context, dir, name string) error {
	imports, err := goimports()
	if err != nil {
		return err
	}
	settings, err := kernel.GoSettings(ctx, os.Environ())
	if err != nil {
		return err
	}
	for _, args := range [][]string{{imports, "-w", "main.go"}, {"go", "build", "-o", kernel.ExeName(name), "."}} {
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOWORK=", "GOFLAGS="+kernel.CellFlags(settings.GOFLAGS))
		text, err := c.CombinedOutput()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			return fmt.Errorf("%s does not compile as a program of its own: %w: %s", filepath.Join(dir, "main.go"), err, phrase.Clean(strings.Join(lines[:min(len(lines), 8)], "; ")))
		}
	}
	return nil
}

// libraryDir returns the directory of the library: that of this program, or else that of the kernel's cells.
func libraryDir(ctx context.Context) (string, error) {
	dir, err := moduleDir(ctx)
	if err == nil {
		return dir, nil
	}
	for _, jupyter := range jupyterDirs("") {
		spec, failed := readSpec(filepath.Join(jupyter, "kernels", cmp.Or(envknob.Kernel.Get(), kernelName), "kernel.json"))
		if dir := spec.Metadata[moduleKey]; failed == nil && dir != "" {
			return dir, nil
		}
	}
	return "", err
}

// goimports finds the program that adds imports: the kernel's, beside which this program may be, or one on PATH.
func goimports() (string, error) {
	name := kernel.ExeName("goimports")
	for _, jupyter := range jupyterDirs("") {
		if file := filepath.Join(kernel.ToolsDir(jupyter), name); kernel.IsFile(file) {
			return file, nil
		}
	}
	if file, err := exec.LookPath(name); err == nil {
		return file, nil
	}
	return "", errors.New("goimports, which adds the imports that cells leave out, was not found; gnb install builds it, or go install golang.org/x/tools/cmd/goimports@latest")
}
