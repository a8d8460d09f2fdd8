// Package dividedtest divides datasets for tests.
package dividedtest

import (
	"os"
	"path/filepath"
	"regexp"
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
	parts, err := filepath.Glob(filepath.Join(dir, "part-*", dataset.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(parts, filepath.Join(dir, dataset.MetadataFile)) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, digestKeys.ReplaceAll(text, nil), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
