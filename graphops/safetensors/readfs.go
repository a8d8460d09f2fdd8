package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ReadFS is [ReadFile] for a file of a file system, whose content it checks in the same way.
func ReadFS(fsys fs.FS, name string) (tensors []Tensor, meta map[string]string, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	r, ok := f.(io.ReaderAt)
	size := info.Size()
	if !ok {
		all, err := io.ReadAll(f)
		if err != nil {
			return nil, nil, fmt.Errorf("safetensors: %w", err)
		}
		r, size = bytes.NewReader(all), int64(len(all))
	}
	return readChecked(r, size, name)
}

// readChecked reads a file and compares its checksum; path is its name in errors.
func readChecked(r io.ReaderAt, size int64, path string) (tensors []Tensor, meta map[string]string, err error) {
	if tensors, meta, err = Read(r, size); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := verify(r, tensors, meta); err != nil {
		return tensors, meta, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	return tensors, meta, nil
}
