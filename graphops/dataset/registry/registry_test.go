package registry

import (
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every entry is complete and consistent.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, e := range List() {
		t.Run(e.Name, func(t *testing.T) {
			for _, name := range append([]string{e.Name}, e.Aliases...) {
				if found, ok := Find(name); !ok || found.Name != e.Name {
					t.Errorf("%s finds %q", name, found.Name)
				}
			}
			if names[e.Name] || !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(e.Name) {
				t.Error("the name is not unique or not a valid file name")
			}
			names[e.Name] = true
			for what, text := range map[string]string{
				"summary": e.Summary, "licence": e.Licence, "citation": e.Citation, "homepage": e.Homepage, "format": e.Format, "folder": e.Folder,
			} {
				if text == "" {
					t.Errorf("no %s", what)
				}
			}
			if !strings.Contains(e.Citation, "doi:10.") {
				t.Errorf("no DOI in %q", e.Citation)
			}
			if e.Nodes <= 0 || e.Edges <= 0 || e.Features <= 0 || e.Classes <= 0 || len(e.Known) == 0 || len(e.Files) == 0 {
				t.Errorf("%+v", e)
			}
			if !slices.Contains([]string{accuracy, rocAUC, microF1}, e.Metric) {
				t.Errorf("metric %q", e.Metric)
			}
			for _, k := range e.Known {
				if k.Value <= 0 || k.Value > 100 || k.Spread < 0 || k.Model == "" || k.Source == "" {
					t.Errorf("%+v", k)
				}
			}
			for _, f := range e.Files {
				u, err := url.Parse(f.URL)
				if err != nil || u.Host == "" || u.Scheme != "https" && e.Folder != "graphsage" {
					t.Errorf("%s: %q: %v", f.Name, f.URL, err)
				}
				if !filepath.IsLocal(f.Name) || f.MaxSize <= 0 || f.Size > f.MaxSize {
					t.Errorf("%+v", f)
				}
				for sum, n := range map[string]int{f.SHA256: 32, f.GitBlob: 20} {
					if b, err := hex.DecodeString(sum); sum != "" && (err != nil || len(b) != n) {
						t.Errorf("%s: checksum %q", f.Name, sum)
					}
				}
				if f.SHA256 != "" && f.Size == 0 {
					t.Errorf("%s: a file with a known SHA-256 needs a size", f.Name)
				}
				// A file from a repository has a pinned commit and a checksum.
				if u.Host == "raw.githubusercontent.com" && (!f.Known() || !regexp.MustCompile(`/[0-9a-f]{40}/`).MatchString(u.Path)) {
					t.Errorf("%s: %s, %s", f.Name, f.URL, f.Verified())
				}
			}
		})
	}
	if len(names) < 19 {
		t.Errorf("%d entries", len(names))
	}
	for _, none := range []string{"", "corra", "cora2"} {
		if e, ok := Find(none); ok {
			t.Errorf("%q finds %s", none, e.Name)
		}
	}
	if e, ok := Find("Amazon-CS"); !ok || e.Name != "amazon_cs" {
		t.Errorf("Amazon-CS finds %q", e.Name)
	}
}

func TestVerified(t *testing.T) {
	for want, f := range map[string]File{
		"SHA-256 ab":                          {SHA256: "ab"},
		"git blob cd":                         {GitBlob: "cd"},
		"not verified: no published checksum": {},
	} {
		if f.Verified() != want {
			t.Errorf("%+v: %s", f, f.Verified())
		}
	}
}

func TestHome(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_HOME", dir)
	e, _ := Find("cora")
	if got, err := e.Dir(); err != nil || got != filepath.Join(dir, "datasets", "cora") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := e.RawDir(); err != nil || got != filepath.Join(dir, "raw", "cora") {
		t.Errorf("%s, %v", got, err)
	}
	t.Setenv("GNB_HOME", "")
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	if got, err := Home(); err != nil || filepath.Base(got) != "graphnb" || !strings.HasPrefix(got, dir) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFindRaw(t *testing.T) {
	home, data := t.TempDir(), t.TempDir()
	t.Setenv("GNB_HOME", home)
	t.Setenv("GNB_DATA", data)
	write := func(path string, size int) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find := func(name string) string {
		t.Helper()
		e, _ := Find(name)
		dir, err := e.FindRaw()
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if got := find("cora"); got != "" {
		t.Errorf("without any file, the dataset is found in %s", got)
	}
	// The folder holds all files but one, then a file of the wrong size, then all files.
	cora, _ := Find("cora")
	for _, f := range cora.Files[1:] {
		write(filepath.Join(data, "planetoid", f.Name), int(f.Size))
	}
	if got := find("cora"); got != "" {
		t.Error("the dataset is found without one of its files")
	}
	write(filepath.Join(data, "planetoid", cora.Files[0].Name), int(cora.Files[0].Size)-1)
	if got := find("cora"); got != "" {
		t.Error("the dataset is found with a truncated file")
	}
	write(filepath.Join(data, "planetoid", cora.Files[0].Name), int(cora.Files[0].Size))
	if got := find("cora"); got != filepath.Join(data, "planetoid") {
		t.Errorf("found in %q", got)
	}
	// The folder holds an archive, before and after unpacking.
	write(filepath.Join(home, "raw", "ogbn-arxiv", "arxiv.zip"), 10)
	if got := find("ogbn-arxiv"); got != filepath.Join(home, "raw", "ogbn-arxiv") {
		t.Errorf("the archive is found in %q", got)
	}
	if err := os.MkdirAll(filepath.Join(data, "ogbn_arxiv", "raw"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := find("ogbn-arxiv"); !strings.HasPrefix(got, home) {
		t.Errorf("a folder without edges is taken for the dataset: %q", got)
	}
	write(filepath.Join(data, "ogbn_arxiv", "raw", "edge.csv.gz"), 10)
	arxiv, _ := Find("ogbn-arxiv")
	if got := find("ogbn-arxiv"); got != data || arxiv.Files[0].HasUnzipped(data) != filepath.Join(data, "ogbn_arxiv") {
		t.Errorf("the unpacked dataset is found in %q", got)
	}
	// Files that have the same name in every dataset are not searched for directly in $GNB_DATA.
	flickr, _ := Find("flickr")
	for _, f := range flickr.Files {
		write(filepath.Join(data, f.Name), 10)
	}
	if got := find("flickr"); got != "" {
		t.Errorf("flickr is found in %q", got)
	}
}

func TestInstructions(t *testing.T) {
	t.Setenv("GNB_HOME", "/home/of")
	other := `, set GNB_DATA to the folder that has them, or make a dataset of files of your own with "gnb data convert"`
	cora, _ := Find("cora")
	want := "without a network, put the files ind.cora.x, ind.cora.y, ind.cora.tx, ind.cora.ty, ind.cora.allx, ind.cora.ally, ind.cora.graph, ind.cora.test.index " +
		"into /home/of/raw/cora yourself (from " + planetoidURL + ") and try again" + other
	if got := cora.Instructions(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	arxiv, _ := Find("ogbn-arxiv")
	want = "without a network, put /home/of/raw/ogbn-arxiv/arxiv.zip there yourself (from https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip) and try again" + other
	if got := arxiv.Instructions(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if size, known := cora.Size(); !known || size != 572444 {
		t.Errorf("cora has %d bytes", size)
	}
	if _, known := arxiv.Size(); known {
		t.Error("the size of ogbn-arxiv is known")
	}
}
