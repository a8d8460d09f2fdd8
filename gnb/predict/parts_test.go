package predict_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
	_ "github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/gnb/tables"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// dividedInto writes a dataset in parts and opens it.
func dividedInto(t *testing.T, ds *gnb.Dataset, parts int, o divided.Options) *gnb.Dataset {
	t.Helper()
	of := make([]int32, ds.Nodes())
	for v := range of {
		of[v] = int32(v * 7 % parts)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, ds, of, parts, o); err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// A dataset in parts, with and without the whole graph, gives the answers of the undivided one: for known nodes, new ones and added ones.
// So does one whose parts are at a server.
func TestPartsAndServers(t *testing.T) {
	cases := map[string]struct {
		world worldOptions
		model gnb.AnyModel
		o     gnb.ModelOptions
	}{
		"sage":           {worldOptions{later: .1}, gnb.SAGE, gnb.ModelOptions{Hidden: 16}},
		"gcn directed":   {worldOptions{directed: true, weights: true, later: .1}, gnb.GCN, gnb.ModelOptions{Hidden: 16}},
		"gin sparse":     {worldOptions{sparse: true, later: .1}, gnb.GIN, gnb.ModelOptions{Hidden: 16}},
		"sage scaled":    {worldOptions{sparse: true, later: .1}, gnb.SAGE, gnb.ModelOptions{Hidden: 16, ScaleInput: true}},
		"sage half":      {worldOptions{half: true, later: .1}, gnb.SAGE, gnb.ModelOptions{Hidden: 16}},
		"gatv2 of edges": {worldOptions{edgeCols: 4, directed: true, later: .1}, gnb.GATv2, gnb.ModelOptions{Hidden: 16, Heads: 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.world)
			run := train(t, w.old, c.model, c.o)
			old, all := infer(t, run, w.old, 0), infer(t, run, w.all, 0)
			whole, bare := dividedInto(t, w.old, 3, divided.Options{}), dividedInto(t, w.old, 3, divided.Options{NoTopology: true})
			from := map[string]*gnb.Dataset{
				"parts with the whole graph": whole, "parts": bare, "a server": loaded(t, "grpc://"+servetest.Start(t, bare, serve.Options{}).Addr),
				"a server, with the graph here": loaded(t, "grpc://"+servetest.Start(t, whole, serve.Options{}).Addr+"?copy=topology"),
			}
			for from, ds := range from {
				for layer := range 2 {
					p := open(t, run, ds, predict.Options{Precompute: layer})
					a, err := p.Numbered(t.Context(), 5, 30, 119)
					if err != nil {
						t.Fatalf("%s: %v", from, err)
					}
					same(t, from, a, old, []int32{5, 30, 119})
					if layer > 0 {
						if _, err := p.Add(t.Context(), predict.Additions{Edges: w.later}); err != nil {
							t.Fatalf("%s: %v", from, err)
						}
						if a, err = p.New(t.Context(), w.added); err != nil {
							t.Fatalf("%s: %v", from, err)
						}
						same(t, from+", new nodes", a, all, w.news)
					}
					if err := p.Neighbourhood(t.Context(), "30", func(n *predict.Neighbourhood) error {
						if len(n.X) != len(n.Nodes)*cols {
							return fmt.Errorf("%d numbers for %d nodes", len(n.X), len(n.Nodes))
						}
						return nil
					}); err != nil {
						t.Errorf("%s: %v", from, err)
					}
				}
			}
		})
	}
}

func loaded(t *testing.T, name string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// Typed datasets in parts answer as the undivided one; a missing part is named.
func TestTypedParts(t *testing.T) {
	old, _, _, _ := shop(t, tables.Options{Reverses: true})
	run := train(t, old, gnb.RGCN, gnb.ModelOptions{Hidden: 16})
	want := infer(t, run, old, 0)
	ds := dividedInto(t, old, 3, divided.Options{NoTopology: true})
	p := open(t, run, ds, predict.Options{})
	nodes := []int32{1, 33, 60}
	a, err := p.Numbered(t.Context(), nodes...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "typed parts", a, want, nodes)
	if err := os.RemoveAll(dataset.PartDir(ds.Dir(), 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := predict.Open(t.Context(), run, loaded(t, ds.Dir()), predict.Options{Quiet: true}); err == nil || !errors.Is(err, divided.ErrAbsent) || !strings.Contains(err.Error(), "part 1") {
		t.Errorf("without part 1: %v", err)
	}
}
