// Package dividedtest divides datasets for tests, and changes the metadata of their directories.
package dividedtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Parts divides a dataset into four parts by [sample.Owner] and returns the opened directory, which the
// end of the test closes and removes.
func Parts(t testing.TB, ds *dataset.Dataset, o divided.Options) *dataset.Dataset {
	t.Helper()
	return PartsBy(t, ds, 4, func(v int32) int { return sample.Owner(v, 4) }, o)
}

// PartsBy is [Parts] with n parts; owner gives the part of each node.
func PartsBy(t testing.TB, ds *dataset.Dataset, n int, owner func(v int32) int, o divided.Options) *dataset.Dataset {
	t.Helper()
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = int32(owner(int32(v)))
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, ds, of, n, o); err != nil {
		t.Fatal(err)
	}
	parts, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close() })
	return parts
}

var digestKeys = regexp.MustCompile(`,\s*"(metadata|head)_digest": "[0-9a-f]*"`)

// Older makes the metadata of a dataset directory, and of its parts, that of a version which did not record the digests
// of all files, so that damage to them is left to other checks.
func Older(t testing.TB, dir string) {
	t.Helper()
	eachMetadata(t, dir, func(text []byte) ([]byte, error) { return digestKeys.ReplaceAll(text, nil), nil })
}

// Undigested makes the metadata of a dataset directory, and of its parts, that of another program, which records no digests.
// Then edit, unless it is nil, changes it.
func Undigested(t testing.TB, dir string, edit func(m map[string]any)) {
	t.Helper()
	eachMetadata(t, dir, func(text []byte) ([]byte, error) {
		m := map[string]any{}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		delete(m, "digests")
		if edit != nil {
			edit(m)
		}
		return json.Marshal(m)
	})
}

// eachMetadata replaces the text of the metadata of a dataset directory, and of its parts.
func eachMetadata(t testing.TB, dir string, change func(text []byte) ([]byte, error)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, dataset.MetadataFile)}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "part-") {
			paths = append(paths, filepath.Join(dir, e.Name(), dataset.MetadataFile))
		}
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			text, err = change(text)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
