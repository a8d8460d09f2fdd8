package divided_test

import (
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// The size of a divided dataset counts the parts that are here, and only these.
func TestPartBytes(t *testing.T) {
	whole, err := datasets.Load("planted?nodes=3000&features=64")
	if err != nil {
		t.Fatal(err)
	}
	ds := dividedtest.Parts(t, whole, divided.Options{})
	parts, bytes := ds.PartBytes()
	if parts != ds.Meta.Parts.Count || bytes < 3000*64*4 {
		t.Errorf("%d parts of %d bytes; the features alone have %d", parts, bytes, 3000*64*4)
	}
	if err := os.RemoveAll(dataset.PartDir(ds.Dir(), 1)); err != nil {
		t.Fatal(err)
	}
	fewer, less := ds.PartBytes()
	if fewer != parts-1 || less >= bytes || !strings.Contains(ds.String(), "here") {
		t.Errorf("without a part: %d parts of %d bytes, %s", fewer, less, ds)
	}
	if n, b := whole.PartBytes(); n != 0 || b != 0 {
		t.Errorf("a whole dataset has %d parts of %d bytes", n, b)
	}
}
