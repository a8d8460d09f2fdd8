//go:build linux

package feed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu/collective"
)

const (
	embeddedNodes = 53
	embeddedCols  = 5
	embeddedRanks = 4 // virtual ranks of all workers
)

// readRows returns the ids that a virtual rank's batch of a step reads, and the gradients of these rows.
// Some batches have no rows.
func readRows(step, virtual int) (ids []int32, g []float32) {
	r := rand.New(rand.NewPCG(uint64(step), uint64(virtual)))
	for _, v := range r.Perm(embeddedNodes)[:(step*7+virtual*5)%30] {
		ids = append(ids, int32(v))
		for range embeddedCols {
			g = append(g, float32(r.NormFloat64()))
		}
	}
	return ids, g
}

const embeddedSteps = 9

func embeddedLR(step int) float64 { return 0.1 / float64(1+step) }

// referenceRows trains the table in one place: it adds up the gradients of a step in the order of the
// virtual ranks, and then steps.
func referenceRows() (w, m, v []float32) {
	e := nn.NewEmbedding(embeddedNodes, embeddedCols)
	e.Init(7, 0, embeddedNodes)
	adam := nn.NewSparseAdam(nn.AdamOptions{})
	for step := range embeddedSteps {
		sums := map[int32][]float32{}
		for virtual := range embeddedRanks {
			ids, g := readRows(step, virtual)
			for i, v := range ids {
				row := g[i*embeddedCols : (i+1)*embeddedCols]
				if sums[v] == nil {
					sums[v] = slices.Clone(row)
					continue
				}
				for c, x := range row {
					sums[v][c] += x
				}
			}
		}
		var ids []int32
		var g []float32
		for v, row := range sums {
			ids, g = append(ids, v), append(g, row...)
		}
		adam.SetLR(embeddedLR(step))
		adam.Step(e.W, e.Cols, ids, g, 0.25)
	}
	s := adam.State()
	return e.W, s[0].Data, s[1].Data
}

// onHosts is the Comm of a rank on one of several machines: only the ranks of one machine share the memory
// of a matrix.
type onHosts struct {
	collective.Comm
	machine, machines int
}

func (c onHosts) NewMatrix(s collective.Site, rows, cols int) (mine collective.Matrix, err error) {
	for m := range c.machines {
		x, err := c.Comm.NewMatrix(s, rows, cols)
		if err != nil {
			return nil, err
		}
		if m == c.machine {
			mine = x
		}
	}
	return mine, nil
}

// A table has the bits of the reference, however its virtual ranks are divided among ranks and the ranks
// among machines, and each machine has all of it.
func TestEmbeddingsOnAnyWorld(t *testing.T) {
	t.Parallel()
	want, wantM, wantV := referenceRows()
	for _, hosts := range [][]int{{1}, {2}, {4}, {1, 1}, {2, 2}, {1, 3}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			t.Parallel()
			world := 0
			var machine, local []int
			for m, n := range hosts {
				for i := range n {
					machine, local = append(machine, m), append(local, i)
				}
				world += n
			}
			virtual := embeddedRanks / world
			for rank, err := range ranks(t, world, func(c collective.Comm) error {
				rank := c.Rank()
				m := machine[rank]
				c = onHosts{c, m, len(hosts)}
				e, err := NewEmbeddings(EmbeddingOptions{
					Comm: c, Site: func(kind string) collective.Site { return collective.Site{Kind: kind} },
					Machine: m, LocalRank: local[rank], LocalWorld: hosts[m], Nodes: embeddedNodes, Cols: embeddedCols, Seed: 7,
				})
				if err != nil {
					return err
				}
				for step := range embeddedSteps {
					e.Add(readRows(step+100, rank)) // a step without weight
					e.Drop()
					for v := range virtual {
						e.Add(readRows(step, rank*virtual+v))
					}
					if err := e.Step(embeddedLR(step), 0.25); err != nil {
						return err
					}
				}
				s := e.State()
				if e.Steps() != embeddedSteps || !slices.Equal(e.W, want) || !slices.Equal(s[0].Data, wantM) || !slices.Equal(s[1].Data, wantV) {
					return fmt.Errorf("after %d steps the table or its state differs from the reference", e.Steps())
				}
				return c.Barrier(collective.Site{Kind: "compared"})
			}) {
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

// Set replaces rows and state on all ranks, and NotFinite names the node of an own row.
func TestEmbeddingsSet(t *testing.T) {
	t.Parallel()
	want, wantM, wantV := referenceRows()
	for rank, err := range ranks(t, 2, func(c collective.Comm) error {
		e, err := NewEmbeddings(EmbeddingOptions{
			Comm: c, Site: func(kind string) collective.Site { return collective.Site{Kind: kind} },
			LocalRank: c.Rank(), LocalWorld: 2, Nodes: embeddedNodes, Cols: embeddedCols,
		})
		if err != nil {
			return err
		}
		if err := e.Set(want, wantM, wantV, 5); err != nil {
			return err
		}
		if !slices.Equal(e.W, want) || !slices.Equal(e.State()[1].Data, wantV) || e.Steps() != 5 {
			return fmt.Errorf("Set leaves other rows, or %d steps", e.Steps())
		}
		bad := slices.Clone(want)
		bad[2] /= 0 * bad[2] // node 0 belongs to rank 0
		if err := e.Set(bad, nil, nil, 0); err != nil {
			return err
		}
		if e.Steps() != 5 || !slices.Equal(e.State()[0].Data, wantM) {
			return fmt.Errorf("Set of rows alone changes the state")
		}
		found := e.NotFinite()
		if c.Rank() == 1 && found != "" || c.Rank() == 0 && !strings.Contains(found, "learned row of node 0 has") {
			return fmt.Errorf("NotFinite says %q", found)
		}
		return c.Barrier(collective.Site{Kind: "compared"})
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A message that no rank of this version sends is an error, not a panic.
func TestEmbeddingsRefuseMessages(t *testing.T) {
	t.Parallel()
	e, err := NewEmbeddings(EmbeddingOptions{
		Comm: collective.NewSingle(), Site: func(kind string) collective.Site { return collective.Site{Kind: kind} },
		LocalWorld: 1, Nodes: 3, Cols: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"no number":         {1, 0},
		"too short":         {1, 0, 0, 0, 2, 0, 0, 0},
		"too many rows":     {255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0},
		"row 3 of 3":        {1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0},
		"a negative row":    {1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0},
		"rest after a list": {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7},
	} {
		if err := e.take(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
