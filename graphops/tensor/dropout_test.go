package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// The mask consists of the lanes that the documentation defines, drawn one by one.
func TestDropoutDrawsTheLanesOfTheSpec(t *testing.T) {
	const rows, cols = 3, 35
	cfg := tensor.Config{Train: true, Seed: 7 << 40, Epoch: 9, Step: 11}
	ids := []int32{math.MaxInt32, 0, 12}
	for _, p := range []float64{0.1, 0.5, 0.9, 1e-6, 1 - 1e-6} {
		f := tensor.NewFwd(cfg)
		x := f.Input(rows, cols, ones(rows*cols), &tensor.Space{IDs: ids})
		for site := range 3 {
			got := f.Dropout(x, p).Data()
			for i, v := range got {
				want := float32(0)
				if ref.Kept(cfg.Seed, int64(ids[i/cols]), cfg.Epoch, cfg.Step, site, i%cols, p) {
					want = float32(1 / (1 - p))
				}
				if v != want {
					t.Fatalf("p %g, call %d: element (%d,%d) is %g, want %g", p, site, i/cols, i%cols, v, want)
				}
			}
		}
	}
}

// An element is dropped if its lane is below round(p·65536), not below p·65536 or its floor.
func TestDropoutThreshold(t *testing.T) {
	cfg := tensor.Config{Train: true, Seed: 5}
	const id, col = 77, 3
	w := philox.Block(cfg.Seed, philox.Counter(id, 0, philox.C3(philox.Dropout, 0, 0)))
	lane := float64(w[1] >> 16) // lane 3
	for _, c := range []struct {
		p    float64
		kept bool
	}{{lane / 65536, true}, {(lane + 0.4) / 65536, true}, {(lane + 0.6) / 65536, false}, {(lane + 1) / 65536, false}} {
		f := tensor.NewFwd(cfg)
		out := f.Dropout(f.Input(1, 8, ones(8), &tensor.Space{Start: id}), c.p).Data()
		if kept := out[col] != 0; kept != c.kept {
			t.Errorf("lane %g, p·65536 = %g: kept %v, want %v", lane, c.p*65536, kept, c.kept)
		}
	}
}

// A node has the same row of the mask in another block, at another row, on another thread, and with
// ids counted from a start.
func TestDropoutFollowsTheNode(t *testing.T) {
	const cols = 40
	cfg := tensor.Config{Train: true, Seed: 1, Step: 2}
	mask := func(sp *tensor.Space, rows, threads int) []float32 {
		c := cfg
		c.Threads = threads
		f := tensor.NewFwd(c)
		return slices.Clone(f.Dropout(f.Input(rows, cols, ones(rows*cols), sp), 0.5).Data())
	}
	all := mask(&tensor.Space{}, 1000, 3)
	ids := []int32{999, 3, 500, 4}
	some := mask(&tensor.Space{IDs: ids}, len(ids), 1)
	for r, id := range ids {
		if !slices.Equal(some[r*cols:(r+1)*cols], all[int(id)*cols:(int(id)+1)*cols]) {
			t.Errorf("node %d has another mask in row %d", id, r)
		}
	}
	if !slices.Equal(mask(&tensor.Space{Start: 10}, 5, 1), all[10*cols:15*cols]) {
		t.Error("nodes 10 to 14 have another mask in a space that starts at 10")
	}
	if slices.Equal(all[:cols], all[cols:2*cols]) {
		t.Error("nodes 0 and 1 have the same mask")
	}
}

func TestDropoutChangesWithSeedEpochStepAndCall(t *testing.T) {
	base := tensor.Config{Train: true, Seed: 1, Epoch: 1, Step: 1}
	seen := map[string]string{}
	for name, change := range map[string]func(c *tensor.Config){
		"base":  func(*tensor.Config) {},
		"seed":  func(c *tensor.Config) { c.Seed++ },
		"epoch": func(c *tensor.Config) { c.Epoch++ },
		"step":  func(c *tensor.Config) { c.Step++ },
	} {
		c := base
		change(&c)
		f := tensor.NewFwd(c)
		x := f.Input(1, 128, ones(128), &tensor.Space{})
		for call := range 2 {
			key := ""
			for _, v := range f.Dropout(x, 0.5).Data() {
				key += string(rune('0' + int(v)))
			}
			if other, ok := seen[key]; ok {
				t.Errorf("%s, call %d has the mask of %s", name, call, other)
			}
			seen[key] = name
		}
	}
}

func TestDropoutEdgeCases(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{Train: true})
	x := f.Input(2, 3, ones(6), &tensor.Space{})
	if f.Dropout(x, 0) != x {
		t.Error("p = 0 is not the identity")
	}
	if got := f.Dropout(x, 1).Data(); !slices.Equal(got, make([]float32, 6)) {
		t.Errorf("p = 1 gives %v", got)
	}
	f.Reset(tensor.Config{Grad: true})
	x = f.Input(2, 3, ones(6), nil)
	if f.Dropout(x, 0.5) != x {
		t.Error("evaluation is not the identity, or needs a row space")
	}
}

// With 256,000 lanes, the kept share has a standard deviation of at most 0.001, and the seed is
// fixed, so this cannot fail by chance.
func TestDropoutKeepsItsShare(t *testing.T) {
	for _, p := range []float64{0.1, 0.5, 0.8} {
		f := tensor.NewFwd(tensor.Config{Train: true, Seed: 3})
		const rows, cols = 1000, 256
		out := f.Dropout(f.Input(rows, cols, ones(rows*cols), &tensor.Space{}), p).Data()
		kept := 0
		byColumn := make([]int, cols)
		for i, v := range out {
			if v != 0 {
				kept++
				byColumn[i%cols]++
			}
		}
		if share := float64(kept) / (rows * cols); math.Abs(share-(1-p)) > 0.004 {
			t.Errorf("p %g: %g kept", p, share)
		}
		for c, n := range byColumn {
			if math.Abs(float64(n)/rows-(1-p)) > 0.08 { // five standard deviations of 0.016
				t.Errorf("p %g: column %d keeps %d of %d", p, c, n, rows)
			}
		}
	}
}

// The space of a tensor determines whether dropout may be used.
func TestSpaces(t *testing.T) {
	b := graphops.HostBlock{
		NumDst: 2, NumSrc: 3, DstStart: 1, Indptr: []int64{0, 1, 2}, Indices: []int32{0, 2},
		SrcIDs: []int32{70, 80, 90}, EdgePos: []int64{1 << 40, 6},
	}.Block()
	f := tensor.NewFwd(tensor.Config{})
	h := f.Input(3, 2, ones(6), tensor.SrcSpace(b))
	bare := f.Input(3, 2, ones(6), nil)
	dst := f.Dst(b, h)
	agg := f.Aggregate(b, h, tensor.Sum)
	w := f.Input(2, 2, ones(4), nil)
	nodes := func(ids ...int64) []int64 { return ids }
	for _, c := range []struct {
		name string
		x    *tensor.Tensor
		want []int64 // nil: no space
	}{
		{"input", h, nodes(70, 80, 90)},
		{"elementwise", f.Tanh(h), nodes(70, 80, 90)},
		{"product", f.MatMul(h, w), nodes(70, 80, 90)},
		{"linear", f.Linear(h, w, nil), nodes(70, 80, 90)},
		{"rows", f.Rows(h, 1, 3), nodes(80, 90)},
		{"destinations", dst, nodes(80, 90)},
		{"aggregate", agg, nodes(80, 90)},
		{"destinations + aggregate", f.Add(dst, agg), nodes(80, 90)},
		{"concat", f.Concat(dst, agg), nodes(80, 90)},
		{"with one that has none", f.Add(bare, h), nodes(70, 80, 90)},
		{"of different nodes", f.Add(f.Rows(h, 0, 2), dst), nil},
		{"counted and listed", f.Add(h, f.Input(3, 2, ones(6), &tensor.Space{})), nil},
		{"listed and counted", f.Add(f.Input(3, 2, ones(6), &tensor.Space{}), h), nil},
		{"listed differently", f.Add(h, f.Input(3, 2, ones(6), &tensor.Space{IDs: []int32{70, 80, 91}})), nil},
		{"listed alike elsewhere", f.Add(h, f.Input(3, 2, ones(6), &tensor.Space{IDs: []int32{70, 80, 90}})), nodes(70, 80, 90)},
		{"edges", f.GatherSrc(b, h), nodes(1<<40, 6)},
		{"edges of destinations", f.GatherDst(b, dst), nodes(1<<40, 6)},
		{"some edges", f.Rows(f.GatherSrc(b, h), 0, 1), nil},
		{"edges with nodes", f.Add(f.GatherSrc(b, h), dst), nil},
		{"aggregated edges", f.AggregateEdges(b, f.GatherSrc(b, h), tensor.Max), nodes(80, 90)},
		{"sum", f.SumAll(h), nil},
		{"custom", f.Custom("c", nil, 2, 1, func([]float32) {}, nil), nil},
		{"custom, told", f.Custom("c", nil, 2, 1, func([]float32) {}, nil).SetSpace(&tensor.Space{Start: 5}), nodes(5, 6)},
		{"slice of a graph", f.Dst((&graphops.Graph{Indptr: []int64{0, 0, 0, 0}}).Slice(1, 3), bare), nodes(1, 2)},
	} {
		var got []int64
		if sp := c.x.Space(); sp != nil {
			for r := range c.x.Rows() {
				got = append(got, sp.ID(r))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: rows of %v, want %v", c.name, got, c.want)
		}
	}
}
