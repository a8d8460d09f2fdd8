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

	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// sumAlgorithm names what a sum is; sums of another one are not looked at.
const sumAlgorithm = "sha256-tree-1MiB"

// fileSum is the sum of the array in a file, and what the file looked like then.
type fileSum struct {
	Sum      string    `json:"sum"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Changed  int64     `json:"changed,omitempty"` // of the inode, ns; 0: not known
}

// of tells whether the file still looks as it did when it was summed.
func (f fileSum) of(s stamp) bool {
	raw, err := hex.DecodeString(f.Sum)
	return err == nil && len(raw) == sha256.Size && f.Size == s.size && f.Modified.Equal(s.mtime) &&
		(f.Changed == 0 || f.Changed == s.ctime)
}

// recordedSums is the part of metadata.json, and of what is kept under
// registry.Home, that says sums.
type recordedSums struct {
	Algorithm string `json:"algorithm"`
	// Directory is the dataset's, where the record lies elsewhere.
	Directory string `json:"directory,omitempty"`
	// The digests of what was written, where all of it was summed; they are for
	// readers, since the metadata may have been edited.
	*Digests
	// Checked is the mark of what has passed all checks as it was written.
	Checked string `json:"checked,omitempty"`
	// Marks are those of what has passed since.
	Marks []string           `json:"marks,omitempty"`
	Files map[string]fileSum `json:"files"`
}

// storedMetadata is metadata.json as a whole.
type storedMetadata struct {
	Metadata
	Digests *recordedSums `json:"digests,omitempty"`
}

// known is what is known of the files of an opened dataset. It is shared by its
// views and safe for concurrent use; a nil one knows nothing.
type known struct {
	dir       string
	keepFrom  int64         // the bytes of a directory's arrays from which on sums are kept
	quiet     time.Duration // how long ago a file must have been changed for its sum to be kept
	sections  map[string]stamp
	arrays    map[string][]byte // as opened, by section
	inMeta    map[string]fileSum
	metaStamp stamp

	checkedInMeta string
	classes       int // as opened
	metric        string
	loaded        map[string][]byte  // the arrays as opened, also those that are copies
	wide          map[string][]int64 // what files hold of the arrays that were converted

	mu     sync.Mutex
	here   map[string]string  // sums computed by this process
	kept   map[string]fileSum // under registry.Home
	looked bool               // that was read

	keptChecked []string
}

const (
	// keepSumsFrom is the bytes from which on computing sums takes longer than
	// reading where they are kept.
	keepSumsFrom = 16 << 20
	// keepSumsOf is the number of directories of which sums are kept; the oldest go.
	keepSumsOf = 256
	// quietFor is how long ago a file must have been changed for its time of change to
	// tell it from a later change: longer than the tick of any file system.
	quietFor = 3 * time.Second
)

// sum is the sum of an array, where it is that of a file as it was opened and its
// sum is known. A file that has changed since is an error.
func (k *known) sum(a array) (sum string, ok bool, err error) {
	if !k.opened(a) {
		return "", false, nil
	}
	s := k.sections[a.section]
	if err := s.unchanged(); err != nil {
		return "", false, err
	}
	// A file that is changed after metadata.json was written has a time of change
	// that is not before metadata.json's.
	if f := k.inMeta[a.section]; f.of(s) && s.mtime.Before(k.metaStamp.mtime) {
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

// opened tells whether an array is one of a mapped file, as opened.
func (k *known) opened(a array) bool {
	if k == nil || len(a.body) == 0 {
		return false
	}
	return sameMemory(k.arrays[a.section], a.body)
}

func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || unsafe.SliceData(a) == unsafe.SliceData(b))
}

// learn keeps the sums of the arrays that are opened files. A file that has
// changed meanwhile is an error.
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
			continue // a change within the same tick of the clock would not show
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

// keptFile is where the sums of the directory are kept, or "".
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

// look reads, once, what is kept of the directory. What cannot be read is computed
// again.
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

// writeKept keeps the sums. Where that fails they are computed again.
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
		return // a pipe would be waited for
	}
	dropOldest(filepath.Dir(path), keepSumsOf)
	_ = atomicfile.WriteFile(path, append(text, '\n'), 0o666)
}

// dropOldest leaves fewer than n files in dir.
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

// recordOf is what metadata.json says of files that have just been written into
// dir with the given sums.
func recordOf(dir string, sums map[string]string, all *Digests) (r *recordedSums, newest time.Time, err error) {
	r = &recordedSums{Algorithm: sumAlgorithm, Digests: all, Files: map[string]fileSum{}}
	for name, sum := range sums {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, newest, err
		}
		r.Files[name] = fileSum{Sum: sum, Size: info.Size(), Modified: info.ModTime().UTC()}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return r, newest, nil
}

// stillOf drops the sums of files of dir that are no longer those summed.
func (r *recordedSums) stillOf(dir string, meta os.FileInfo) {
	for name, f := range r.Files {
		info, err := os.Stat(filepath.Join(dir, filepath.Base(name)))
		if err != nil || !f.of(stampOf("", info)) || !info.ModTime().Before(meta.ModTime()) {
			delete(r.Files, name)
			r.Digests = nil
		}
	}
}

// know notes what the files of the dataset looked like when they were opened, and
// which of its arrays are theirs. Those that were converted are not, because a
// program can write to them.
func (d *Dataset) know(src *directory) {
	k := d.known
	k.dir, k.sections, k.arrays = d.dir, map[string]stamp{}, map[string][]byte{}
	k.classes, k.metric, k.loaded = d.Meta.NumClasses, d.Metric(), map[string][]byte{}
	for _, a := range d.arrays() {
		k.loaded[a.section] = a.body
	}
	for i, s := range src.stamps {
		name := filepath.Base(s.path)
		if k.sections[name] = s; name == metadataFile {
			k.metaStamp = s
		}
		for _, a := range d.arrays() {
			if a.section == name && mapped.ReadOnly && within(src.files[i].Bytes(), a.body) {
				k.arrays[name] = a.body
			}
		}
	}
}

// within tells whether part is memory of whole.
func within(whole, part []byte) bool {
	lo, at := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return len(part) > 0 && len(part) <= len(whole) && at >= lo && at-lo <= uintptr(len(whole)-len(part))
}
