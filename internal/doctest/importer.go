package doctest

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/archtest"
)

// Importer provides the compiled packages that pages may import: those of Packages and of paths. It
// builds packages that are not in the build cache. dir is a directory of the module.
func Importer(dir string, paths ...string) (types.Importer, error) {
	args := []string{"-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	args = append(args, slices.Sorted(maps.Values(Packages))...)
	out, err := archtest.GoList(dir, append(args, paths...)...)
	if err != nil {
		return nil, fmt.Errorf("doctest: %w", err)
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
