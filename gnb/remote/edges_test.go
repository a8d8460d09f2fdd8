package remote_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
)

// Weights, features and times of edges come from servers as they are: in a copy of the dataset, and in
// the blocks of a sampler that asks the servers, whose limit of bytes divides its requests.
func TestEdgeData(t *testing.T) {
	for _, half := range []bool{false, true} {
		ds := graph(t)
		n := int(ds.Edges())
		x, times := &graphops.EdgeFeatures{Cols: 3}, make([]int64, n)
		for e := range n {
			times[e] = int64(e*7919%n) - 40
			for c := range 3 {
				if half {
					x.F16 = append(x.F16, uint16((3*e+c)%0x7c00))
				} else {
					x.F32 = append(x.F32, float32(3*e+c)/16)
				}
			}
		}
		ds.Graph = ds.Graph.WithEdgeData(x, times)
		for name, served := range map[string]*dataset.Dataset{
			"whole": ds, "parts": dividedtest.Parts(t, ds, divided.Options{}), "without topology": dividedtest.Parts(t, ds, divided.Options{NoTopology: true}),
		} {
			c := open(t, remote.Options{}, servetest.Start(t, served, serve.Options{Limits: serve.Limits{Bytes: 12000}}))
			if name != "without topology" {
				got, err := c.Dataset(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got.Graph.EdgeData(), ds.Graph.EdgeData()) {
					t.Errorf("%s: the copy's edges have other data", name)
				}
			}
			d, err := c.Division(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			config := sample.Config{Picker: sample.Fanouts{6, 5}, Seed: 4}
			s, err := sample.NewDivided(d, config)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := sample.New(ds.Graph, config)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Sample(0, 3, sample.Seeds{IDs: ds.Splits["train"][:200]})
			if err != nil {
				t.Fatal(err)
			}
			want, err := whole.Sample(0, 3, sample.Seeds{IDs: ds.Splits["train"][:200]})
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range got.Blocks {
				w := want.Blocks[i]
				p, q := make([]float32, 3*w.NumEdges()), make([]float32, 3*w.NumEdges())
				b.GatherEdgeFeatures(p, b.EdgeFeatureCols(), 0)
				w.GatherEdgeFeatures(q, w.EdgeFeatureCols(), 0)
				if !slices.Equal(b.EdgePos(), w.EdgePos()) || !slices.Equal(b.Times(), w.Times()) || !slices.Equal(b.Weights(), w.Weights()) || !slices.Equal(p, q) {
					t.Errorf("%s, float16 %v: block %d has other edges than the whole graph's", name, half, i)
				}
			}
		}
	}
}
