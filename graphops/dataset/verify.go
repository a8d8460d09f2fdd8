package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// DigestError says that a file of a dataset does not have the content whose digest metadata.json records: bits
// flipped, a copy is incomplete, the file is that of another dataset, or somebody changed it by hand.
type DigestError struct {
	Path string
	Why  string
	Part bool // of a part, or of the directory above the parts
	// Err is what is wrong with the values of the file, if a check says it; else nil.
	Err error
}

func (e *DigestError) Unwrap() error { return e.Err }

func (e *DigestError) Error() string {
	if e.Err != nil {
		return e.Err.Error() + "; the file is not what was written"
	}
	again := fmt.Sprintf("copy it again or write the dataset again; after a change on purpose, \"gnb data check --write-digests %s\" records the files as they are", filepath.Dir(e.Path))
	if e.Part {
		again = "copy it again or divide the dataset again"
	}
	return fmt.Sprintf("dataset: %s is not what was written: %s; %s", e.Path, e.Why, again)
}

// Which files are compared with their digests whenever a directory is opened: each small one, until their
// sizes add up to smallSum. That takes a few milliseconds.
const (
	smallFile = 1 << 20
	smallSum  = 4 << 20
)

// damaged returns the error for a file of the directory.
func (d *Dataset) damaged(name, format string, args ...any) error {
	return &DigestError{Path: filepath.Join(d.dir, name), Why: fmt.Sprintf(format, args...), Part: d.Meta.Part != nil || d.Meta.Parts != nil}
}

func (d *Dataset) differs(name, got, want string) error {
	return d.damaged(name, "its digest is %.16s, and %s records %.16s", got, MetadataFile, want)
}

// HasDigests reports whether metadata.json has the digests of all files and of itself. [Write] records them;
// directories that other programs or older versions wrote have none: see [WriteDigests].
func (d *Dataset) HasDigests() bool {
	d = d.root()
	return d.known != nil && d.known.signed
}

// RecordedDigest returns the digest ([Dataset.Digest]) that metadata.json records, or "".
func (d *Dataset) RecordedDigest() string {
	if d = d.root(); d.known == nil {
		return ""
	}
	return d.known.whole
}

// root returns the dataset that d is a view of.
func (d *Dataset) root() *Dataset {
	for d.whole != nil {
		d = d.whole
	}
	return d
}

// VerifyOptions configure [Dataset.Verify]. The zero value is a good default.
type VerifyOptions struct {
	Threads int // number of threads; 0 means GOMAXPROCS
	// Report is called from time to time, from the calling goroutine, with the number of bytes read
	// and the total.
	Report func(done, total int64)
}

// Verify reads every file of the directory and compares it with its recorded digest, even if the file's times
// say that it is unchanged. A difference is a [*DigestError]. Without recorded digests ([Dataset.HasDigests])
// it reads nothing. Arrays that the program has replaced since are left out.
//
// Digests notice damage and mix-ups of any kind. They do not protect from somebody who also replaces the
// digests.
func (d *Dataset) Verify(ctx context.Context, o VerifyOptions) error {
	r := &reading{ctx: ctx, report: o.Report, total: d.recordedBytes()}
	return mapped.Guard(func() error { return d.verify(r, o.Threads, everyFile) })
}

// recordedBytes returns the size of the files that verify reads at most.
func (d *Dataset) recordedBytes() (n int64) {
	d = d.root()
	if !d.HasDigests() {
		return 0
	}
	for _, files := range []map[string]fileSum{d.known.inMeta, d.known.others} {
		for _, f := range files {
			n += f.Size
		}
	}
	return n
}

// A choice says whether a file is compared; unchanged says that by its times it is.
type choice func(f fileSum, unchanged bool) bool

func everyFile(fileSum, bool) bool { return true }

// smallOnes returns the choice of small files, of limited size together.
func smallOnes() choice {
	left := int64(smallSum)
	return func(f fileSum, _ bool) bool {
		if f.Size > smallFile || f.Size > left {
			return false
		}
		left -= f.Size
		return true
	}
}

// verifyAll is a check that compares all files.
func (d *Dataset) verifyAll(r *reading) error { return d.verify(r, 0, everyFile) }

// verifySmall is a check that compares small files, and names that changed.
func (d *Dataset) verifySmall(r *reading) error {
	few := smallOnes()
	return d.verify(r, 0, func(f fileSum, unchanged bool) bool { return few(f, unchanged) || !unchanged })
}

// verify compares the chosen files with their recorded digests.
func (d *Dataset) verify(r *reading, threads int, chosen choice) error {
	d = d.root()
	k := d.known
	if !d.HasDigests() {
		return nil
	}
	sums := map[string]string{}
	var compared []array
	for _, a := range d.arrays() {
		f, recorded := d.recorded(a)
		switch {
		case !recorded: // the program has replaced it
			continue
		case !chosen(f, k.trusts(f, k.sections[a.section])):
			continue
		}
		sum, err := sumOf(a, threads, r.next)
		if err != nil {
			return err
		}
		if sum != f.Sum {
			return d.differs(a.section, sum, f.Sum)
		}
		compared, sums[a.section] = append(compared, a), sum
	}
	for _, name := range slices.Sorted(maps.Keys(k.others)) {
		if err := d.verifyOther(r, threads, name, k.others[name], chosen); err != nil {
			return err
		}
	}
	if err := r.next(0); err != nil {
		return err
	}
	return k.learn(compared, sums)
}

// verifyOther compares a file that is no array, such as one of names.
func (d *Dataset) verifyOther(r *reading, threads int, name string, f fileSum, chosen choice) error {
	path := filepath.Join(d.dir, name)
	in, err := atomicfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d.damaged(name, "it does not exist")
	}
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("dataset: %w", err)
	case info.Size() != f.Size:
		return d.damaged(name, "it has %d bytes, and %s records %d", info.Size(), MetadataFile, f.Size)
	case !chosen(f, d.known.trusts(f, stampOf(path, info))):
		return nil
	}
	sum, err := sumOfFile(in, threads, r.next)
	if err != nil {
		return fmt.Errorf("dataset: reading %s: %w", path, err)
	}
	if sum != f.Sum {
		return d.differs(name, sum, f.Sum)
	}
	return nil
}

// verifyOpened compares what costs little with the record: sizes and headers of all files, and small files.
func (d *Dataset) verifyOpened() error {
	k := d.known
	if !k.signed {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(k.inMeta)) {
		f := k.inMeta[name]
		s, opened := k.sections[name]
		if !opened {
			info, err := os.Stat(filepath.Join(d.dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				return d.damaged(name, "it does not exist")
			}
			if err != nil {
				return fmt.Errorf("dataset: %w", err)
			}
			s.size = info.Size()
		}
		if s.size != f.Size {
			return d.damaged(name, "it has %d bytes, and %s records %d", s.size, MetadataFile, f.Size)
		}
		if head := k.heads[name]; opened && head != f.Head {
			return d.damaged(name, "its header is another one")
		}
	}
	err := d.verify(&reading{ctx: context.Background()}, 0, smallOnes())
	var damage *DigestError
	if errors.As(err, &damage) && d.Bytes() <= checkAlways && d.Meta.Part == nil {
		// Perhaps the values say more.
		if why := d.CheckWith(context.Background(), nil); why != nil && !errors.As(why, new(*DigestError)) {
			damage.Err = why
		}
	}
	return err
}

// headSum returns the digest of a file's header: short, for it only notices damage.
func headSum(head []byte) string {
	sum := sha256.Sum256(head)
	return hex.EncodeToString(sum[:8])
}

// sumOf returns the sum of an array; next is called with the bytes of each step before it is read.
func sumOf(a array, threads int, next func(bytes int64) error) (string, error) {
	s := newSummer(a.dtype, a.shape)
	s.threads = threads
	step := sumStep
	if threads == 1 {
		step = sumLeaf
	}
	for lo := 0; lo < len(a.body); lo += step {
		part := a.body[lo:min(lo+step, len(a.body))]
		if err := next(int64(len(part))); err != nil {
			return "", err
		}
		s.add(part)
	}
	return s.end(), nil
}

// sumOfFile returns the sum of a file that is no array. Memory: 4 MiB.
func sumOfFile(in io.Reader, threads int, next func(bytes int64) error) (string, error) {
	s := &summer{h: sha256.New(), threads: threads}
	_, _ = io.WriteString(s.h, "graphnb file 1\n")
	piece := make([]byte, 4*sumLeaf)
	for {
		n, err := io.ReadFull(in, piece)
		if n > 0 {
			if err := next(int64(n)); err != nil {
				return "", err
			}
			s.add(piece[:n])
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return s.end(), nil
		case err != nil:
			return "", err
		}
	}
}

// othersIn returns the sums of the files of a directory that are neither arrays nor the metadata.
func othersIn(dir string, arrays map[string]string) (map[string]fileSum, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var others map[string]fileSum
	for _, e := range entries {
		name := e.Name()
		if _, ok := arrays[name]; ok || name == MetadataFile || strings.HasPrefix(name, ".") || !e.Type().IsRegular() {
			continue
		}
		f, err := func() (f fileSum, err error) {
			in, err := atomicfile.Open(filepath.Join(dir, name))
			if err != nil {
				return f, err
			}
			defer in.Close()
			info, err := in.Stat()
			if err != nil {
				return f, err
			}
			sum, err := sumOfFile(in, 0, func(int64) error { return nil })
			return fileSum{Sum: sum, Size: info.Size(), Modified: info.ModTime().UTC()}, err
		}()
		if err != nil {
			return nil, err
		}
		if others == nil {
			others = map[string]fileSum{}
		}
		others[name] = f
	}
	return others, nil
}

// The digest of metadata.json is that of its text with zeros in the digest's own place.
var (
	selfKey  = []byte(`"metadata_digest": "`)
	headKey  = []byte(`"head_digest"`)
	selfZero = bytes.Repeat([]byte("0"), 2*sha256.Size)
)

// textOf returns the text of metadata.json: with its own digest if the files have theirs. more are further
// keys of the file that it replaces.
func textOf(m *storedMetadata, more map[string]json.RawMessage) ([]byte, error) {
	signed := m.Digests != nil && m.Digests.signable
	if signed {
		m.Digests.Metadata = string(selfZero)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	for _, key := range slices.Sorted(maps.Keys(more)) {
		line, err := json.MarshalIndent(map[string]json.RawMessage{key: more[key]}, "", "  ")
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte("{\n")), []byte("\n}"))
		text = slices.Concat([]byte("{\n"), line, []byte(",\n"), bytes.TrimPrefix(text, []byte("{\n")))
	}
	if len(text) > maxMetadata {
		return nil, fmt.Errorf("%s has %d bytes, of at most %d: the dataset has too many splits", MetadataFile, len(text), maxMetadata)
	}
	if !signed {
		return text, nil
	}
	at := bytes.LastIndex(text, slices.Concat(selfKey, selfZero))
	if at < 0 {
		return nil, fmt.Errorf("%s has no place for its digest", MetadataFile)
	}
	sum := sha256.Sum256(text)
	hex.Encode(text[at+len(selfKey):], sum[:])
	return text, nil
}

// furtherKeys returns the keys of metadata.json that this package does not know.
func furtherKeys(text []byte) (more map[string]json.RawMessage) {
	if json.Unmarshal(text, &more) != nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[storedMetadata]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		maps.DeleteFunc(more, func(key string, _ json.RawMessage) bool { return strings.EqualFold(key, name) })
	}
	return more
}

func (m *storedMetadata) signed() bool { return m.Digests != nil && m.Digests.Metadata != "" }

// verifyText compares the text of metadata.json with its own digest. It returns why the file is damaged, or "".
// A text with keys of digests needs them, so that damage of one key does not hide the others.
func (m *storedMetadata) verifyText(text []byte) string {
	r := m.Digests
	switch {
	case !m.signed() && !bytes.Contains(text, selfKey) && !bytes.Contains(text, headKey):
		return "" // another program or an older version wrote it
	case !m.signed():
		return "its own digest is missing"
	case r.Algorithm != sumAlgorithm:
		return fmt.Sprintf("its digests are of the kind %q, and this version of GraphNB knows %q", r.Algorithm, sumAlgorithm)
	}
	line := slices.Concat(selfKey, []byte(r.Metadata))
	at := bytes.LastIndex(text, line)
	if at < 0 || len(r.Metadata) != len(selfZero) {
		return "its own digest is malformed"
	}
	text = slices.Clone(text)
	copy(text[at+len(selfKey):], selfZero)
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != r.Metadata {
		return fmt.Sprintf("its own digest is %.16s, and it records %.16s", hex.EncodeToString(sum[:]), r.Metadata)
	}
	return ""
}

// WriteDigestsOptions configure [WriteDigests]. The zero value is a good default.
type WriteDigestsOptions struct {
	Report func(done, total int64) // as of [Dataset.CheckWith]
	// Edit changes the metadata that is written with the digests.
	Edit func(m *Metadata)
}

// WriteDigests records the digests of all files of a dataset directory in its metadata.json, as [Write] does, for
// a directory that another program or an older version wrote, or that was changed on purpose. It checks the
// dataset first, whose error it returns. The files stay as they are; metadata.json is replaced completely or
// not at all, and keeps keys that this package does not know.
//
// A directory of parts is that of [graphops/divided.WriteDigests].
func WriteDigests(ctx context.Context, dir string, o WriteDigestsOptions) error {
	d, err := openAs(dir, true)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.Meta.Part == nil { // the edges of a part are checked with the whole
		if err := d.CheckWith(ctx, o.Report); err != nil {
			return err
		}
	}
	text, err := atomicfile.ReadFile(filepath.Join(d.dir, MetadataFile), maxMetadata)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return mapped.Guard(func() error {
		sums := map[string]string{}
		for _, a := range d.arrays() {
			if sums[a.section], err = sumOf(a, 0, func(int64) error { return ctx.Err() }); err != nil {
				return err
			}
		}
		m := storedMetadata{Metadata: d.Meta}
		if o.Edit != nil {
			o.Edit(&m.Metadata)
		}
		if err := writeMetadata(d.dir, m, sums, d.known.heads, d, furtherKeys(text)); err != nil {
			return fmt.Errorf("dataset: writing the digests of %s: %w", dir, err)
		}
		return nil
	})
}

// headsOf returns the digests of the headers of opened files.
func headsOf(src *directory) map[string]string {
	heads := map[string]string{}
	for i, s := range src.stamps {
		file := src.files[i].Bytes()
		if _, data, err := npy.Parse(file); err == nil && filepath.Ext(s.path) == ".npy" {
			heads[filepath.Base(s.path)] = headSum(file[:len(file)-len(data)])
		}
	}
	return heads
}
