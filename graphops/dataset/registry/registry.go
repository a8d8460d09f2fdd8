// Package registry is the list of published datasets that GraphNB knows by name: the URLs, sizes
// and checksums of their files, their licences and citations, and published accuracies.
//
// It also defines where datasets are kept on this machine ([Home]). It downloads nothing; its
// subpackage get does.
package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Entry is a published dataset.
type Entry struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	Summary string   `json:"summary"` // one line
	// Sizes as the literature counts them; Edges counts directed edges, so an undirected edge
	// counts twice.
	Nodes    int    `json:"nodes"`
	Edges    int64  `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	Metric   string `json:"metric"` // "accuracy", "roc_auc" or "micro_f1"
	Homepage string `json:"homepage"`
	Licence  string `json:"licence"`
	Citation string `json:"citation"` // paper and DOI
	// Folder is the subfolder of a raw data collection that holds the files.
	Folder string `json:"folder"`
	Files  []File `json:"files"`
	// Format is the name of the format, and Undirected adds the opposite of each edge when the
	// files are converted.
	Format     string     `json:"format"`
	Undirected bool       `json:"undirected,omitempty"`
	Known      []Accuracy `json:"known_accuracies,omitempty"`
}

// File is one of the published files of a dataset.
type File struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Size int64  `json:"size,omitempty"` // in bytes; 0: unknown
	// SHA256 and GitBlob (the id of the content in its git repository) are empty if unknown.
	SHA256  string `json:"sha256,omitempty"`
	GitBlob string `json:"git_blob,omitempty"`
	MaxSize int64  `json:"max_size"` // a larger file is refused
	// Unzipped lists, for a zip archive, files "FOLDER/…", relative to the folder with the archive;
	// one of them exists once the archive is unpacked. FOLDER then holds the dataset. The archive
	// itself holds the first of them.
	Unzipped []string `json:"unzipped,omitempty"`
}

// Known reports whether a checksum of the file is known.
func (f File) Known() bool { return f.SHA256 != "" || f.GitBlob != "" }

// Verified says how a file of this name is verified to be the published one.
func (f File) Verified() string {
	switch {
	case f.SHA256 != "":
		return "SHA-256 " + f.SHA256
	case f.GitBlob != "":
		return "git blob " + f.GitBlob
	}
	return "not verified: no published checksum"
}

// Accuracy is a published result.
type Accuracy struct {
	Model  string  `json:"model"`
	Value  float64 `json:"value"`            // value of the metric, in percent
	Spread float64 `json:"spread,omitempty"` // standard deviation over runs, in percent; 0 if not published
	Source string  `json:"source"`
}

// List returns the entries, sorted by name. The caller may change them.
func List() []Entry {
	all := table()
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the entry of a name or alias; it ignores case and treats _ as -.
func Find(name string) (Entry, bool) {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	for _, e := range table() {
		if plain(e.Name) == plain(name) || slices.ContainsFunc(e.Aliases, func(a string) bool { return plain(a) == plain(name) }) {
			return e, true
		}
	}
	return Entry{}, false
}

// Size returns the total size of the files in bytes; known reports whether all sizes are known.
func (e Entry) Size() (bytes int64, known bool) {
	known = true
	for _, f := range e.Files {
		bytes += f.Size
		known = known && f.Size > 0
	}
	return bytes, known
}

// Home returns the directory under which GraphNB keeps what it downloads and converts: $GNB_HOME,
// or graphnb in the user's cache directory (~/.cache/graphnb on Linux, or $XDG_CACHE_HOME/graphnb
// if that is set).
func Home() (string, error) {
	if home := envknob.Home.Get(); home != "" {
		return filepath.Abs(home)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("registry: where to keep datasets: %w; set GNB_HOME to a directory", err)
	}
	return filepath.Join(cache, "graphnb"), nil
}

// Datasets returns the directory of the converted datasets: Home/datasets.
func Datasets() (string, error) {
	home, err := Home()
	return filepath.Join(home, "datasets"), err
}

// Served returns the directory of what programs have copied from graph servers that their user named: Home/served.
func Served() (string, error) {
	home, err := Home()
	return filepath.Join(home, "served"), err
}

// Dir returns the directory of the converted dataset, which may not exist yet: Home/datasets/NAME.
func (e Entry) Dir() (string, error) {
	dir, err := Datasets()
	return filepath.Join(dir, e.Name), err
}

// RawDir returns the folder into which its files are downloaded, or where the user can put them:
// Home/raw/NAME.
func (e Entry) RawDir() (string, error) {
	home, err := Home()
	return filepath.Join(home, "raw", e.Name), err
}

// RawDirs returns the folders that may have the files, in order of search: $GNB_DATA/FOLDER,
// $GNB_DATA/NAME, $GNB_DATA (except for files that have the same name in every dataset) and RawDir.
func (e Entry) RawDirs() ([]string, error) {
	var dirs []string
	if data := envknob.Data.Get(); data != "" {
		for _, sub := range []string{e.Folder, e.Name, ""} {
			if sub == "" && e.Format == "graphsaint" { // files have the same names in every GraphSAINT dataset
				continue
			}
			if dir := filepath.Join(data, sub); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	raw, err := e.RawDir()
	return append(dirs, raw), err
}

// HasUnzipped returns the folder within dir that was unpacked from the archive f, or "" if there is
// none.
func (f File) HasUnzipped(dir string) string {
	for _, inside := range f.Unzipped {
		if info, err := os.Stat(filepath.Join(dir, inside)); err == nil && info.Mode().IsRegular() {
			folder, _, _ := strings.Cut(inside, "/")
			return filepath.Join(dir, folder)
		}
	}
	return ""
}

// Has reports whether the folder has the file, or its unpacked content, and returns its path. It
// checks the size if that is known, not the content.
func (f File) Has(dir string) (path string, ok bool) {
	if path := f.HasUnzipped(dir); path != "" {
		return path, true
	}
	path = filepath.Join(dir, f.Name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || f.Size > 0 && info.Size() != f.Size {
		return "", false
	}
	return path, true
}

// FindRaw returns the first of the RawDirs that has all of the files, or "" if none has.
func (e Entry) FindRaw() (string, error) {
	dirs, err := e.RawDirs()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		missing := slices.ContainsFunc(e.Files, func(f File) bool { _, ok := f.Has(dir); return !ok })
		if !missing {
			return dir, nil
		}
	}
	return "", nil
}

// Instructions returns half a sentence on what to do without a network: which files to put where.
func (e Entry) Instructions() string {
	raw, err := e.RawDir()
	if err != nil {
		return err.Error()
	}
	if len(e.Files) == 1 {
		f := e.Files[0]
		return fmt.Sprintf("without a network, put %s there yourself (from %s) and try again, %s", filepath.Join(raw, f.Name), f.URL, otherWays)
	}
	var names []string
	base := strings.TrimSuffix(e.Files[0].URL, e.Files[0].Name)
	for _, f := range e.Files {
		names = append(names, f.Name)
		if f.URL != base+f.Name {
			base = e.Homepage
		}
	}
	return fmt.Sprintf("without a network, put the files %s into %s yourself (from %s) and try again, %s", strings.Join(names, ", "), raw, base, otherWays)
}

// otherWays tells users other ways to use files that they already have.
var otherWays = "set " + envknob.Data.Name + " to the folder that has them, or make a dataset of files of your own with \"gnb data convert\""
