// This file has what the tests of converters share: source files, and the results of conversions. It does not
// import package convert, so that the tests inside that package use it too.

package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// putFile writes files into a new folder and returns it; a name with / creates folders.
func putFile(t testing.TB, files map[string]string) string {
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

// testConverted opens and checks the dataset that convert writes to dst.
func testConverted(t testing.TB, convert func(dst string) error) *dataset.Dataset {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "out")
	if err := convert(dst); err != nil {
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
	return d
}

// testRefused converts src and expects a one-line error that contains all words, and no destination.
func testRefused(t testing.TB, src string, convert func(dst string) error, words ...string) {
	t.Helper()
	parent := t.TempDir()
	err := convert(filepath.Join(parent, "out"))
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
