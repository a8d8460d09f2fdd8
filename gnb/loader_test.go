package gnb_test

import (
	"encoding/json"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// modulo is a sampler of a program's own, with pointers: every Every-th in-edge.
type modulo struct {
	Every, Layers int
	note          string
}

func (m *modulo) Hops() int { return m.Layers }

func (m *modulo) Pick(_ *gnb.Hop, _ int32, nbrs, out []int32) []int32 {
	for i := range nbrs {
		if i%m.Every == 0 {
			out = append(out, int32(i))
		}
	}
	return out
}

// firsts is a sampler of whole frontiers of a program's own.
type firsts int

func (n firsts) PickFrontier(_ *gnb.Hop, g *graphops.Graph, dst []int32, pick func(i int, positions []int32)) error {
	for i, v := range dst {
		var at []int32
		for k := range int32(min(int(n), g.InDegree(v))) {
			at = append(at, k)
		}
		pick(i, at)
	}
	return nil
}

// undeclared is a sampler that no declaration names.
type undeclared struct{ *modulo }

var (
	_ = gnb.DeclareSampler("test.modulo", func() *modulo { return &modulo{Layers: 2} })
	_ = gnb.DeclareSampler("test.firsts", func() firsts { return 0 })
	_ = gnb.DeclareSampler("test.twice", func() undeclared2 { return undeclared2{} })
	_ = gnb.DeclareSampler("test.twice", func() undeclared2 { return undeclared2{} })
)

type undeclared2 struct{ *modulo }

type loaderArgs struct {
	Loaders []gnb.Loader
	Own     int // the loader that the program makes itself instead, from 1
}

// loaderProgram samples by loaders, and records the digest.
var loaderProgram = gnb.Program("test.loader", func(w *gnb.Worker, a loaderArgs) error {
	l := a.Loaders[0]
	if a.Own > 0 {
		l = loaders()[a.Own-1]
	}
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 4, Out: w.Dataset().Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	w.Digest()
	steps := 0
	for range w.Epochs(1) {
		for b := range w.Batches("train", l) {
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			steps++
		}
	}
	w.Result("steps", float64(steps))
	return nil
})

// loaders are loaders with every field and every kind of sampler.
func loaders() []gnb.Loader {
	return []gnb.Loader{
		{Fanouts: []int{4, 2}, Batch: 64, MaxSteps: 3, InOrder: true, Ahead: 1},
		{Sampler: gnb.Fanouts{4, 2}, BatchPerWorker: 40},
		{Sampler: gnb.Labor{Fanouts: gnb.Fanouts{4, 2}, BatchDependency: 4, LayerDependency: true}, Batch: 64},
		{Sampler: gnb.Labor{Fanouts: gnb.Fanouts{4, 2}, Poisson: true}, Batch: 64},
		{Sampler: sample.Weighted{Fanouts: gnb.Fanouts{3, 2}}, Batch: 64},
		{Sampler: &sample.RelationFanouts{All: gnb.Fanouts{3, 2}, By: map[int]gnb.Fanouts{0: {2, 1}}}, Batch: 64},
		{Sampler: &modulo{Every: 3, Layers: 2}, Batch: 64},
		{Frontier: firsts(3), Hops: 2, Batch: 64},
		{Sampler: gnb.Fanouts{4, 2}, Batch: 64, Cooperative: true, Owners: sample.RangeOwners(400), InputHalo: true},
	}
}

// A loader in a program's argument samples in the workers what the same loader samples that the program makes
// itself.
func TestLoadersTravelToWorkers(t *testing.T) {
	ds := load(t, "planted?nodes=400&features=8&classes=4&degree=8&seed=2")
	for i, l := range loaders() {
		raw, err := json.Marshal(l)
		var back gnb.Loader
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		again, err2 := json.Marshal(back)
		if err != nil || err2 != nil || string(again) != string(raw) {
			t.Fatalf("loader %d is %s, and %s after its way (%v, %v)", i, raw, again, err, err2)
		}
		if i == 4 {
			continue // the graph has no weights to sample by
		}
		if i > 0 && i != 6 {
			testneed.NotShort(t, "it launches programs with each loader")
		}
		o := gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 5, Quiet: true}
		var digests []string
		for _, own := range []int{0, i + 1} {
			o.RunDir = t.TempDir()
			run, err := gnb.Launch(t.Context(), loaderProgram, loaderArgs{[]gnb.Loader{l}, own}, o)
			if err != nil {
				t.Fatalf("loader %s: %v", raw, err)
			}
			if run.Value("steps") == 0 {
				t.Fatalf("loader %s took no steps", raw)
			}
			digests = append(digests, run.Result.Text["digest"])
		}
		if digests[0] != digests[1] || digests[0] == "" {
			t.Errorf("loader %s has digest %s by the argument and %s in the program", raw, digests[0], digests[1])
		}
	}
}

// A sampler that cannot travel is one sentence before anything starts.
func TestLoadersThatCannotTravel(t *testing.T) {
	for want, l := range map[string]gnb.Loader{
		`a sampler of type gnb_test\.undeclared has no name by which workers make it; declare the type by gnb\.DeclareSampler, or make the sampler in the program`: {Sampler: undeclared{}},
		`the sampler test\.modulo does not reach workers whole, since it travels as JSON: field test\.modulo\.note is unexported and would be zero there`:          {Sampler: &modulo{note: "x"}},
		`two samplers are named "test\.twice"`:               {Sampler: undeclared2{}},
		`a sampler of type \*sample\.PartOwners has no name`: {Owners: &sample.PartOwners{}},
	} {
		run, err := gnb.Launch(t.Context(), loaderProgram, loaderArgs{Loaders: []gnb.Loader{l}}, gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()})
		readable(t, err, `gnb: the arguments of program "test\.loader" .*`+want)
		if run != nil {
			t.Errorf("%s: Launch started a run", want)
		}
	}
	for want, raw := range map[string]string{
		`no sampler "nosuch"`:                    `{"Sampler": {"Type": "nosuch", "Value": {}}}`,
		`is not a Picker`:                        `{"Sampler": {"Type": "gnb.ranges", "Value": 3}}`,
		`the sampler gnb\.labor cannot be read`:  `{"Sampler": {"Type": "gnb.labor", "Value": 3}}`,
		`a sampler cannot be read`:               `{"Sampler": 3}`,
		`cannot unmarshal string into Go struct`: `{"Batch": "x"}`,
	} {
		var l gnb.Loader
		if err := json.Unmarshal([]byte(raw), &l); err == nil {
			t.Errorf("%s was read", raw)
		} else if want != `cannot unmarshal string into Go struct` {
			readable(t, err, want)
		}
	}
}
