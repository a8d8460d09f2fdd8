//go:build linux

package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Ranks that have one part each get the features of the whole dataset for their sampled batches, in
// float32 and float16.
func TestBook(t *testing.T) {
	for _, half := range []bool{false, true} {
		ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 900, Features: 10})
		if err != nil {
			t.Fatal(err)
		}
		if half {
			if ds.Features, err = ds.Features.Float16(); err != nil {
				t.Fatal(err)
			}
		}
		const parts = 3
		of := make([]int32, ds.Nodes())
		for v := range of {
			of[v] = int32(sample.Owner(int32(v), parts))
		}
		dir := filepath.Join(t.TempDir(), "all")
		if err := divided.Write(t.Context(), dir, ds, of, parts, divided.Options{}); err != nil {
			t.Fatal(err)
		}
		for r, err := range ranks(t, parts, func(c collective.Comm) error {
			mine := filepath.Join(t.TempDir(), fmt.Sprint("machine", c.Rank()))
			if err := os.CopyFS(mine, os.DirFS(dir)); err != nil {
				return err
			}
			for p := range parts {
				if p != c.Rank() {
					if err := os.RemoveAll(filepath.Join(mine, fmt.Sprintf("part-%04d", p))); err != nil {
						return err
					}
				}
			}
			book, err := divided.Open(mine)
			if err != nil {
				return err
			}
			defer book.Close()
			own := NewBook(book, book.Here(), 2)
			beside, err := c.Split(collective.Site{Kind: "beside"})
			if err != nil {
				return err
			}
			w := Open(context.Background(), Options{
				Source:   &Exchange{Comm: beside, Owner: book.PartOf, Own: own, RowBytes: own.RowBytes()},
				Own:      own,
				RowBytes: own.RowBytes(), Bytes: 1 << 20, Batches: 4, Threads: 2,
			})
			s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{4, 3}})
			if err != nil {
				return err
			}
			var tickets []*Ticket
			var all [][]int32
			for step := range 4 {
				b, err := s.Sample(0, step, sample.Seeds{IDs: ds.Splits["train"][100*step+30*c.Rank():][:30]})
				if err != nil {
					return err
				}
				ticket, err := w.Ask(b.InputIDs())
				if err != nil {
					return err
				}
				tickets, all = append(tickets, ticket), append(all, b.InputIDs())
			}
			var m dataset.Matrix
			for i, ticket := range tickets {
				if err := ticket.Gather(nil, own.Reset(&m, len(all[i]))); err != nil {
					return err
				}
				want := make([]float32, len(all[i])*ds.FeatureDim())
				ds.Features.Gather(want, all[i], 1)
				if m.Half() != half || !slices.Equal(m.Float32().F32, want) {
					return fmt.Errorf("batch %d has other features than the dataset", i)
				}
			}
			w.Close()
			w.Wait()
			return nil
		}) {
			if err != nil {
				t.Errorf("float16 %v, rank %d: %v", half, r, err)
			}
		}
	}
}
