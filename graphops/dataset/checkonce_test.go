package dataset

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/testneed"
)

// checkedBytes returns the number of bytes that CheckOnce reports as read, for a directory of any
// size.
func checkedBytes(t *testing.T, d *Dataset) (bytes int64) {
	t.Helper()
	err := d.CheckOnce(t.Context(), CheckOnceOptions{Always: -1, Report: func(_, total int64) { bytes = max(bytes, total) }})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// CheckOnce does not read content again that was checked when it was written or by an earlier
// CheckOnce; it reads content that has changed since.
func TestCheckOnce(t *testing.T) {
	ownHome(t)
	for name, d := range map[string]*Dataset{"small": small(t), "rich": rich(t), "ones": ones(t), "edged": edged(t)} {
		t.Run(name, func(t *testing.T) {
			dir := stored(t, d)
			if n := checkedBytes(t, openKeeping(t, dir)); n != 0 {
				t.Errorf("%d bytes were read of content that was checked when it was written", n)
			}
			meta(t, dir, func(m map[string]any) { delete(m, "digests") })
			if n := checkedBytes(t, openKeeping(t, dir)); n == 0 {
				t.Error("nothing was read of a directory without a recorded check")
			}
			for range 2 {
				if n := checkedBytes(t, openKeeping(t, dir)); n != 0 {
					t.Errorf("%d bytes were read again of checked content", n)
				}
			}
			meta(t, dir, func(m map[string]any) { m["undirected"] = false })
			if n := checkedBytes(t, openKeeping(t, dir)); n == 0 {
				t.Error("nothing was read after the metadata changed")
			}
			if d := openKeeping(t, dir); d.SplitSets() > 1 {
				view, err := d.WithSplitSet(1)
				if err != nil {
					t.Fatal(err)
				}
				if n := checkedBytes(t, view); n != 0 {
					t.Errorf("%d bytes were read again for a view", n)
				}
			}
		})
	}
	// A file that is rewritten with the same content is read once more; the check is then recorded
	// again.
	dir := stored(t, small(t))
	text, err := os.ReadFile(filepath.Join(dir, featuresFile))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, featuresFile, text)
	if checkedBytes(t, openKeeping(t, dir)) == 0 {
		t.Error("a rewritten file was not checked")
	}
	// Small datasets and those in memory are checked every time.
	for name, d := range map[string]*Dataset{"small": open(t, dir), "memory": small(t)} {
		calls := 0
		o := CheckOnceOptions{Report: func(int64, int64) { calls++ }}
		if name == "memory" {
			o.Always = -1
		}
		if err := d.CheckOnce(t.Context(), o); err != nil || calls == 0 {
			t.Errorf("%s: %d reports, %v", name, calls, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(t, dir).CheckOnce(ctx, CheckOnceOptions{Always: -1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Damage to a directory is found before a run, for directories above and below the size that is
// checked every time, and whether or not the directory was valid when it was written.
func TestHostileOfAnySize(t *testing.T) {
	testneed.Raced(t, "it damages and opens a dataset for each case")
	ownHome(t)
	nan, ninf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name string
		make func(testing.TB) *Dataset
		edit func(t *testing.T, dir string)
		file string
		want string
	}{
		{"NaN in features", small, func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyFloat32, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, nan}, 5, 2)
		}, featuresFile, "row 4, column 1 is NaN; features must be finite"},
		{"infinite features", small, func(t *testing.T, dir string) {
			putNPY(t, dir, featuresFile, npyFloat32, []float32{ninf, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 5, 2)
		}, featuresFile, "row 0, column 0 is -Inf"},
		{"NaN in sparse features", rich, func(t *testing.T, dir string) { poke(t, dir, featuresValuesFile, npyFloat32, 0, nan) }, featuresValuesFile, "entry 0: NaN"},
		{"sparse columns out of range", ones, func(t *testing.T, dir string) { poke(t, dir, featuresIndicesFile, npyInt32, 0, int32(1000)) }, featuresIndicesFile, "column 1000"},
		{"NaN in weights", rich, func(t *testing.T, dir string) { poke(t, dir, weightsFile, npyFloat32, 1, nan) }, weightsFile, "entry 1 is NaN"},
		{"negative weights", rich, func(t *testing.T, dir string) { poke(t, dir, weightsFile, npyFloat32, 1, float32(-1)) }, weightsFile, "entry 1 is -1"},
		{"ids of validation out of range", small, func(t *testing.T, dir string) { putNPY(t, dir, "split_val.npy", npyInt32, []int32{5}, 1) }, "split_val.npy", "entry 0 is 5; the graph has the nodes 0 to 4"},
		{"negative ids of validation", small, func(t *testing.T, dir string) { putNPY(t, dir, "split_val.npy", npyInt32, []int32{-1}, 1) }, "split_val.npy", "entry 0 is -1"},
		{"nodes twice in a split", small, func(t *testing.T, dir string) { putNPY(t, dir, "split_val.npy", npyInt32, []int32{1, 1}, 2) }, "split_val.npy", "entry 1 is 1, which is already in the split"},
		{"splits that overlap", small, func(t *testing.T, dir string) { putNPY(t, dir, "split_test.npy", npyInt32, []int32{4, 2}, 2) }, "split_test.npy", "entry 1 is 2, which is also in split train"},
		{"labels that are no class", small, func(t *testing.T, dir string) { poke(t, dir, labelsFile, npyInt32, 4, int32(3)) }, labelsFile, "entry 4 is 3"},
		{"targets that are none", rich, func(t *testing.T, dir string) { poke(t, dir, labelsFile, npyInt8, 0, int8(7)) }, labelsFile, "row 0, column 0 is 7"},
		{"unsorted edges", small, func(t *testing.T, dir string) {
			row := small(t).Graph.InNeighbors(3)
			if len(row) < 2 || row[0] == row[1] {
				t.Fatal("node 3 needs two different sources")
			}
			at := int(small(t).Graph.Indptr[3])
			poke(t, dir, indicesFile, npyInt32, at, row[1])
			poke(t, dir, indicesFile, npyInt32, at+1, row[0])
		}, indicesFile, "do not ascend"},
		{"sources out of range", small, func(t *testing.T, dir string) { poke(t, dir, indicesFile, npyInt32, 0, int32(5)) }, indicesFile, "source 5"},
		{"an indptr that falls", small, func(t *testing.T, dir string) { poke(t, dir, indptrFile, npyInt64, 1, int64(100)) }, indptrFile, "entry"},
		{"a false undirected", directed, func(t *testing.T, dir string) { meta(t, dir, func(m map[string]any) { m["undirected"] = true }) }, MetadataFile, "some edge has no reverse edge"},
	} {
		for _, how := range []struct {
			name   string
			always int64
			// recorded: the directory records a check; checked: it was checked once, and the result
			// is kept.
			recorded, checked bool
		}{{"checked every time", 0, true, false}, {"written", -1, true, false}, {"by hand", -1, false, false}, {"checked before", -1, false, true}} {
			t.Run(c.name+", "+how.name, func(t *testing.T) {
				dir := stored(t, c.make(t))
				if !how.recorded {
					meta(t, dir, func(m map[string]any) { delete(m, "digests") })
				}
				if how.checked {
					if d := openKeeping(t, dir); checkedBytes(t, d) == 0 || checkedBytes(t, d) != 0 {
						t.Fatal("the result of the check was not kept")
					}
				}
				c.edit(t, dir)
				d := openKeeping(t, dir)
				err := d.CheckOnce(t.Context(), CheckOnceOptions{Always: how.always})
				if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, c.file)) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v\nwant an error about %s with %q", err, c.file, c.want)
				}
			})
		}
	}
}

// directed returns a dataset in which some edge has no reverse edge.
func directed(t testing.TB) *Dataset {
	t.Helper()
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{1, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &Dataset{Graph: g, Meta: Metadata{Name: "directed"}}
}

// poke changes an element of a stored array.
func poke[T number](t *testing.T, dir, name string, dtype interface{ String() string }, at int, x T) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := parseNPY(text)
	if err != nil || a.dtype.String() != dtype.String() {
		t.Fatalf("%s is %s (%v), not %s", name, a.dtype, err, dtype)
	}
	elements := slices.Clone(view[T](slices.Clone(a.data)))
	elements[at] = x
	put(t, dir, name, slices.Concat(text[:len(text)-len(a.data)], rawBytes(elements)))
}

// Splits may overlap if the metadata permits it; this concerns only train, val and test of one set.
func TestOverlappingSplits(t *testing.T) {
	for name, c := range map[string]struct {
		splits map[string][]int32
		want   string
	}{
		"none":             {map[string][]int32{"train": {0, 1}, "val": {2}, "test": {3, 4}}, ""},
		"train and test":   {map[string][]int32{"train": {0, 1}, "test": {3, 1}}, "split_test.npy of small: entry 1 is 1, which is also in split train"},
		"train and val":    {map[string][]int32{"train": {0, 1}, "val": {0}, "test": {3}}, "split_val.npy of small: entry 0 is 0, which is also in split train"},
		"val and test":     {map[string][]int32{"train": {0}, "val": {2, 4}, "test": {4}}, "split_test.npy of small: entry 0 is 4, which is also in split val"},
		"another set":      {map[string][]int32{"train@1": {0}, "test@1": {0}}, "split_test@1.npy of small: entry 0 is 0, which is also in split train@1"},
		"two sets":         {map[string][]int32{"train": {0}, "test": {1}, "train@1": {1}, "test@1": {0}}, ""},
		"an extra split":   {map[string][]int32{"train": {0}, "all": {0, 1, 2, 3, 4}}, ""},
		"a split of tests": {map[string][]int32{"test": {1, 2}, "tested": {1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := small(t)
			d.Splits = c.splits
			err := d.Check(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "overlapping_splits")) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			dir := filepath.Join(t.TempDir(), "d")
			if err := Write(dir, d); (err == nil) != (c.want == "") {
				t.Errorf("writing it: %v", err)
			}
			d.Meta.OverlappingSplits = true
			if err := d.Check(t.Context()); err != nil {
				t.Errorf("permitted: %v", err)
			}
		})
	}
}

// An edge without its reverse edge is found at any position, and so is one with too many reverse
// edges.
func TestOpposites(t *testing.T) {
	testneed.NotShort(t, "it validates a graph thousands of times")
	d := planted(t, 5000, 50)
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, len(d.Graph.Indices) / 2, len(d.Graph.Indices) - 1} {
		was := d.Graph.Indices[at]
		for v := range int32(5000) {
			d.Graph.Indices[at] = v
			if d.Graph.Validate() == nil && v != was {
				break
			}
		}
		symmetric := d.Graph.Symmetric()
		if found := graphops.NewReverses().Of(d.Graph, 0, d.Nodes()) == 0; found != symmetric || found {
			t.Errorf("edge %d from another node: symmetric %v, want %v and false", at, found, symmetric)
		}
		d.Graph.Indices[at] = was
	}
	twice := &graphops.Graph{Indptr: []int64{0, 2, 3}, Indices: []int32{1, 1, 0}}
	if twice.Symmetric() || graphops.NewReverses().Of(twice, 0, 2) == 0 {
		t.Error("a duplicate edge passed with only one reverse edge")
	}
	if loop := (&graphops.Graph{Indptr: []int64{0, 1}, Indices: []int32{0}}); graphops.NewReverses().Of(loop, 0, 1) != 0 {
		t.Error("a self-loop did not pass as its own reverse edge")
	}
}

// A dataset in which a program has replaced an opened array does not count as stored.
func TestStored(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(d *Dataset)
		want bool
	}{
		"as opened":       {func(*Dataset) {}, true},
		"another name":    {func(d *Dataset) { d.Meta.Name = "x" }, true},
		"features":        {func(d *Dataset) { d.Features = &Matrix{Rows: 5, Cols: 2, F32: slices.Clone(d.Features.F32)} }, false},
		"no features":     {func(d *Dataset) { d.Features = nil }, false},
		"labels":          {func(d *Dataset) { d.Labels = slices.Clone(d.Labels) }, false},
		"labels, in part": {func(d *Dataset) { d.Labels[1] = 2 }, false},
		"a split":         {func(d *Dataset) { d.Splits["val"] = []int32{2} }, false},
		"one split more":  {func(d *Dataset) { d.Splits["more"] = []int32{2} }, false},
		"one split less":  {func(d *Dataset) { delete(d.Splits, "extra") }, false},
		"a graph":         {func(d *Dataset) { d.Graph = d.Graph.Reverse(1) }, false},
		"classes":         {func(d *Dataset) { d.Meta.NumClasses++ }, false},
		"metric":          {func(d *Dataset) { d.Meta.Metric = MetricROCAUC }, false},
	} {
		dir := stored(t, small(t))
		putNPY(t, dir, labelsFile, npyInt64, []int64{0, 1, 2, -1, 0}, 5) // int64 labels are converted, so the program has a copy
		d := open(t, dir)
		c.edit(d)
		if d.Stored() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
	d := open(t, stored(t, rich(t)))
	view, err := d.WithSplitSet(1)
	if err != nil || !view.Stored() {
		t.Errorf("a view does not count as stored: %v", err)
	}
	view.Splits["train"] = []int32{0}
	if view.Stored() || !d.Stored() {
		t.Error("a view with a replaced split counts as stored, or its dataset does not")
	}
	if looped, err := open(t, stored(t, small(t))).WithSelfLoops(); err != nil || looped.Stored() {
		t.Errorf("with self-loops: %v", err)
	}
	if small(t).Stored() {
		t.Error("a dataset in memory counts as stored")
	}
}

func BenchmarkCheck(b *testing.B) {
	d := planted(b, 1<<17, 64)
	b.SetBytes(d.Bytes())
	for b.Loop() {
		if err := d.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
