package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// sumAlgorithm names the method of the sums; recorded sums of another method are ignored.
const sumAlgorithm = "sha256-tree-1MiB"

// fileSum is the sum of the array in a file, and the file's state at that time.
type fileSum struct {
	Sum      string    `json:"sum"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Changed  int64     `json:"changed,omitempty"`     // change time of the inode in ns; 0 if unknown
	Head     string    `json:"head_digest,omitempty"` // digest of the header, which Sum does not cover
}

// of reports whether the file's state is still the one that was summed.
func (f fileSum) of(s stamp) bool {
	raw, err := hex.DecodeString(f.Sum)
	return err == nil && len(raw) == sha256.Size && f.Size == s.size && f.Modified.Equal(s.mtime) &&
		(f.Changed == 0 || f.Changed == s.ctime)
}

// recordedSums is the part about sums in metadata.json and in the records under registry.Home.
type recordedSums struct {
	Algorithm string `json:"algorithm"`
	// Directory is the dataset's directory, if the record is not in it.
	Directory string `json:"directory,omitempty"`
	// Digests are those of the written dataset, if all of it was summed. They inform readers only,
	// since the metadata may have been edited.
	*Digests
	// Checked is the mark of the written content, if it passed all checks.
	Checked string `json:"checked,omitempty"`
	// Marks are the marks of content that has passed since.
	Marks []string           `json:"marks,omitempty"`
	Files map[string]fileSum `json:"files"`
	// Others are the sums of further files, such as those of names.
	Others map[string]fileSum `json:"others,omitempty"`
	// Metadata is the digest of metadata.json itself.
	Metadata string `json:"metadata_digest,omitempty"`

	signable bool // all files are listed, so Metadata is to be written
}

// storedMetadata is the whole content of metadata.json.
type storedMetadata struct {
	Metadata
	Digests *recordedSums `json:"digests,omitempty"`
}

// known caches what is known about the files of an opened dataset. Its views share it, and it is
// safe for concurrent use; a nil one is empty.
type known struct {
	dir       string
	keepFrom  int64         // minimum size in bytes of a directory whose sums are recorded
	quiet     time.Duration // minimum age of a file's last change for its sum to be recorded
	sections  map[string]stamp
	arrays    map[string][]byte // as opened, by section
	inMeta    map[string]fileSum
	others    map[string]fileSum // files that are no arrays
	heads     map[string]string  // digests of the headers, as opened
	signed    bool               // metadata.json has digests of all files and of itself
	whole     string             // recorded digest of the dataset, or ""
	passed    bool               // every check, in this process
	metaStamp stamp

	checkedInMeta string
	classes       int // as opened
	metric        string
	schema        *graphops.Schema
	types         []NodeType
	loaded        map[string][]byte  // the arrays as opened, including converted copies
	wide          map[string][]int64 // the files' contents of converted arrays

	mu     sync.Mutex
	here   map[string]string  // sums computed by this process
	kept   map[string]fileSum // recorded under registry.Home
	looked bool               // kept has been read

	keptChecked []string
}

const (
	// keepSumsFrom is the minimum size in bytes for which computing sums takes longer than reading
	// recorded ones.
	keepSumsFrom = 16 << 20
	// keepSumsOf is the maximum number of directories with recorded sums; the oldest records are
	// removed.
	keepSumsOf = 256
	// quietFor is the minimum age of a file's modification time such that a later change gets a
	// different time: longer than the clock tick of any file system.
	quietFor = 3 * time.Second
)

// sum returns the sum of an array that is unchanged since its file was opened, if the sum is known.
// It returns an error if the file has changed since.
func (k *known) sum(a array) (sum string, ok bool, err error) {
	if !k.opened(a) {
		return "", false, nil
	}
	s := k.sections[a.section]
	if err := s.unchanged(); err != nil {
		return "", false, err
	}
	if f := k.inMeta[a.section]; k.trusts(f, s) {
		return f.Sum, true, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if sum, ok = k.here[a.section]; ok {
		return sum, true, nil
	}
	k.look()
	f := k.kept[a.section]
	return f.Sum, f.of(s), nil
}

// trusts reports whether a file is unchanged by its times since its sum was recorded in metadata.json: a file that
// was changed later has a modification time that is not before that of metadata.json.
func (k *known) trusts(f fileSum, s stamp) bool { return f.of(s) && s.mtime.Before(k.metaStamp.mtime) }

// opened reports whether an array is still the one of the mapped file.
func (k *known) opened(a array) bool {
	if k == nil || len(a.body) == 0 {
		return false
	}
	return sameMemory(k.arrays[a.section], a.body)
}

func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || unsafe.SliceData(a) == unsafe.SliceData(b))
}

// learn records the sums of the arrays that are those of opened files. It returns an error if a
// file has changed meanwhile.
func (k *known) learn(arrays []array, sums map[string]string) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := time.Now().Add(-k.quiet)
	news := false
	for _, a := range arrays {
		if !k.opened(a) {
			continue
		}
		s := k.sections[a.section]
		if err := s.unchanged(); err != nil {
			return err
		}
		if s.mtime.After(before) || time.Unix(0, s.ctime).After(before) {
			continue // a change within the same clock tick would go unnoticed
		}
		k.look()
		k.here[a.section] = sums[a.section]
		k.kept[a.section] = fileSum{Sum: sums[a.section], Size: s.size, Modified: s.mtime.UTC(), Changed: s.ctime}
		news = true
	}
	if news {
		k.writeKept()
	}
	return nil
}

// keptFile returns the file with the recorded sums of the directory, or "".
func (k *known) keptFile() string {
	var size int64
	for _, s := range k.sections {
		size += s.size
	}
	home, err := registry.Home()
	if err != nil || k.dir == "" || size < k.keepFrom {
		return ""
	}
	key := sha256.Sum256([]byte(k.dir))
	return filepath.Join(home, "sums", hex.EncodeToString(key[:16])+".json")
}

// look reads the records of the directory once. Sums that cannot be read are computed again.
func (k *known) look() {
	if k.looked {
		return
	}
	k.looked, k.kept = true, map[string]fileSum{}
	path := k.keptFile()
	if path == "" {
		return
	}
	var r recordedSums
	text, err := atomicfile.ReadFile(path, maxMetadata)
	if err != nil || json.Unmarshal(text, &r) != nil || r.Algorithm != sumAlgorithm || r.Directory != k.dir || r.Files == nil {
		return
	}
	k.kept, k.keptChecked = r.Files, r.Marks
}

// writeKept records the sums. If that fails, they are computed again next time.
func (k *known) writeKept() {
	path := k.keptFile()
	if path == "" {
		return
	}
	text, err := json.MarshalIndent(recordedSums{Algorithm: sumAlgorithm, Directory: k.dir, Marks: k.keptChecked, Files: k.kept}, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o777) != nil {
		return
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return // opening a pipe would block
	}
	dropOldest(filepath.Dir(path), keepSumsOf)
	_ = atomicfile.WriteFile(path, append(text, '\n'), 0o666)
}

// dropOldest removes the oldest files of dir until fewer than n are left.
func dropOldest(dir string, n int) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < n {
		return
	}
	age := func(e os.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(a).Compare(age(b)) })
	for _, e := range entries[:len(entries)-n+1] {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}

// recordOf returns the record for metadata.json of files just written into dir with the given sums.
func recordOf(dir string, sums, heads map[string]string, all *Digests) (r *recordedSums, newest time.Time, err error) {
	r = &recordedSums{Algorithm: sumAlgorithm, Digests: all, Files: map[string]fileSum{}, signable: true}
	if r.Others, err = othersIn(dir, sums); err != nil {
		return nil, newest, err
	}
	for _, f := range r.Others {
		if f.Modified.After(newest) {
			newest = f.Modified
		}
	}
	for name, sum := range sums {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, newest, err
		}
		r.Files[name] = fileSum{Sum: sum, Size: info.Size(), Modified: info.ModTime().UTC(), Head: heads[name]}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return r, newest, nil
}

// stillOf keeps the sums of files in dir that have changed since from being trusted without reading them: it drops
// their times or, if the record need not list all files, the sums.
func (r *recordedSums) stillOf(dir string, meta os.FileInfo) {
	r.signable = r.Metadata != ""
	for name, f := range r.Files {
		info, err := os.Stat(filepath.Join(dir, filepath.Base(name)))
		switch {
		case err == nil && f.of(stampOf("", info)) && info.ModTime().Before(meta.ModTime()):
		case r.signable:
			f.Modified = time.Time{}
			r.Files[name] = f
		default:
			delete(r.Files, name)
			r.Digests = nil
		}
	}
}

// know records the state of the dataset's files when they were opened, and which arrays are theirs.
// Converted arrays are not, because a program can write to them.
func (d *Dataset) know(src *directory) {
	k := d.known
	k.dir, k.sections, k.arrays = d.dir, map[string]stamp{}, map[string][]byte{}
	k.classes, k.metric, k.loaded = d.Meta.NumClasses, d.Meta.Metric, map[string][]byte{}
	k.schema, k.types, k.heads = d.Schema(), d.Meta.NodeTypes, headsOf(src)
	for _, a := range d.arrays() {
		k.loaded[a.section] = a.body
	}
	for i, s := range src.stamps {
		name := filepath.Base(s.path)
		if k.sections[name] = s; name == MetadataFile {
			k.metaStamp = s
		}
		for _, a := range d.arrays() {
			if a.section == name && mapped.ReadOnly && within(src.files[i].Bytes(), a.body) {
				k.arrays[name] = a.body
			}
		}
	}
}

// within reports whether part lies in the memory of whole.
func within(whole, part []byte) bool {
	lo, at := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return len(part) > 0 && len(part) <= len(whole) && at >= lo && at-lo <= uintptr(len(whole)-len(part))
}
