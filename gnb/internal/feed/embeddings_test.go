//go:build linux

package feed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
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
	adam := optim.NewSparseAdam(optim.AdamOptions{})
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

// embeddedDivision divides a graph into parts of different sizes, whose nodes are no ranges.
func embeddedDivision(t *testing.T) *dataset.Dataset {
	t.Helper()
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: embeddedNodes, Features: 5})
	if err != nil {
		t.Fatal(err)
	}
	dir, of := filepath.Join(t.TempDir(), "parts"), make([]int32, embeddedNodes)
	for v := range of {
		of[v] = []int32{0, 1, 2, 3, 1, 1, 2}[v%7]
	}
	if err := divided.Write(t.Context(), dir, ds, of, embeddedRanks, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	book, err := divided.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	return book.Dataset()
}

func embeddedParts(t *testing.T, ds *dataset.Dataset, rank, world int) *Parts {
	if ds == nil {
		return nil
	}
	p, err := NewParts(ds, rank, world, 0)
	if err != nil {
		t.Error(err)
	}
	return p
}

// ownerOf is the rank that has a row: in the reference, by division or ranges.
func ownerOf(p *Parts, v int32, world int) int {
	if p != nil {
		return p.Rank(p.PartOf(v))
	}
	for r := range world {
		if lo, hi := collective.Share(embeddedNodes, r, world); lo <= int(v) && int(v) < hi {
			return r
		}
	}
	return -1
}

// sameTable gathers a table at rank 0, and compares it there.
func sameTable(e *Embeddings, want ...[]float32) error {
	for i, w := range want {
		var got []float32
		if e.rank == 0 {
			got = make([]float32, len(w))
		}
		if err := e.Gather(i, got); err != nil {
			return err
		}
		if e.rank == 0 && !slices.Equal(got, w) {
			return fmt.Errorf("array %d of the table differs from the reference", i)
		}
	}
	return nil
}

// A table has the bits of the reference, however its virtual ranks are divided among ranks and the ranks
// among machines, and on several machines each has its own rows alone.
func TestEmbeddingsOnAnyWorld(t *testing.T) {
	t.Parallel()
	want, wantM, wantV := referenceRows()
	for _, c := range []struct {
		hosts   []int
		divided bool
	}{{[]int{1}, false}, {[]int{2}, false}, {[]int{4}, false}, {[]int{1, 1}, false}, {[]int{2, 2}, false}, {[]int{1, 3}, false}, {[]int{1, 1}, true}, {[]int{1, 3}, true}, {[]int{1, 1, 2}, true}} {
		hosts := c.hosts
		t.Run(fmt.Sprint(hosts, c.divided), func(t *testing.T) {
			t.Parallel()
			world := 0
			var machine []int
			for m, n := range hosts {
				machine = append(machine, slices.Repeat([]int{m}, n)...)
				world += n
			}
			virtual := embeddedRanks / world
			var division *dataset.Dataset
			if c.divided {
				division = embeddedDivision(t)
			}
			for rank, err := range ranks(t, world, func(c collective.Comm) error {
				rank := c.Rank()
				m := machine[rank]
				c = onHosts{c, m, len(hosts)}
				parts := embeddedParts(t, division, rank, world)
				e, err := NewEmbeddings(EmbeddingOptions{
					Comm: c, Site: func(kind string) collective.Site { return collective.Site{Kind: kind} },
					Machine: m, Nodes: embeddedNodes, Cols: embeddedCols, Seed: 7, Parts: parts,
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
					if err := errors.Join(e.Collect(), e.Step(embeddedLR(step), 0.25)); err != nil {
						return err
					}
				}
				if e.Steps() != embeddedSteps || e.Apart() != (len(hosts) > 1) {
					return fmt.Errorf("the table has made %d steps, and says %v of being on several machines", e.Steps(), e.Apart())
				}
				if err := sameTable(e, want, wantM, wantV); err != nil {
					return err
				}
				// A machine's memory has its own rows alone, with room for those of the largest one.
				most := 0
				for m := range hosts {
					own := 0
					for v := range int32(embeddedNodes) {
						if machine[ownerOf(parts, v, world)] == m {
							own++
						}
					}
					most = max(most, own)
				}
				if got := e.Embedding.Rows(); got != most || most == embeddedNodes && len(hosts) > 1 {
					return fmt.Errorf("machine %d has memory for %d rows of %d; its part is at most %d", m, got, embeddedNodes, most)
				}
				// Any rank reads any row, wherever it is.
				var ids []int32
				for v := rank; v < embeddedNodes; v += 1 + rank {
					ids = append(ids, int32(v))
				}
				rows, err := e.Read(ids)
				if err != nil {
					return err
				}
				for i, v := range ids {
					if !slices.Equal(rows[i*embeddedCols:(i+1)*embeddedCols], want[int(v)*embeddedCols:int(v+1)*embeddedCols]) {
						return fmt.Errorf("the row of node %d that was read differs from the reference", v)
					}
				}
				if len(hosts) == 1 { // onHosts does not publish to other machines
					all, err := e.All(collective.Site{Kind: "all"})
					if err != nil {
						return err
					}
					if !slices.Equal(all.Data(), want) {
						return fmt.Errorf("the matrix of all rows differs from the reference")
					}
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
			Machine: 0, Nodes: embeddedNodes, Cols: embeddedCols,
		})
		if err != nil {
			return err
		}
		if err := e.Set([][]float32{want, wantM, wantV}, 5); err != nil {
			return err
		}
		if !slices.Equal(e.W, want) || !slices.Equal(e.State()[1].Data, wantV) || e.Steps() != 5 {
			return fmt.Errorf("Set leaves other rows, or %d steps", e.Steps())
		}
		bad := slices.Clone(want)
		bad[2] /= 0 * bad[2] // node 0 belongs to rank 0
		if err := e.Set([][]float32{bad}, 0); err != nil {
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

// If a rank sends more or fewer learned rows than it owns, rank 0 reports an error.
func TestEmbeddingsNeedAllRows(t *testing.T) {
	t.Parallel()
	for rank, err := range ranks(t, 2, func(c collective.Comm) error {
		e, err := NewEmbeddings(EmbeddingOptions{
			Comm: c, Site: func(kind string) collective.Site { return collective.Site{Kind: kind} }, Machine: c.Rank(), Nodes: 9, Cols: 3,
		})
		if err != nil || c.Rank() == 1 {
			return err
		}
		own := 9 - (e.hi - e.lo)
		for _, n := range []int{0, 12 * (own - 1), 12*own - 1, 12 * own, 12 * (own + 1)} {
			e.o.Comm = sends{c, n}
			err := e.Gather(0, make([]float32, 27))
			if (err == nil) != (n == 12*own) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("rank 1 sent %d bytes of learned rows; expected %d", n, 12*own)) {
				return fmt.Errorf("%d bytes of rank 1: %w", n, err)
			}
		}
		return nil
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
		Nodes: 3, Cols: 1,
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
