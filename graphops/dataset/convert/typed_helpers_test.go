package convert

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// typedConverted converts src and opens the result.
func typedConverted(t testing.TB, src string, o Options) (d *dataset.Dataset, stats Stats) {
	t.Helper()
	o.Readers = TypedReaders()
	d = testConverted(t, func(dst string) (err error) {
		stats, err = Convert(t.Context(), src, dst, o)
		return err
	})
	if stats.Nodes != d.Nodes() || stats.Edges != d.Edges() || stats.Features != d.FeatureDim() || stats.Classes != d.Classes() {
		t.Errorf("stats are %+v of %s", stats, d)
	}
	return d, stats
}

// typedRefused converts src and expects a one-line error that contains all words, and no destination.
func typedRefused(t *testing.T, src string, o Options, words ...string) {
	t.Helper()
	o.Readers = TypedReaders()
	testRefused(t, src, func(dst string) error {
		_, err := Convert(t.Context(), src, dst, o)
		return err
	}, words...)
}
