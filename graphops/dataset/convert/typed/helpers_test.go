package typed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
)

// put writes files into a new folder and returns it; a name with / creates folders.
func put(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// converted converts src and opens the result.
func converted(t testing.TB, src string, o convert.Options) (*dataset.Dataset, convert.Stats) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "out")
	o.Readers = Readers()
	stats, err := convert.Convert(t.Context(), src, dst, o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(dst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stats.Nodes != d.Nodes() || stats.Edges != d.Edges() || stats.Features != d.FeatureDim() || stats.Classes != d.Classes() {
		t.Errorf("stats are %+v of %s", stats, d)
	}
	return d, stats
}

// refused converts src and expects a one-line error that contains all words, and no destination.
func refused(t *testing.T, src string, o convert.Options, words ...string) {
	t.Helper()
	parent := t.TempDir()
	o.Readers = Readers()
	_, err := convert.Convert(t.Context(), src, filepath.Join(parent, "out"), o)
	if err == nil {
		t.Fatalf("converting %s succeeded; want an error with %q", src, words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error is %q; want it to say %q", err, word)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("the error has several lines: %q", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("the destination holds %v (%v); want nothing", left, err)
	}
}
