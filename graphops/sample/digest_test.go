package sample_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/testneed"
)

type digestCase struct {
	seed    uint64
	epoch   int
	batch   int
	fanouts []int
	steps   int           // 0 means all
	labor   *sample.Labor // without fanouts; nil means uniform sampling
}

// picker is the case's picker.
func (c digestCase) picker() sample.Picker {
	if c.labor == nil {
		return sample.Fanouts(c.fanouts)
	}
	l := *c.labor
	l.Fanouts = c.fanouts
	return l
}

// digestOf samples each rank's share of each step with the rank's own sampler and merges the picks.
func digestOf(t *testing.T, g *graphops.Graph, train []int32, c digestCase, world, threads int) string {
	t.Helper()
	ranks := make([]*sample.Sampler, world)
	for r := range ranks {
		ranks[r] = newSampler(t, g, sample.Config{Picker: c.picker(), Seed: c.seed, Threads: threads})
	}
	order := sample.EpochOrder(c.seed, c.epoch, train)
	d := sample.NewDigest()
	for step := 0; step*c.batch < len(order) && (c.steps == 0 || step < c.steps); step++ {
		seeds := order[step*c.batch : min((step+1)*c.batch, len(order))]
		var picks [][]byte
		for r, s := range ranks {
			lo, hi := sample.Share(len(seeds), r, world)
			b := mustSample(t, s, c.epoch, step, seeds[lo:hi])
			picks = append(picks, sample.EncodePicks(b))
			b.Release()
		}
		if err := d.AddStep(sample.Seeds{IDs: seeds}, picks); err != nil {
			t.Fatal(err)
		}
	}
	return d.Sum()
}

// refDigest returns the digest of the reference sampler's batches.
func refDigest(g *graphops.Graph, train []int32, c digestCase) string {
	sha := sha256.New()
	word := func(v int32) { _ = binary.Write(sha, binary.LittleEndian, v) }
	order := sample.EpochOrder(c.seed, c.epoch, train)
	for step := 0; step*c.batch < len(order) && (c.steps == 0 || step < c.steps); step++ {
		seeds := order[step*c.batch : min((step+1)*c.batch, len(order))]
		for _, v := range seeds {
			word(v)
		}
		for _, h := range refSample(g, c.seed, philox.Sample, c.epoch, step, c.fanouts, seeds).hops {
			sources := map[int32][]int32{}
			for d, v := range h.dst {
				sources[v] = []int32{}
				for _, pos := range h.picks[d] {
					sources[v] = append(sources[v], g.Indices[pos])
				}
			}
			for _, v := range slices.Sorted(slices.Values(h.dst)) {
				word(v)
				word(int32(len(sources[v])))
				for _, u := range slices.Sorted(slices.Values(sources[v])) {
					word(u)
				}
			}
		}
	}
	return hex.EncodeToString(sha.Sum(nil))
}

func TestDigestIsInvariant(t *testing.T) {
	g := random(800, 10, 21)
	train := all(800)[50:350]
	c := digestCase{seed: 42, epoch: 3, batch: 64, fanouts: []int{5, 4, -1}}
	if testing.Short() {
		c.fanouts = []int{5, 4}
	}
	want := refDigest(g, train, c)
	for world := 1; world <= 4; world++ {
		for threads := 1; threads <= 3; threads++ {
			if got := digestOf(t, g, train, c, world, threads); got != want {
				t.Errorf("%d ranks of %d threads: digest %s, want %s", world, threads, got, want)
			}
		}
	}
	// With more ranks than seeds in the last batch, some ranks have nothing to sample.
	if got := digestOf(t, g, train, c, 70, 1); got != want {
		t.Errorf("70 ranks: digest %s, want %s", got, want)
	}
	for name, other := range map[string]digestCase{
		"seed":    {43, 3, 64, c.fanouts, 0, nil},
		"epoch":   {42, 4, 64, c.fanouts, 0, nil},
		"batch":   {42, 3, 65, c.fanouts, 0, nil},
		"fanouts": {42, 3, 64, []int{5, 3, 2}, 0, nil},
		"steps":   {42, 3, 64, c.fanouts, 2, nil},
	} {
		if digestOf(t, g, train, other, 2, 1) == want {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

// The digest must never change, because users may have recorded digests. It may change only
// together with philox.LayoutVersion.
func TestDigestIsPinned(t *testing.T) {
	list := []edge{}
	for v := range int32(30) {
		for d := int32(1); d <= v%7; d++ {
			list = append(list, edge{(v*d + 11*d) % 30, v})
		}
	}
	const want = "dbb9db02d703804c1788f477b6bcac0887bed631cad174a334d71bad8a896907"
	if got := digestOf(t, build(30, list...), all(30), digestCase{seed: 0x0123456789abcdef, epoch: 5, batch: 7, fanouts: []int{3, 2}}, 1, 1); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestDigestOfNothing(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of ""
	d := sample.NewDigest()
	if d.Sum() != empty {
		t.Errorf("the digest of no batches is %s", d.Sum())
	}
	d.AddBatch(mustSample(t, newSampler(t, build(1), sample.Config{Picker: sample.Fanouts{1}}), 0, 0, nil))
	if d.Sum() != empty || d.Steps() != 1 {
		t.Errorf("the digest of an empty batch is %s after %d steps", d.Sum(), d.Steps())
	}
	if err := d.AddStep(sample.Seeds{}, nil); err != nil {
		t.Errorf("no ranks: %v", err)
	}
}

func TestDigestErrors(t *testing.T) {
	g := build(3, edge{0, 1}, edge{2, 1}, edge{1, 2})
	encode := func(fanouts sample.Fanouts, seeds ...int32) []byte {
		return sample.EncodePicks(mustSample(t, newSampler(t, g, sample.Config{Picker: fanouts}), 0, 0, seeds))
	}
	two, one := encode(sample.Fanouts{-1, 1}, 1), encode(sample.Fanouts{-1}, 1)
	swapped := append(slices.Clone(one[:4]), 2, 0, 0, 0 /**/, 1, 0, 0, 0, 0, 0, 0, 0 /**/, 0, 0, 0, 0, 0, 0, 0, 0)
	repeated := append(slices.Clone(one[:4]), 2, 0, 0, 0 /**/, 1, 0, 0, 0, 0, 0, 0, 0 /**/, 1, 0, 0, 0, 0, 0, 0, 0)
	cases := []struct {
		name string
		in   [][]byte
		want string
	}{
		{"hops", [][]byte{two, one}, "rank 0 sampled 2 hops and rank 1 1"},
		{"different picks", [][]byte{encode(sample.Fanouts{-1}, 0), one, encode(sample.Fanouts{1}, 1)}, "ranks 1 and 2 picked differently for node 1 at hop 0"},
		{"empty", [][]byte{one, {}}, "rank 1 are truncated"},
		{"longer", [][]byte{one, append(slices.Clone(one), 0)}, "rank 1 have 1 extra bytes"},
		{"order", [][]byte{swapped}, "node 0 after 1"},
		{"repeat", [][]byte{repeated}, "node 1 after 1"},
	}
	for n := range one {
		cases = append(cases, struct {
			name string
			in   [][]byte
			want string
		}{fmt.Sprintf("first %d bytes", n), [][]byte{one[:n]}, "rank 0 are truncated"})
	}
	d := sample.NewDigest()
	before := d.Sum()
	for _, c := range cases {
		if err := d.AddStep(sample.Seeds{IDs: []int32{1}}, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if d.Sum() != before || d.Steps() != 0 {
		t.Error("steps with errors changed the digest")
	}
}

// The encoding of a batch does not depend on the order of its rows.
func TestEncodePicksSorts(t *testing.T) {
	b := &sample.Batch{Blocks: []*graphops.Block{graphops.HostBlock{
		NumDst: 2, NumSrc: 4, SrcIDs: []int32{9, 5, 3, 7},
		Indptr: []int64{0, 3, 4}, Indices: []int32{1, 3, 2, 0},
	}.Block()}}
	var got []int32
	for at := sample.EncodePicks(b); len(at) > 0; at = at[4:] {
		got = append(got, int32(binary.LittleEndian.Uint32(at)))
	}
	if want := []int32{1, 2 /**/, 5, 1, 9 /**/, 9, 3, 3, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("words %v, want %v", got, want)
	}
}

// Picks come from other processes, so AddStep must accept or refuse any input without a panic.
func FuzzAddStep(f *testing.F) {
	g := random(50, 4, 1)
	s := newSampler(f, g, sample.Config{Picker: sample.Fanouts{3, 2}})
	for _, seeds := range [][]int32{{}, {1}, {4, 2, 9}} {
		b := mustSample(f, s, 0, 0, seeds)
		f.Add(sample.EncodePicks(b), sample.EncodePicks(b))
	}
	f.Add([]byte{255, 255, 255, 255}, []byte{1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d := sample.NewDigest()
		if err := d.AddStep(sample.Seeds{}, [][]byte{a, a}); err != nil {
			return
		}
		once := sample.NewDigest()
		if err := once.AddStep(sample.Seeds{}, [][]byte{a}); err != nil || once.Sum() != d.Sum() {
			t.Fatalf("one rank: %v; two ranks with the same picks: no error", err)
		}
		_ = d.AddStep(sample.Seeds{}, [][]byte{a, b})
	})
}

// NumPy computes the same digest from the dataset directory alone.
func TestDigestIsNumPys(t *testing.T) {
	testneed.NotShort(t, "it starts Python")
	python := testneed.PythonWith(t, "numpy")
	g := random(1500, 12, 33)
	train := sample.EpochOrder(1, 0, all(1500))[:500]
	dir := filepath.Join(t.TempDir(), "set")
	if err := dataset.Write(dir, &dataset.Dataset{Graph: g, Splits: map[string][]int32{"train": train}, Meta: dataset.Metadata{Name: "random"}}); err != nil {
		t.Fatal(err)
	}
	cases := []digestCase{
		{seed: 0, batch: 64, fanouts: []int{15, 10, 5}, steps: 3},
		{seed: 12345, epoch: 7, batch: 500, fanouts: []int{10, 5}}, // one batch
		{seed: 1<<64 - 1, epoch: 1<<20 - 1, batch: 32, fanouts: []int{-1, 3}, steps: 4},
		{seed: 0xdeadbeefcafe, epoch: 1, batch: 77, fanouts: []int{4, -1}},     // a short last batch
		{seed: 5, epoch: 2, batch: 1000, fanouts: []int{-1}},                   // the whole epoch is shorter than one batch
		{seed: 5, epoch: 2, batch: 100, fanouts: []int{60, 1, 0, 2}, steps: 2}, // many picks, and no picks
		{seed: 1<<63 + 9, epoch: 3, batch: 64, fanouts: []int{5, -1, 2}, steps: 3, labor: &sample.Labor{}},
		{seed: 6, epoch: 1<<20 - 1, batch: 90, fanouts: []int{4, 3}, labor: &sample.Labor{BatchDependency: 4, LayerDependency: true}},
		{seed: 7, batch: 90, fanouts: []int{4, 0, 3}, labor: &sample.Labor{BatchDependency: 3, Poisson: true}},
	}
	if testing.Short() {
		cases = cases[2:4]
	}
	args := []string{"testdata/digest.py"}
	for i, c := range cases {
		if i > 0 {
			args = append(args, "--")
		}
		fanouts := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.fanouts), " ", ","), "[]")
		args = append(args, dir, fmt.Sprint(c.seed), fmt.Sprint(c.epoch), fmt.Sprint(c.batch), fanouts, fmt.Sprint(c.steps))
		if l := c.labor; l != nil {
			name := fmt.Sprintf("labor/%d", l.BatchDependency)
			if l.LayerDependency {
				name += "/layers"
			}
			if l.Poisson {
				name += "/poisson"
			}
			args = append(args, name)
		}
	}
	out, err := exec.Command(python, args...).CombinedOutput()
	sums := strings.Fields(string(out))
	if err != nil || len(sums) != len(cases) {
		t.Fatalf("digest.py: %v\n%s", err, out)
	}
	for i, c := range cases {
		if got := digestOf(t, g, train, c, 3, 2); got != sums[i] {
			t.Errorf("%+v: digest %s, NumPy's %s", c, got, sums[i])
		}
	}
}
