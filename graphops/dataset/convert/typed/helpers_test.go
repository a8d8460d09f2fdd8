package typed

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/convert/converttest"
)

// converted converts src and opens the result.
func converted(t testing.TB, src string, o convert.Options) (d *dataset.Dataset, stats convert.Stats) {
	t.Helper()
	o.Readers = Readers()
	d = converttest.Converted(t, func(dst string) (err error) {
		stats, err = convert.Convert(t.Context(), src, dst, o)
		return err
	})
	if stats.Nodes != d.Nodes() || stats.Edges != d.Edges() || stats.Features != d.FeatureDim() || stats.Classes != d.Classes() {
		t.Errorf("stats are %+v of %s", stats, d)
	}
	return d, stats
}

// refused converts src and expects a one-line error that contains all words, and no destination.
func refused(t *testing.T, src string, o convert.Options, words ...string) {
	t.Helper()
	o.Readers = Readers()
	converttest.Refused(t, src, func(dst string) error {
		_, err := convert.Convert(t.Context(), src, dst, o)
		return err
	}, words...)
}
