package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Open maps a dataset directory. It reads only the metadata, the files' headers and the ends of
// indptr, so it takes milliseconds for any size (labels and splits written as int64 are converted,
// in one pass each). All processes that have the directory open share its pages. The files must not
// change until [Dataset.Close]. [Dataset.Check] checks everything else.
//
// Sizes, the metadata and files of at most 1 MiB (until they add up to 4 MiB) are compared with their recorded
// digests; a difference is a [*DigestError]. [Dataset.Check] and [Dataset.Verify] compare all files.
//
// The error names the file and its defect.
func Open(dir string) (*Dataset, error) {
	d, err := openDir(dir)
	if err == nil && d.Meta.Part != nil {
		_ = d.Close()
		return nil, fmt.Errorf("dataset: %s is part %d of a divided dataset, and its node ids are local: open the directory above it, %s", dir, d.Meta.Part.Index, filepath.Dir(filepath.Clean(dir)))
	}
	return d, err
}

func openDir(dir string) (*Dataset, error) { return openAs(dir, false) }

// openAs opens a directory; lax says that files need not have their recorded digests.
func openAs(dir string, lax bool) (*Dataset, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("dataset: %s is a file; a dataset is a directory that contains metadata.json", dir)
	}
	src := &directory{dir: abs, lax: lax}
	var d *Dataset
	err = mapped.Guard(func() (err error) {
		if d, err = load(src); err != nil {
			return err
		}
		d.dir, d.stamps = abs, src.stamps
		d.know(src)
		return d.verifyOpened()
	})
	if err != nil {
		for _, f := range src.files {
			_ = f.Close()
		}
		return nil, err
	}
	for _, f := range src.files {
		d.closer = append(d.closer, f)
	}
	return d, nil
}

// stamp is the state of a file when it was opened.
type stamp struct {
	path  string
	size  int64
	mtime time.Time
	ctime int64 // see changeTime
}

func stampOf(path string, info fs.FileInfo) stamp {
	return stamp{path: path, size: info.Size(), mtime: info.ModTime(), ctime: changeTime(info)}
}

// directory is a source whose sections are mapped files.
type directory struct {
	dir    string
	lax    bool // see openAs
	files  []*mapped.File
	stamps []stamp
}

func (s *directory) open(name string) ([]byte, string, error) {
	path := filepath.Join(s.dir, name)
	f, err := atomicfile.Open(path)
	switch {
	case errors.Is(err, atomicfile.ErrNotRegular):
		return nil, path, readError(path, "%w", errors.Unwrap(err))
	case err != nil:
		return nil, path, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, path, fmt.Errorf("dataset: %w", err)
	}
	m, err := mapped.FromFD(f, path)
	if err != nil {
		return nil, path, fmt.Errorf("dataset: %w", err)
	}
	s.files = append(s.files, m)
	s.stamps = append(s.stamps, stampOf(path, info))
	return m.Bytes(), path, nil
}

// unchanged compares a file with its state when it was opened.
func (s stamp) unchanged() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dataset: %s was removed since it was opened; open the dataset again", s.path)
	}
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	if info.Size() != s.size || !info.ModTime().Equal(s.mtime) {
		return fmt.Errorf("dataset: %s was changed since it was opened (it had %d bytes of %s, it has %d of %s); open the dataset again",
			s.path, s.size, s.mtime.Format(time.RFC3339Nano), info.Size(), info.ModTime().Format(time.RFC3339Nano))
	}
	return nil
}

// Write stores d as a directory that [Open] opens. It is written under a temporary name next to
// dir, synced, and renamed when complete, so dir never holds a part of a dataset. A killed Write
// leaves a directory .BASE.tmp-…, which the next Write of the same dir removes. Missing parents are
// created. If dir exists already, Write returns an error. The sizes in the metadata are those of
// the arrays, and the sums of the files are in it ([Dataset.Digests]).
//
// If [Dataset.Check] finds an error, Write returns it and writes nothing.
func Write(dir string, d *Dataset) error {
	return WriteWith(context.Background(), dir, d, WriteOptions{})
}

// WriteOptions configure how a dataset is written. The zero value is a good default.
type WriteOptions struct {
	// Progress is called from time to time, from the calling goroutine, with the number of bytes on
	// disk and the total, without the metadata.
	Progress func(done, total int64)
	// Checked promises that d.Check has passed, so that it is not repeated.
	Checked bool
	// FeatureType is the element type in which dense features of nodes are written: "f32", "f16"
	// (half the size; a number that float16 cannot hold is an error), or "" for their own type.
	// Sparse features are not converted. EdgeFeatureType is that of the features of edges.
	FeatureType     string
	EdgeFeatureType string
	// Rows are the rows of the features and labels that are written, for the own nodes of a part
	// ([PartOf]); nil means all. Dense features are copied in pieces of 16 MiB.
	Rows []int32
	// Edges, unless nil, is the graph that has the in-edges of Rows, which are copied from there in pieces of 16 MiB, and
	// Number returns the written id of a node of that graph. The dataset's own graph then has the written Indptr, and only the
	// lengths of its other arrays count.
	Edges  *graphops.Graph
	Number func(node int32) int32
	// Inside writes into dir, which exists: the caller makes it complete, or removes it.
	Inside bool
	// Said receives what the types of the files cannot represent; metadata.json keeps it.
	Said notice.Func
}

// CheckFeatureType returns an error if name is not a valid WriteOptions.FeatureType.
func CheckFeatureType(name string) error {
	switch name {
	case "", "f32", "f16":
		return nil
	}
	return fmt.Errorf("dataset: unknown feature type %q; choose f32 or f16", name)
}

// WriteWith is Write with options. Nothing is left when ctx ends.
func WriteWith(ctx context.Context, dir string, d *Dataset, o WriteOptions) (err error) {
	fail := func(err error) error { return fmt.Errorf("dataset: writing %s: %w", dir, err) }
	for _, name := range []string{o.FeatureType, o.EdgeFeatureType} {
		if err := CheckFeatureType(name); err != nil {
			return fail(err)
		}
	}
	if o.FeatureType == "f32" && d.NodeFeatures != nil {
		wide := *d
		wide.NodeFeatures = slices.Clone(d.NodeFeatures)
		for t, x := range wide.NodeFeatures {
			if x.Dense != nil {
				wide.NodeFeatures[t].Dense = x.Dense.Float32()
			}
		}
		d = &wide
	}
	if o.FeatureType == "f32" && d.Features != nil && d.Features.Half() {
		wide := *d
		wide.Features = d.Features.Float32()
		d = &wide
	}
	var lost notice.List
	if d, err = d.withEdgeFeatureType(o.EdgeFeatureType, &lost); err != nil {
		return fail(err)
	}
	if o.Rows != nil {
		d = d.selectRows(o.Rows)
	}
	parts, meta, err := d.sections()
	if err != nil {
		return fail(err)
	}
	if o.Edges != nil {
		if err := o.selectEdges(parts, d.Graph); err != nil {
			return fail(err)
		}
	}
	if !o.Checked {
		if err := d.checkAll(ctx, nil); err != nil {
			return fail(err)
		}
	}
	var done, total int64
	for i := range parts {
		if m := d.matrixOf(parts[i].name); m != nil && o.FeatureType == "f16" && !m.Half() {
			parts[i].narrow(m)
		}
		total += parts[i].size()
	}
	next := func(bytes int) error {
		done += int64(bytes)
		if o.Progress != nil {
			o.Progress(done, total)
		}
		return ctx.Err()
	}
	if err := next(0); err != nil {
		return fail(err)
	}
	build := atomicfile.BuildDir
	if o.Inside {
		build = func(dir string, fill func(string) error) error { return fill(dir) }
	}
	err = build(dir, func(tmp string) error {
		// The values may lie in mapped files of another dataset.
		return mapped.Guard(func() error {
			sums, heads := map[string]string{}, map[string]string{}
			for i := range parts {
				part := &parts[i]
				sum := newSummer(part.dtype, part.shape)
				if err := part.write(filepath.Join(tmp, part.name), sum, next); err != nil {
					return err
				}
				sums[part.name], heads[part.name] = sum.end(), headSum(part.head)
				part.lost.say(strings.TrimSuffix(part.name, ".npy"), &lost)
			}
			for _, n := range lost {
				o.Said.Add(n)
			}
			meta.Notices = slices.Concat(meta.Notices, lost)
			return writeMetadata(tmp, storedMetadata{Metadata: meta}, sums, heads, d, nil)
		})
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

// writeMetadata writes metadata.json, including the sums of the files already in dir, which has no others, and
// more, keys that this package does not know. It makes
// metadata.json slightly younger than those files, if the file system's clock allows, because only
// then do modification times prove that the files have not changed since.
func writeMetadata(dir string, m storedMetadata, sums, heads map[string]string, d *Dataset, more map[string]json.RawMessage) error {
	path := filepath.Join(dir, MetadataFile)
	all := d.digestsOf(sums)
	record, newest, err := recordOf(dir, sums, heads, &all)
	if err != nil {
		return err
	}
	record.Checked = d.mark(sums)
	m.Digests = record
	text, err := textOf(&m, more)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err := atomicfile.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || info.ModTime().After(newest) || try == 10 {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// EditMetadata changes the descriptive metadata of a dataset directory: its name, origin, licence,
// citation, metric and known results. The file is replaced completely or not at all. Changes of
// sizes and of fields that determine how the arrays are read are undone.
func EditMetadata(dir string, edit func(m *Metadata)) error {
	path := filepath.Join(dir, MetadataFile)
	fail := func(err error) error { return fmt.Errorf("dataset: writing %s: %w", path, err) }
	text, err := atomicfile.ReadFile(path, maxMetadata)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	var m storedMetadata
	if err := json.Unmarshal(text, &m); err != nil {
		return readError(path, "it is not the JSON object expected: %w", err)
	}
	if why := m.verifyText(text); why != "" {
		return &DigestError{Path: path, Why: why, Part: m.Part != nil || m.Parts != nil}
	}
	was := m.Metadata
	edit(&m.Metadata)
	m.FormatVersion, m.NumNodes, m.NumEdges, m.FeatureDim, m.NumClasses = was.FormatVersion, was.NumNodes, was.NumEdges, was.FeatureDim, was.NumClasses
	m.EdgeFeatureDim, m.EdgeFeatureDims, m.EdgeTimes, m.EdgeTypes = was.EdgeFeatureDim, was.EdgeFeatureDims, was.EdgeTimes, was.EdgeTypes
	m.NodeTypes, m.Relations, m.EdgeSplits, m.NumEvents, m.NodeTimes = was.NodeTypes, was.Relations, was.EdgeSplits, was.NumEvents, was.NodeTimes
	m.FeatureFormat, m.Weighted, m.MultiLabel, m.Unlabelled, m.Undirected, m.Splits = was.FeatureFormat, was.Weighted, was.MultiLabel, was.Unlabelled, was.Undirected, was.Splits
	if err := checkWords(&m.Metadata, m.TargetDim); err != nil {
		return fail(err)
	}
	if err := checkTimeUnit(m.TimeUnit); err != nil {
		return fail(err)
	}
	if m.Name == "" {
		return fail(errors.New("the dataset has no name"))
	}
	if m.Digests != nil { // metadata.json becomes younger than the files, so recorded sums that are no longer valid must go
		m.Digests.stillOf(dir, info)
		if m.Metric != was.Metric {
			m.Digests.Digests = nil
		}
	}
	if text, err = textOf(&m, furtherKeys(text)); err != nil {
		return fail(err)
	}
	if err := atomicfile.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}

// writeStep is the number of bytes written between two syncs: few enough for useful progress
// reports, enough that waiting for the disk costs no time.
const writeStep = sumStep

// gatherStep is writeStep of sections that are gathered or drawn piece by piece, in memory.
const gatherStep = 16 << 20

func (s *section) step() int {
	if s.rows != nil || s.edges != nil || s.drawn != nil || s.half != nil && s.half.draw != nil {
		return gatherStep
	}
	return writeStep
}

// write writes the section and syncs it. While the disk works it adds the elements to sum, unless
// that is nil. It calls next with the bytes of each step; an error of next ends it.
func (s *section) write(path string, sum *summer, next func(bytes int) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(s.head); err != nil {
		return err
	}
	for at, bytes := 0, len(s.head); ; bytes = 0 {
		n := min(s.bodySize()-at, s.step())
		part, err := s.piece(at, n)
		if err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
		synced := make(chan error, 1)
		go func() { synced <- f.Sync() }()
		if sum != nil {
			sum.add(part)
		}
		if err := <-synced; err != nil {
			return err
		}
		if err := next(bytes + n); err != nil {
			return err
		}
		if at += n; at == s.bodySize() {
			return nil
		}
	}
}
