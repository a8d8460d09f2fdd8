package budget_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/budget"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

const users, items, brands = 120, 200, 6

// shop is a dataset of users with classes, items and brands: user:likes:item with its reverses, user:knows:user, and
// item:of:brand with its reverses. Users of a class like the same items, some of them many. The type shelf has no nodes.
func shop(t testing.TB) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	const classes = 3
	var src, dst []int32
	var types []uint16
	add := func(u, v int, kind uint16) {
		src, dst, types = append(src, int32(u)), append(dst, int32(v)), append(types, kind)
	}
	for u := range users {
		for range 1 + r.IntN(12)*r.IntN(4) {
			i := users + (r.IntN(items)/classes*classes+u%classes)%items
			add(u, i, 0)
			add(i, u, 1)
		}
		for range 5 {
			add(u, r.IntN(users), 2)
		}
	}
	for i := range items {
		for range 2 {
			b := users + items + r.IntN(brands)
			add(users+i, b, 3)
			add(b, users+i, 4)
		}
	}
	s := &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "user", Count: users}, {Name: "item", Count: items}, {Name: "brand", Count: brands}, {Name: "shelf"}},
		Relations: []graphops.Relation{
			{Src: "user", Name: "likes", Dst: "item"},
			{Src: "item", Name: "liked", Dst: "user"},
			{Src: "user", Name: "knows", Dst: "user"},
			{Src: "item", Name: "of", Dst: "brand"},
			{Src: "brand", Name: "has", Dst: "item"},
			{Src: "shelf", Name: "holds", Dst: "item"},
		},
	}
	// Copies of an edge are kept: they count several times.
	g, err := graphops.FromEdgesWith(s.NumNodes(), src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{KeepDuplicates: true})
	if err == nil {
		g, err = g.WithTypes(s, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	ds := &gnb.Dataset{Graph: g, Splits: map[string][]int32{}, Meta: dataset.Metadata{Name: "shop", NumClasses: classes}}
	ds.Features = &dataset.Matrix{Rows: g.NumNodes(), Cols: 4, F32: make([]float32, 4*g.NumNodes())}
	for i := range ds.Features.F32 {
		ds.Features.F32[i] = r.Float32()
	}
	for v := range g.NumNodes() {
		label := int32(-1)
		if v < users {
			label = int32(v % classes)
			split := []string{"train", "train", "train", "val", "test"}[v%5]
			ds.Splits[split] = append(ds.Splits[split], int32(v))
		}
		ds.Labels = append(ds.Labels, label)
	}
	return ds
}

func sampler(t testing.TB, g *graphops.Graph, p *budget.Sampler, threads int) *sample.Sampler {
	t.Helper()
	s, err := sample.New(g, sample.Config{Picker: p, Seed: 77, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nodes counts the nodes of each type in a batch.
func nodes(s *graphops.Schema, b *sample.Batch) []int {
	counts := make([]int, len(s.Nodes))
	for _, v := range b.Blocks[0].SrcIDs() {
		counts[s.TypeOf(v)]++
	}
	return counts
}

// A batch has its seeds, and of each type as many further nodes at each hop as the budget says, which is what PyG's
// HGTLoader promises; and a node of the batch has all its in-edges from nodes of the batch, at each hop.
func TestNodesOfEachType(t *testing.T) {
	ds := shop(t)
	g, seeds := ds.Graph, ds.Splits["train"][:6]
	for name, c := range map[string]struct {
		p    *budget.Sampler
		want []int // -1: at most the number of all
	}{
		"the same for all types": {&budget.Sampler{Nodes: []int{4, 3}}, []int{6 + 7, 7, 3, 0}}, // brands lead to items alone, which are no seeds
		"three hops":             {&budget.Sampler{Nodes: []int{4, 3, 2}}, []int{6 + 9, 9, 5, 0}},
		"by type":                {&budget.Sampler{Nodes: []int{4, 3}, ByType: map[string][]int{"brand": {0, 0}, "item": {2, 9}}}, []int{6 + 7, 11, 0, 0}},
		"none":                   {&budget.Sampler{Nodes: []int{0, 0}}, []int{6, 0, 0, 0}},
		"all of one type":        {&budget.Sampler{Nodes: []int{0, 0, 0}, ByType: map[string][]int{"item": {-1, 0, 0}, "brand": {9, 9, 9}}}, []int{6, -1, brands, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for step := range 3 {
				b, err := sampler(t, g, c.p, 2).Sample(1, step, sample.Seeds{IDs: seeds})
				if err != nil {
					t.Fatal(err)
				}
				for typ, n := range nodes(g.Schema, b) {
					if want := c.want[typ]; n != want && want >= 0 {
						t.Errorf("step %d: %d nodes of type %s, want %d", step, n, g.Schema.Nodes[typ].Name, want)
					}
				}
				within := map[int32]bool{}
				for _, v := range b.Blocks[0].SrcIDs() {
					within[v] = true
				}
				for hop, k := range b.Blocks {
					for d := range k.NumDst {
						want := 0
						for _, u := range g.InNeighbors(k.DstID(d)) {
							if within[u] {
								want++
							}
						}
						if k.InDegree(d) != want {
							t.Fatalf("step %d, block %d: node %d has %d in-edges, want the %d from nodes of the batch", step, hop, k.DstID(d), k.InDegree(d), want)
						}
					}
				}
			}
		})
	}
}

// A node is the first of its type to be chosen with a probability proportional to its squared normalised degree.
func TestProbabilities(t *testing.T) {
	// Seeds 0 and 1; 2 leads to both, 3 and 4 to seed 1 alone. Seed 0 has one in-edge, seed 1 four, two of them from 4.
	g, err := graphops.FromEdges(5, []int32{2, 2, 3, 4, 4}, []int32{0, 1, 1, 1, 1}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[int32]float64{2: 1 + 1./4, 3: 1. / 4, 4: 1. / 2}
	all := 0.0
	for _, s := range sums {
		all += s * s
	}
	const steps = 20000
	s, got := sampler(t, g, &budget.Sampler{Nodes: []int{1}}, 1), map[int32]float64{}
	for step := range steps {
		b, err := s.Sample(0, step, sample.Seeds{IDs: []int32{1, 0}})
		if err != nil {
			t.Fatal(err)
		}
		if ids := b.Blocks[0].SrcIDs(); len(ids) != 3 {
			t.Fatalf("step %d has the nodes %v, want the seeds and one more", step, ids)
		}
		got[b.Blocks[0].SrcIDs()[2]] += 1. / steps
		b.Release()
	}
	for v, sum := range sums {
		want := sum * sum / all
		if limit := 4 * math.Sqrt(want*(1-want)/steps); math.Abs(got[v]-want) > limit {
			t.Errorf("node %d was chosen with the frequency %.4f, want %.4f ± %.4f", v, got[v], want, limit)
		}
	}
}

// digest is the digest of sampling on a number of workers, each of which is told the seeds of all.
func digest(t *testing.T, ds *gnb.Dataset, p *budget.Sampler, world, threads int) string {
	t.Helper()
	const seed, epoch, batch = 77, 3, 24
	d, order := sample.NewDigest(), sample.EpochOrder(seed, epoch, ds.Splits["train"])
	var ranks []*sample.Sampler
	for range world {
		ranks = append(ranks, sampler(t, ds.Graph, p, threads))
	}
	for step := 0; step*batch < len(order); step++ {
		seeds := order[step*batch : min((step+1)*batch, len(order))]
		var picks [][]byte
		for r, s := range ranks {
			if err := s.ForStep(epoch, step, sample.Seeds{IDs: seeds}); err != nil {
				t.Fatal(err)
			}
			lo, hi := sample.Share(len(seeds), r, world)
			b, err := s.Sample(epoch, step, sample.Seeds{IDs: seeds[lo:hi]})
			if err != nil {
				t.Fatal(err)
			}
			picks = append(picks, sample.EncodePicks(b))
			b.Release()
		}
		if err := d.AddStep(sample.Seeds{IDs: seeds}, picks); err != nil {
			t.Fatal(err)
		}
	}
	return d.Sum()
}

// The digest is the same for 1, 2 and 4 workers and any number of threads, and it is that of NumPy, which reads the
// dataset's directory alone.
func TestDigest(t *testing.T) {
	ds := shop(t)
	plain := *ds
	plain.Graph = ds.Graph.Homogeneous()
	for name, c := range map[string]struct {
		ds *gnb.Dataset
		p  *budget.Sampler
	}{
		"hgt":                      {ds, &budget.Sampler{Nodes: []int{9, 5}}},
		"hgt/item:20,1/brand:0,-1": {ds, &budget.Sampler{Nodes: []int{9, 5}, ByType: map[string][]int{"item": {20, 1}, "brand": {0, -1}}}},
		"hgt without types":        {&plain, &budget.Sampler{Nodes: []int{9, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := digest(t, c.ds, c.p, 1, 1)
			for _, world := range []int{1, 2, 4} {
				if got := digest(t, c.ds, c.p, world, 3); got != want {
					t.Errorf("on %d workers and 3 threads the digest is %s, on one %s", world, got, want)
				}
			}
			testneed.NotShort(t, "it starts Python")
			python := testneed.PythonWith(t, "numpy")
			dir := filepath.Join(t.TempDir(), "set")
			if err := dataset.Write(dir, &dataset.Dataset{Graph: c.ds.Graph, Splits: c.ds.Splits, Meta: dataset.Metadata{Name: "shop"}}); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(python, "../../graphops/sample/testdata/digest.py", dir, "77", "3", "24", "9,5", "0", strings.Fields(name)[0]).CombinedOutput()
			if err != nil {
				t.Fatalf("digest.py: %v\n%s", err, out)
			}
			if got := strings.TrimSpace(string(out)); got != want {
				t.Errorf("NumPy's digest is %s, ours %s", got, want)
			}
		})
	}
}

func weights(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var options = gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Sampler: "hgt", Fanouts: []int{20, 10}, Digest: true}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5, Heads: 2}, OptimizerOptions: gnb.OptimizerOptions{Batch: 24, Epochs: 3, LR: 0.02}, LaunchOptions: gnb.LaunchOptions{Seed: 5, Threads: 1, Quiet: true, Device: "cpu"}}

// Train takes the sampler by its name: one digest, and the same bits for 4 workers × virtual ranks, after a resumption
// too, and on parts with the topology; a run tells its options.
func TestTrain(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t)
	train := func(ds *gnb.Dataset, workers, virtual int, change func(o *gnb.TrainOptions)) *runs.Run {
		t.Helper()
		o := options
		o.Workers, o.VirtualRanks, o.RunDir = workers, virtual, t.TempDir()
		if change != nil {
			change(&o)
		}
		run, err := gnb.Train(t.Context(), ds, gnb.HGT, o)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	want := train(ds, 1, 4, nil)
	text := want.Result.Text["digest"]
	for _, workers := range []int{2, 4} {
		got := train(ds, workers, 4/workers, nil)
		if !bytes.Equal(weights(t, got), weights(t, want)) || got.Result.Text["digest"] != text {
			t.Errorf("%d workers × %d virtual ranks have other weights or samples than 1 × 4", workers, 4/workers)
		}
	}
	if got := train(ds, 1, 1, nil).Result.Text["digest"]; got != text || text == "" {
		t.Errorf("one worker has the digest %q, and four virtual ranks %q", got, text)
	}
	if got := train(dividedtest.Parts(t, ds, divided.Options{}), 2, 0, nil).Result.Text["digest"]; got != text {
		t.Errorf("on parts the digest is %q, want %q", got, text)
	}
	cut := options
	cut.Workers, cut.VirtualRanks, cut.CheckpointEvery, cut.RunDir = 2, 2, 2, filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(t.Context())
	cut.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch {
			cancel()
		}
	}
	_, err := gnb.Train(ctx, ds, gnb.HGT, cut)
	cancel()
	if !errors.Is(err, gnb.ErrInterrupted) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	cut.Workers, cut.VirtualRanks, cut.Resume, cut.RunDir, cut.Events = 4, 1, cut.RunDir, "", nil
	resumed, err := gnb.Train(t.Context(), ds, gnb.HGT, cut)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, resumed), weights(t, want)) {
		t.Error("a resumed run has other weights")
	}
	model, o, err := gnb.OptionsOf(want)
	if err != nil || model != "hgt" || o.Sampler != "hgt" || !slices.Equal(o.Fanouts, options.Fanouts) {
		t.Errorf("OptionsOf: %s, %+v, %v", model, o, err)
	}
	r, err := gnb.Sample(t.Context(), ds, gnb.SampleOptions{Sampler: "hgt", Fanouts: options.Fanouts, Batch: 24, Seed: 5, Workers: 2, Quiet: true, Device: "cpu"})
	if err != nil || r.UniqueNodes == 0 {
		t.Errorf("Sample: %v, %v", r, err)
	}
	if p, err := gnb.Plan(t.Context(), ds, gnb.HGT, options); err != nil || !strings.Contains(p.String(), "sampler hgt") {
		t.Errorf("the plan is %v, %v", p, err)
	}
	if run := train(ds, 1, 1, func(o *gnb.TrainOptions) { o.Fanouts, o.Epochs = nil, 1 }); !slices.Contains([]int{512}, fanouts(t, run)[0]) {
		t.Errorf("without Fanouts they are %v, want 512 nodes of each type", fanouts(t, run))
	}
}

func fanouts(t *testing.T, run *runs.Run) []int {
	t.Helper()
	_, o, err := gnb.OptionsOf(run)
	if err != nil {
		t.Fatal(err)
	}
	return o.Fanouts
}

// What the sampler cannot do has a sentence.
func TestErrors(t *testing.T) {
	ds := shop(t)
	for name, c := range map[string]struct {
		g    *graphops.Graph
		p    *budget.Sampler
		want string
	}{
		"no hops":         {ds.Graph, &budget.Sampler{}, "samples 0 hops"},
		"an unknown type": {ds.Graph, &budget.Sampler{Nodes: []int{1}, ByType: map[string][]int{"shop": {1}}}, `of the type "shop", which the graph does not have`},
		"other hops":      {ds.Graph, &budget.Sampler{Nodes: []int{1}, ByType: map[string][]int{"item": {1, 2}}}, `of the type "item" for 2 hops, and of the others for 1`},
		"negative":        {ds.Graph, &budget.Sampler{Nodes: []int{1, -2}}, `of the type "user" at hop 1 is -2; it is 0 or more, or -1 for all`},
		"no types":        {ds.Graph.Homogeneous(), &budget.Sampler{Nodes: []int{1}, ByType: map[string][]int{"item": {1}}}, "the graph has no types; leave ByType out"},
	} {
		s, err := sample.New(c.g, sample.Config{Picker: c.p})
		if err == nil {
			_, err = s.Sample(0, 0, sample.Seeds{IDs: []int32{1}})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	s := sampler(t, ds.Graph, &budget.Sampler{Nodes: []int{1}}, 1)
	if err := s.ForStep(0, 0, sample.Seeds{IDs: []int32{-1}}); err == nil || !strings.Contains(err.Error(), "seed -1 at position 0 is not a node") {
		t.Errorf("a seed out of range: %v", err)
	}
	if _, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{3}}); err != nil {
		t.Errorf("after an error: %v", err)
	}
	for want, change := range map[string]func(o *gnb.TrainOptions){
		"BatchDependency and LayerDependency are for layer-neighbour sampling": func(o *gnb.TrainOptions) { o.BatchDependency = 2 },
		"RelationFanouts are for uniform and layer-neighbour":                  func(o *gnb.TrainOptions) { o.RelationFanouts = map[string][]int{"likes": {1, 1}} },
		`and Fanouts are those of the Sampler "hgt"`:                           func(o *gnb.TrainOptions) { o.Eval = "sampled" },
		"but in a cooperative batch each rank has a part of them":              func(o *gnb.TrainOptions) { o.Cooperative, o.Workers = true, 2 },
		"needs the whole graph, but the graph is divided":                      func(o *gnb.TrainOptions) { o.Topology, o.Workers = "divided", 2 },
		`Sampler is "hgd"; it is "uniform", "labor", "labor-pois`:              func(o *gnb.TrainOptions) { o.Sampler = "hgd" },
	} {
		o := options
		o.RunDir = t.TempDir()
		change(&o)
		data := ds
		if o.Topology != "" {
			data = dividedtest.Parts(t, ds, divided.Options{})
		}
		if o.Workers > 1 {
			testneed.NotShort(t, "it starts workers")
		}
		if _, err := gnb.Train(t.Context(), data, gnb.HGT, o); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }
