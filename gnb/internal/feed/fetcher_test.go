package feed

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/datasets"
)

func TestPlaneOptions(t *testing.T) {
	for text, want := range map[string]struct {
		share float64
		bytes int64
	}{"": {}, "0": {}, "0.2": {0.2, 0}, " 20 % ": {0.2, 0}, "1": {1, 0}, "150%": {1.5, 0}, "512MB": {0, 512 << 20}, "1.5 GiB": {0, 3 << 29}} {
		share, bytes, err := PlaneOptions{Cache: text}.cacheSize()
		if err != nil || share != want.share || bytes != want.bytes {
			t.Errorf("%q was parsed as %v of the rows or %d bytes, %v; want %+v", text, share, bytes, err, want)
		}
	}
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 100, Features: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    PlaneOptions
		want string
	}{
		{PlaneOptions{Cache: "much"}, "it is a share"},
		{PlaneOptions{Cache: "-1"}, "it is a share"},
		{PlaneOptions{Cache: "NaN"}, "it is a share"},
		{PlaneOptions{Cache: "200"}, "it is a share"},
		{PlaneOptions{Prefetch: 1}, "not divided into parts"},
		{PlaneOptions{GPUCache: "some"}, "GPUCache is \"some\"; it is a share"},
		{PlaneOptions{GPUCache: "20%"}, ""},
		{PlaneOptions{}, ""},
	} {
		if err := c.o.Check(ds); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
