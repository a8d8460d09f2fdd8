package convert

import "github.com/graphnb/graphnb/graphops/dataset/convert/input"

// Source is the input of a conversion: a file, or a folder with the files of one dataset.
type Source struct{ *input.Source }

// newSource inspects path; of a file it reads only the beginning.
func newSource(path string, m *input.Meter) (*Source, error) {
	s, err := input.Inspect(path, m)
	if err != nil {
		return nil, err
	}
	return &Source{s}, nil
}

// fileSource returns the source of a file that an option names.
func fileSource(path string, m *input.Meter) *Source { return &Source{input.Single(path, m)} }
