package convert

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = planetoidReader{}

// planetoidReader reads the pickles of Planetoid: see planetoid.go.
type planetoidReader struct{}

func (planetoidReader) Name() string { return "planetoid" }

// Folder implements [folderReader].
func (planetoidReader) Folder() bool { return true }

func (planetoidReader) About() string {
	return "a Planetoid folder: ind.NAME.x, .tx, .allx, .y, .ty, .ally, .graph and .test.index"
}

func (planetoidReader) detect(s *source) bool { return len(planetoidNames(s)) > 0 }

// planetoidNames returns the datasets that have at least one file; the reader reports missing
// parts.
func planetoidNames(s *source) []string {
	var names []string
	seen := map[string]bool{}
	for _, ending := range []string{".graph", ".allx", ".x", ".tx", ".ally", ".y", ".ty", ".test.index"} {
		for _, name := range s.prefixes("ind.", ending) {
			if !seen[name] && !strings.Contains(name, ".") {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

func (planetoidReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	name, err := s.choose(planetoidNames(s), o)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, file := range s.Files {
		if strings.HasPrefix(file, "ind."+name+".") {
			s.Meter.Note(filepath.Join(s.Path, file))
		}
	}
	d, err := planetoidRead(s.Path, name)
	return d, prefixed(err)
}

var _ Reader = npzReader{}

// npzReader reads the .npz files of Shchur et al. and of Platonov et al.: see npz.go.
type npzReader struct{}

func (npzReader) Name() string { return "npz" }

func (npzReader) About() string {
	return "a .npz file of the shchur (adj_data, attr_data, …) or the heterophilous (node_features, edges, …) collection"
}

func (npzReader) detect(s *source) bool {
	return !s.Dir && len(s.Head) > 4 && string(s.Head[:2]) == "PK" && (tabular.HasEnding(s.Path, ".npz") || strings.Contains(string(s.Head), ".npy"))
}

func (npzReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.Meter.Note(s.Path)
	d, err := npzRead(s.Path, o.said)
	return d, prefixed(err)
}

// prefixed adds the prefix of this package's errors to err.
func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return tabular.Errorf("%w", err)
}
