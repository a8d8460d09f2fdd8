package convert

import "github.com/graphnb/graphnb/internal/tabular"

// source is the input of a conversion: a file, or a folder with the files of one dataset.
type source struct{ *tabular.Source }

// newSource inspects path; of a file it reads only the beginning.
func newSource(path string, m *tabular.Meter) (*source, error) {
	s, err := tabular.Inspect(path, m)
	if err != nil {
		return nil, err
	}
	return &source{s}, nil
}

// fileSource returns the source of a file that an option names.
func fileSource(path string, m *tabular.Meter) *source { return &source{tabular.Single(path, m)} }
