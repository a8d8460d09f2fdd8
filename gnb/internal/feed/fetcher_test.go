package feed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/datasets"
)

// A cache in bytes is a machine's, and its ranks share it out. The run says so.
func TestCacheOfMachine(t *testing.T) {
	const each = 2 << 20
	for policy, want := range map[string]string{"": "share it", BeladyPolicy: "have 2.0 MiB each"} {
		var said []string
		f := &Fetcher{o: PlaneOptions{Cache: "8MB", CachePolicy: policy}, at: Place{LocalWorld: 4, Note: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}}
		got, err := f.cacheBytes()
		if err != nil || got != each {
			t.Errorf("a rank has %d bytes of the cache, %v; want %d", got, err, each)
		}
		f.sayCache(got)
		if len(said) != 1 || !strings.Contains(said[0], "4 workers "+want) || !strings.Contains(said[0], "8.0 MiB") {
			t.Errorf("the run says %q", said)
		}
		if s := f.o.Sizes(Reads{Own: 1 << 18, Nodes: 1 << 20, RowBytes: 64, Elsewhere: true, Local: 4}); s.Cache != each {
			t.Errorf("the planner counts %d bytes for a rank, want %d", s.Cache, each)
		}
	}
}

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
