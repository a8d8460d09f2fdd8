package convert

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/tabular"
)

// write writes the dataset and the files of names as the directory dst.
func write(ctx context.Context, dst string, d *dataset.Dataset, names map[string][]string, o dataset.WriteOptions) error {
	if len(names) == 0 {
		return dataset.WriteWith(ctx, dst, d, o)
	}
	o.Inside = true
	err := atomicfile.BuildDir(dst, func(tmp string) error {
		for file, lines := range names {
			text := strings.Join(lines, "\n") + "\n"
			if err := atomicfile.WriteFile(filepath.Join(tmp, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return dataset.WriteWith(ctx, tmp, d, o)
	})
	if err != nil {
		return tabular.Errorf("writing %s: %w", dst, err)
	}
	return nil
}
