//go:build linux

package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// heldRows holds the rows of the nodes in one rank's parts.
type heldRows struct {
	sample.Rows
	of   []int32
	rank func(part int32) bool
}

func (h heldRows) Row(v int32) (sample.Row, bool) {
	if uint(v) >= uint(len(h.of)) || !h.rank(h.of[v]) {
		return sample.Row{}, false
	}
	return h.Rows.Row(v)
}

func (h heldRows) Find(nodes []int32, out []sample.Place) int {
	for i, v := range nodes {
		if _, ok := h.Row(v); !ok {
			return h.Rows.Find(nodes[:i], out)
		}
	}
	return h.Rows.Find(nodes, out)
}

// topologyOf divides the nodes of g into parts and gives each rank the same number of parts.
func topologyOf(g *graphops.Graph, parts, rank, world int) Topology {
	t := Topology{Edges: g.EdgeShape(), Part: make([]int32, g.NumNodes()), InDegree: g.InDegrees()}
	for p := range parts {
		t.OwnerOf = append(t.OwnerOf, p*world/parts)
	}
	for v := range t.Part {
		t.Part[v] = int32(sample.Owner(int32(v), parts))
	}
	t.Rows = heldRows{sample.RowsOf(g), t.Part, func(p int32) bool { return t.OwnerOf[p] == rank }}
	return t
}

// The ranks' batches are those that samplers of the whole graph draw for the same shares of seeds.
// Only edges of other ranks' nodes are sent.
func TestDividedSampling(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 600, Features: 4, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	seeds := ds.Splits["train"][:40]
	for _, world := range []int{1, 2, 4} {
		c := sample.Config{Picker: sample.Fanouts{4, 3, 2}, Seed: 9, Transpose: true, Threads: 1}
		for r, err := range ranks(t, world, func(comm collective.Comm) error {
			team := teamOf(comm, nil)
			if err := team.Enter(); err != nil {
				return err
			}
			s, err := team.divided(c, topologyOf(ds.Graph, 4, comm.Rank(), world))
			if err != nil {
				return err
			}
			whole, err := sample.New(ds.Graph, c)
			if err != nil {
				return err
			}
			for step := range 6 {
				lo, hi := sample.Share(step*len(seeds)/5, comm.Rank(), world) // the first batch is empty
				got, err := s.Sample(1, step, sample.Seeds{IDs: seeds[lo:hi]})
				if err != nil {
					return err
				}
				want, err := whole.Sample(1, step, sample.Seeds{IDs: seeds[lo:hi]})
				if err != nil {
					return err
				}
				for i, k := range got.Blocks {
					w := want.Blocks[i]
					if !slices.Equal(k.SrcIDs(), w.SrcIDs()) || !slices.Equal(k.Indices(), w.Indices()) || !slices.Equal(k.EdgePos(), w.EdgePos()) {
						return fmt.Errorf("step %d: block %d is another", step, i)
					}
					for _, v := range w.SrcIDs() {
						if a, b := k.Degrees().LoopedDegree(v), w.Degrees().LoopedDegree(v); a != b || k.Degrees().InDegree(v) != ds.Graph.InDegree(v) {
							return fmt.Errorf("node %d has degree %v, want %v", v, a, b)
						}
					}
				}
				got.Release()
				want.Release()
			}
			if moved := team.Moved(); moved > 0 != (world > 1) {
				return fmt.Errorf("%d bytes moved", moved)
			}
			if team.Together(s, nil) == nil {
				return fmt.Errorf("the pipeline would not know that the sampler needs other ranks")
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%d ranks, rank %d: %v", world, r, err)
			}
		}
	}
}

// If a rank leaves the loop, samples another batch or lacks the edges of its nodes, the run ends
// with an error that says so.
func TestDividedSamplingEnds(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 200, Features: 4, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		f    func(s sample.Batcher, rank int) error // draws the second batch
		rows func(rank int, t *Topology)
		want string
	}{
		"left": {func(s sample.Batcher, rank int) error {
			if rank == 1 {
				return s.(*dividedSampler).Leave()
			}
			_, err := s.Sample(0, 1, sample.Seeds{IDs: all[:10]})
			return err
		}, nil, "rank 1 has left the loop over batches before step 1"},
		"another batch": {func(s sample.Batcher, rank int) error {
			_, err := s.Sample(0, 1+rank, sample.Seeds{IDs: all[:10]})
			return err
		}, nil, "another batch"},
		"no rows": {nil, func(rank int, t *Topology) {
			if rank == 1 {
				t.Rows = heldRows{t.Rows, t.Part, func(int32) bool { return false }}
			}
		}, "rank 1 does not have the in-edges of node"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for r, err := range ranks(t, 2, func(comm collective.Comm) error {
				topology := topologyOf(ds.Graph, 2, comm.Rank(), 2)
				if c.rows != nil {
					c.rows(comm.Rank(), &topology)
				}
				s, err := teamOf(comm, nil).divided(sample.Config{Picker: sample.Fanouts{2, 2}}, topology)
				if err != nil {
					return err
				}
				if _, err := s.Sample(0, 0, sample.Seeds{IDs: all[:10]}); err != nil {
					return err
				}
				return c.f(s, comm.Rank())
			}) {
				if err == nil {
					continue
				}
				if failed++; !strings.Contains(err.Error(), c.want) {
					t.Errorf("rank %d: %v, want %q", r, err, c.want)
				}
			}
			if failed == 0 {
				t.Error("no rank failed")
			}
		})
	}
}

var all = func() []int32 {
	ids := make([]int32, 100)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}()

// A rank that cannot sample a batch ahead of a program that leaves the loop before fails when the loop has ended, and the
// other ranks, which wait for it, end with it.
func TestFailureAhead(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 200, Features: 4, Classes: 4, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	c := sample.Config{Picker: sample.Fanouts{2, 2}}
	for name, open := range map[string]func(team *Team, rank int) (sample.Batcher, error){
		"divided": func(team *Team, rank int) (sample.Batcher, error) {
			return team.divided(c, topologyOf(ds.Graph, 3, rank, 3))
		},
		"cooperative": func(team *Team, _ int) (sample.Batcher, error) { return team.Sampler(c, Key{}) },
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range ranks(t, 3, func(comm collective.Comm) error {
				late := time.AfterFunc(time.Minute, func() { comm.Abort("ranks wait for each other") })
				defer late.Stop()
				team := teamOf(comm, ds)
				if err := team.Enter(); err != nil {
					return err
				}
				s, err := open(team, comm.Rank())
				if err != nil {
					return err
				}
				team.loops.Go(func() {
					for step := range 4 {
						seeds := all[:10]
						if comm.Rank() == 1 && step == 2 {
							seeds = []int32{-1}
						}
						if _, err := s.Sample(0, step, sample.Seeds{IDs: seeds}); err != nil {
							return
						}
					}
				})
				return team.Enter()
			}) {
				want := "seed -1"
				if r != 1 {
					want = "the run was ended: "
				}
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wait for each other") {
					t.Errorf("rank %d: %v, want %q", r, err, want)
				}
			}
		})
	}
}
