package doctest

import (
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Importer gives the compiled packages that pages may import: those of Packages and what paths adds.
// It builds them where the build cache has them not. dir is a directory of the module.
func Importer(dir string, paths ...string) (types.Importer, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	args = append(args, slices.Sorted(maps.Values(Packages))...)
	c := exec.Command("go", append(args, paths...)...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("doctest: go list -export: %w", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			files[path] = file
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("there is no compiled package %s; pages may import the standard library and this module", path)
		}
		return os.Open(file)
	}), nil
}
