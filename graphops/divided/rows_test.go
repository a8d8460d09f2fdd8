package divided_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
)

// The rows of all ranks' parts are those of the whole graph, each at one rank. Samplers that
// request them draw the batches of the whole graph.
func TestRows(t *testing.T) {
	all := kinds(t)
	_, of := planted(t)
	for _, name := range []string{"plain", "weighted", "edges", "half edges"} {
		ds := all[name]
		for _, world := range []int{1, 2, 4} {
			if testing.Short() && world == 4 {
				continue
			}
			dir := write(t, ds, of, divided.Options{NoTopology: world == 2})
			b, err := divided.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			whole := sample.RowsOf(ds.Graph)
			var ranks []sample.Rows
			for r := range world {
				rows, err := b.Rows(b.PartsOf(r, world))
				if err != nil {
					t.Fatal(err)
				}
				ranks = append(ranks, rows)
			}
			for v := int32(-1); v <= int32(ds.Nodes()); v++ {
				want, there := whole.Row(v)
				for r, rows := range ranks {
					row, ok := rows.Row(v)
					if mine := there && b.Ranks(world)[of[v]] == r; ok != mine {
						t.Fatalf("rank %d has node %d: %v, want %v", r, v, ok, mine)
					}
					if !ok {
						continue
					}
					var sources []int32
					for _, s := range row.Sources {
						sources = append(sources, row.IDs[s])
					}
					if !slices.Equal(sources, want.Sources) || row.First != want.First || !slices.Equal(row.Weights(), want.Weights()) || !slices.Equal(row.Times(), want.Times()) || rows.Edges() != whole.Edges() {
						t.Fatalf("node %d: %v at %d with weights %v and times %v, want %v", v, sources, row.First, row.Weights(), row.Times(), want)
					}
				}
			}
			sameSamples(t, ds, b, ranks, world)
		}
	}
}

func sameSamples(t *testing.T, ds *dataset.Dataset, b *divided.Book, ranks []sample.Rows, world int) {
	t.Helper()
	config := sample.Config{Picker: sample.Fanouts{4, 3}, Seed: 8}
	s, err := sample.NewDivided(sample.Division{
		Nodes: ds.Nodes(), Edges: ranks[0].Edges(), Owners: world, Part: b.Of(), OwnerOf: b.Ranks(world),
		Ask: func(requests []sample.HopRequest) ([]sample.HopReply, error) {
			replies := make([]sample.HopReply, world)
			var errs []error
			for r := range requests {
				errs = append(errs, sample.NewAnswerer(ranks[r], sample.AnswererOptions{}).Answer(&requests[r], &replies[r]))
			}
			return replies, errors.Join(errs...)
		},
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := sample.New(ds.Graph, config)
	if err != nil {
		t.Fatal(err)
	}
	got, want := sample.NewDigest(), sample.NewDigest()
	for step := range 3 {
		var batches []*sample.Batch
		for d, smp := range map[*sample.Digest]sample.Batcher{got: s, want: whole} {
			batch, err := smp.Sample(0, step, sample.Seeds{IDs: ds.Splits["train"][20*step:][:20]})
			if err != nil {
				t.Fatal(err)
			}
			d.AddBatch(batch)
			batches = append(batches, batch)
		}
		for i, one := range batches[0].Blocks {
			other := batches[1].Blocks[i]
			cols := ds.EdgeFeatureDim()
			x, y := make([]float32, cols*one.NumEdges()), make([]float32, cols*one.NumEdges())
			if cols > 0 {
				one.GatherEdgeFeatures(x, one.EdgeFeatureCols(), 1)
				other.GatherEdgeFeatures(y, other.EdgeFeatureCols(), 1)
			}
			if !slices.Equal(one.Times(), other.Times()) || !slices.Equal(x, y) || one.HasTimes() != ds.HasEdgeTimes() {
				t.Errorf("%d ranks: the edges of a block have other features or times", world)
			}
		}
	}
	if got.Sum() != want.Sum() {
		t.Errorf("%d ranks: the digest differs", world)
	}
}

// Requesting rows of a part that is on another machine gives an error that names the part.
func TestRowsOfAbsentPart(t *testing.T) {
	ds, of := planted(t)
	dir := write(t, ds, of, divided.Options{})
	if err := os.RemoveAll(dataset.PartDir(dir, 2)); err != nil {
		t.Fatal(err)
	}
	b, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Rows([]int{0, 1, 3}); err != nil {
		t.Error(err)
	}
	if _, err := b.Rows([]int{1, 2}); !errors.Is(err, divided.ErrAbsent) {
		t.Error(err)
	}
}
