package links_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	_ "github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run that copies the graph from servers, and asks them for features, samples, learns and measures what a
// run on the undivided dataset does, to the bit, and its batches have no leak. Small limits of the servers
// split a request into many.
func TestAtServers(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := load(t, planted)
	parts := eighths(t, ds, divided.Options{})
	limits := serve.Limits{Nodes: 100, Edges: 400, Bytes: 3000}
	a, b := servetest.Start(t, parts, serve.Options{Parts: []int{0, 3, 4, 5}, Limits: limits}), servetest.Start(t, parts, serve.Options{Parts: []int{1, 2, 6, 7}})
	both := "grpc://" + a.Addr + "," + b.Addr
	whole := "grpc://" + servetest.Start(t, ds, serve.Options{}).Addr
	for i, s := range promised(linkstest.Servers) {
		if !inTurn(i, 3) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if i > 0 {
				testneed.NotShort(t, "another loader")
			}
			want := undivided(t, s.Setting)
			s.Epochs = 2
			ways := map[string]gnb.LaunchOptions{
				"parts, 2 workers":           {Data: load(t, both+"?copy=topology"), Workers: 2},
				"parts, 4 workers, a cache":  {Data: load(t, both+"?copy=topology"), Workers: 4, PlaneOptions: gnb.PlaneOptions{Cache: "20%", Prefetch: 3}},
				"whole, 2 workers":           {Data: load(t, whole+"?copy=topology"), Workers: 2, VirtualRanks: 4},
				"a copy of all, two workers": {Data: load(t, both+"?copy=all"), Workers: 2, VirtualRanks: 4},
			}
			if i > 0 { // one way each, in turns
				name := slices.Sorted(maps.Keys(ways))[i%len(ways)]
				ways = map[string]gnb.LaunchOptions{name: ways[name]}
			}
			for name, o := range ways {
				got := launched(t, name, s.Setting, o)
				alike(t, name, got, want, false)
			}
		})
	}
	for i, e := range embeddings() {
		if i > 0 && testing.Short() {
			break
		}
		o := e.small(t, 1)
		o.VirtualRanks = 2
		want, err := links.Embed(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := links.Embed(t.Context(), load(t, whole+"?copy=topology"), e.small(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(embedded(t, got), embedded(t, want)) {
			t.Errorf("%s: other embeddings", e.name)
		}
	}
	// Scores and recommendations by features from servers are those of the undivided dataset.
	run, err := links.Train(t.Context(), ds, links.Options{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Quiet: true, RunDir: t.TempDir()}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := filesOf(t, run, ds, 1, true)
	for i, b := range filesOf(t, run, load(t, both+"?copy=topology"), 2, true).files {
		if !bytes.Equal(b, want.files[i]) {
			t.Errorf("file %d of inference differs", i)
		}
	}
	if _, err := links.Train(t.Context(), load(t, both), links.Options{}); err == nil || !strings.Contains(err.Error(), "are at servers; load "+both+"?copy=topology") {
		t.Error(err)
	}
}
