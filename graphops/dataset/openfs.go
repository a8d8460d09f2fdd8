package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"unsafe"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// OpenFS opens the files of a dataset directory in a file system, such as a section of another file. A file with the method
// Bytes() []byte is not copied: its bytes must stay until the dataset is not used any more, and begin at a multiple of 64. Other
// files are read into memory. name is the name of fsys in errors.
//
// Unlike [Open] it compares no digests, and the dataset has no [Dataset.Dir].
func OpenFS(fsys fs.FS, name string) (*Dataset, error) {
	var d *Dataset
	err := mapped.Guard(func() (err error) {
		d, err = load(&fileSystem{fsys, name})
		return err
	})
	if err != nil {
		return nil, err
	}
	d.files = fsys
	return d, nil
}

// fileSystem is a source whose sections are files of a file system.
type fileSystem struct {
	fs.FS
	name string
}

func (s *fileSystem) open(name string) ([]byte, string, error) {
	label := filepath.Join(s.name, name)
	f, err := s.Open(name)
	if err != nil {
		return nil, label, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	if m, ok := f.(interface{ Bytes() []byte }); ok {
		if b := m.Bytes(); uintptr(unsafe.Pointer(unsafe.SliceData(b)))%npy.Align == 0 {
			return b, label, nil
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, label, fmt.Errorf("dataset: reading %s: %w", label, err)
	}
	// Words are as aligned as every element type needs.
	words := make([]int64, (len(b)+7)/8)
	data := rawBytes(words)[:len(b)]
	copy(data, b)
	return data, label, nil
}

// OpenFile opens a further file of the dataset's directory, such as [NamesFile]; of a dataset of [OpenFS], one of its file
// system. The error wraps fs.ErrNotExist if there is none, and for a dataset in memory.
func (d *Dataset) OpenFile(name string) (fs.File, error) {
	switch {
	case d.dir != "":
		f, err := atomicfile.Open(filepath.Join(d.dir, name))
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		return f, nil
	case d.files != nil:
		f, err := d.files.Open(name)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("dataset: %s is in memory and has no file %s: %w", d.Name(), name, fs.ErrNotExist)
}

// WithoutAnswers returns a view without what a trained network does not read: labels, targets and splits of nodes, of edges and of
// graphs. It keeps the number and the names of classes ([Metadata].Unlabelled). It shares everything else with d,
// which must stay open, and is in memory: [Write] stores it. A divided dataset is an error, because its parts have these.
func (d *Dataset) WithoutAnswers() (*Dataset, error) {
	if d.Meta.Parts != nil || d.Meta.Part != nil || d.Graph == nil {
		return nil, fmt.Errorf("dataset: %s: %w", d.Name(), errors.New("it is divided into parts, which have its features and labels; take the dataset that it was divided from"))
	}
	r := d.WithGraph(d.Graph)
	d.describe(&r.Meta)
	r.Meta.Undirected = d.Meta.Undirected
	m := &r.Meta
	r.Labels, r.MultiLabels, r.Targets, r.Splits = nil, nil, nil, nil
	r.GraphOffsets, r.Graphs, r.EdgeRows, r.EdgeAnswers, r.EdgeSplits, r.Arrays = nil, nil, nil, nil, nil, nil
	m.Unlabelled = m.NumClasses > 0
	m.TargetDim, m.TargetNames, m.Graphs, m.EdgeAnswers, m.KnownAccuracies, m.Notices = 0, nil, nil, nil, nil, nil
	m.OverlappingSplits = false
	return r, nil
}

// Populate reads the files of an opened dataset into memory and maps their pages, until ctx ends, so that the first reads of rows do not wait
// for the disk or for faults. Files with more bytes together than most are left to the system. It returns the number of bytes.
func (d *Dataset) Populate(ctx context.Context, most int64) (bytes int64) {
	d = d.root()
	for _, c := range d.closer {
		m, ok := c.(*mapped.File)
		if !ok {
			continue
		}
		n := int64(len(m.Bytes()))
		if bytes+n > most || !m.Populate(func() bool { return ctx.Err() == nil }) {
			break
		}
		bytes += n
	}
	return bytes
}
