// Package dividedtest divides datasets for tests.
package dividedtest

import (
	"path/filepath"
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
