package plan

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// jobOnParts is a job with a GCN, which asks for degrees, on a dataset in four parts with or without the whole graph.
func jobOnParts(t *testing.T, o divided.Options) Job {
	t.Helper()
	j := job(t)
	j.Data = dividedtest.PartsBy(t, j.Data, 4, func(v int32) int { return int(v / 100 % 4) }, o)
	j.Build = func() nn.Model { return nn.NewGCNModel(nn.ModelConfig{In: 16, Hidden: 32, Out: 4, Layers: 2}) }
	j.Workers, j.Divided = 4, true
	return j
}

// withParts gives a job a copy of its dataset that has some parts.
func withParts(t *testing.T, j *Job, parts ...int) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "some")
	copyParts(t, j.Data.Dir(), at, parts)
	ds, err := dataset.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	j.Data = ds
}

// loadAndTotal returns what a job's batches take, and the memory of its run.
func loadAndTotal(t *testing.T, j *Job) (*load, int64) {
	t.Helper()
	l, err := j.loads(t.Context(), 8, planTime)
	if err != nil {
		t.Fatal(err)
	}
	m := j.memory(l)
	return l, m.Total(j.here())
}

// Without the file of the whole graph a plan has the batches that the workers sample, if all parts are here: those of the whole graph.
func TestPlanWithoutTopology(t *testing.T) {
	for name, change := range map[string]func(j *Job){
		"uniform": func(*Job) {},
		"labor":   func(j *Job) { j.Picker = sample.Labor{Fanouts: j.Fanouts} },
		"learned": func(j *Job) { j.Embedding = 16 },
		"sampled": func(j *Job) { j.Eval = "sampled" },
		"a cache": func(j *Job) { j.Cache = "20%" },
	} {
		t.Run(name, func(t *testing.T) {
			var loads [2]*load
			var totals [2]int64
			for i, o := range []divided.Options{{}, {NoTopology: true}} {
				j := jobOnParts(t, o)
				change(&j)
				loads[i], totals[i] = loadAndTotal(t, &j)
			}
			a, b := loads[0], loads[1]
			if !slices.Equal(a.hops, b.hops) || a.edges != b.edges || a.remote != b.remote {
				t.Errorf("hops %+v, edges %v, remote %v, want %+v, %v, %v", b.hops, b.edges, b.remote, a.hops, a.edges, a.remote)
			}
			if d := math.Abs(float64(totals[1])/float64(totals[0]) - 1); d > 0.01 {
				t.Errorf("the run takes %d bytes, and %d with the topology", totals[1], totals[0])
			}
		})
	}
}

// Where one of two machines has its own parts alone, its plan differs little from one with all parts, and its check refuses what does
// not fit.
func TestPlanOfSomeParts(t *testing.T) {
	all := jobOnParts(t, divided.Options{NoTopology: true})
	all.Here, all.First, all.mine = 2, 2, true // of its ranks alone: parts do not have the same seeds
	all.Prefetch = 4                           // so that rows are asked for in both
	some := all
	withParts(t, &some, 2, 3)
	var totals [2]int64
	var loads [2]*load
	for i, j := range []*Job{&all, &some} {
		loads[i], totals[i] = loadAndTotal(t, j)
	}
	near := func(what string, got, want, within float64) {
		if !(math.Abs(got/want-1) <= within) {
			t.Errorf("%s is %v with two of four parts, and %v with all", what, got, want)
		}
	}
	near("memory", float64(totals[1]), float64(totals[0]), 0.05)
	near("the share of remote rows", loads[1].remote, loads[0].remote, 0.05)
	for i, h := range loads[1].hops {
		of := loads[0].hops[i]
		near("edges of a hop", float64(h.Edges), float64(of.Edges), 0.05)
		near("sources of a hop", float64(h.Sources), float64(of.Sources), 0.05)
		near("bytes of replies", float64(h.Answered), float64(of.Answered), 0.15)
	}
	free := totals[1] / 2
	if _, err := some.fits(t.Context(), machine.Memory{Free: free, Total: free}); err == nil || !strings.Contains(err.Error(), "for each of 2 workers") {
		t.Errorf("with half of the memory the check says %v", err)
	}
	p, err := Make(t.Context(), some)
	if err != nil || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "taken to be like") }) {
		t.Errorf("%v, and notes %q", err, p.Notes)
	}
}

// The nodes of a part that is elsewhere have their own degrees, or nearly so, and edges from nodes of their own part about as often as
// those of the part that stands for it.
func TestPartRows(t *testing.T) {
	j := jobOnParts(t, divided.Options{NoTopology: true})
	withParts(t, &j, 1)
	book, err := divided.Of(j.Data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newPartRows(book)
	if err != nil {
		t.Fatal(err)
	}
	within, edges, off := make([]float64, 4), make([]float64, 4), 0
	for v := range int32(j.Data.Nodes()) {
		row, ok := r.Row(v)
		if !ok {
			t.Fatalf("node %d has no edges", v)
		}
		off += max(len(row.Sources)-r.InDegree(v), r.InDegree(v)-len(row.Sources))
		p := book.PartOf(v)
		edges[p] += float64(len(row.Sources))
		for _, s := range row.Sources {
			if book.PartOf(row.IDs[s]) == p {
				within[p]++
			}
		}
		places := make([]sample.Place, 1)
		if n := r.Find([]int32{v}, places); n != 1 || int(places[0].N) != len(row.Sources) || places[0].At != row.At {
			t.Fatalf("node %d is at %+v, and its row at %d with %d edges", v, places, row.At, len(row.Sources))
		}
	}
	if float64(off) > 0.02*float64(j.Data.Edges()) {
		t.Errorf("degrees are off by %d for %d edges", off, j.Data.Edges())
	}
	for p := range within {
		if share, want := within[p]/edges[p], within[1]/edges[1]; math.Abs(share-want) > 0.03 {
			t.Errorf("%.3f of the edges of part %d are within it, and %.3f of those of part 1", share, p, want)
		}
	}
	for _, v := range []int32{-1, math.MaxInt32} {
		if _, ok := r.Row(v); ok || r.Find([]int32{v}, make([]sample.Place, 1)) != 0 {
			t.Errorf("node %d has edges", v)
		}
	}
}

// Damaged parts, and a directory without parts, give a sentence in a plan; a check leaves them to the run.
func TestPlanOfDamagedParts(t *testing.T) {
	for want, damage := range map[string]func(t *testing.T, dir string){
		"and -1 by in_degrees.npy":    func(t *testing.T, dir string) { overwrite(t, dir+"/in_degrees.npy", 0xff) },
		"no part of planted that has": func(t *testing.T, dir string) { _ = os.RemoveAll(dir + "/part-0001") },
		"part-0001/indices.npy":       func(t *testing.T, dir string) { _ = os.Truncate(dir+"/part-0001/indices.npy", 200) },
		"part-0001/metadata.json":     func(t *testing.T, dir string) { _ = os.Remove(dir + "/part-0001/metadata.json") },
		"of nodes.npy is 2139062143":  func(t *testing.T, dir string) { overwrite(t, dir+"/part-0001/nodes.npy", 0x7f) },
		"the part is damaged":         func(t *testing.T, dir string) { overwrite(t, dir+"/part-0001/indices.npy", 0x7f) },
	} {
		j := jobOnParts(t, divided.Options{NoTopology: true})
		withParts(t, &j, 1)
		j.Here, j.First, j.Workers, j.Virtual = 1, 1, 4, 1
		dir := j.Data.Dir()
		dividedtest.Older(t, dir)
		damage(t, dir)
		ds, err := dataset.Open(dir)
		if err == nil {
			j.Data = ds
			_, err = Make(t.Context(), j)
			if _, e := j.fits(t.Context(), machine.Memory{Free: 1 << 40, Total: 1 << 40}); e != nil {
				t.Errorf("%q: the check says %v", want, e)
			}
			_ = ds.Close()
		}
		switch {
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%v, want %q", err, want)
		case strings.Contains(err.Error(), "goroutine"):
			t.Errorf("a panic: %v", err)
		}
	}
}

// In-degrees of nodes that are elsewhere may be anything: they only order these nodes.
func TestPlanOfWrongDegrees(t *testing.T) {
	j := jobOnParts(t, divided.Options{NoTopology: true})
	withParts(t, &j, 1)
	j.Here, j.First = 1, 1
	book, err := divided.Of(j.Data)
	if err != nil {
		t.Fatal(err)
	}
	degrees := slices.Clone(book.InDegrees())
	for v := range degrees {
		if book.PartOf(int32(v)) != 1 {
			degrees[v] = []int32{-1, math.MinInt32, math.MaxInt32}[v%3]
		}
	}
	j.Data.Arrays["in_degrees"] = dataset.Array{I32: degrees}
	if _, err := Make(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// overwrite replaces the bytes of an array's second half.
func overwrite(t *testing.T, file string, by byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) / 2; i < len(b); i++ {
		b[i] = by
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A cooperative batch needs the whole graph, so that it is neither planned nor offered without one.
func TestNoCooperativePlanWithoutTopology(t *testing.T) {
	j := jobOnParts(t, divided.Options{NoTopology: true})
	j.Trier = &stopwatch{}
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Choices {
		if c.Mode == "cooperative" {
			t.Errorf("%s is offered", c.describe())
		}
	}
	j.Cooperative = true
	if _, err := Make(t.Context(), j); err == nil || !strings.Contains(err.Error(), "needs the whole graph") {
		t.Errorf("a cooperative run: %v", err)
	}
}

// Neither a plan nor a check of a dataset in parts leaves their files open.
func TestPlanClosesParts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc/self/maps is Linux's")
	}
	for _, o := range []divided.Options{{}, {NoTopology: true}} {
		j := jobOnParts(t, o)
		parts := func() int {
			maps, err := os.ReadFile("/proc/self/maps")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range j.Data.Meta.Parts.Count {
				n += strings.Count(string(maps), dataset.PartDir(j.Data.Dir(), i)+"/")
			}
			return n
		}
		if book, err := divided.Of(j.Data); err != nil {
			t.Fatal(err)
		} else if _, err := book.Part(0); err != nil || parts() == 0 {
			t.Fatalf("an open part has no mapped file (%v)", err)
		} else if err := book.CloseParts(); err != nil || parts() > 0 {
			t.Fatalf("a closed part has %d mapped files (%v)", parts(), err)
		}
		j.Trier = &stopwatch{}
		if _, err := Make(t.Context(), j); err != nil || parts() > 0 {
			t.Errorf("a plan leaves %d mapped files (%v)", parts(), err)
		}
		for _, free := range []int64{1 << 40, 1 << 20} {
			_, err := j.fits(t.Context(), machine.Memory{Free: free, Total: free})
			if (err != nil) != (free == 1<<20) || parts() > 0 {
				t.Errorf("a check with %d bytes free leaves %d mapped files (%v)", free, parts(), err)
			}
		}
	}
}
