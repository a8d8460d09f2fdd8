package plan

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/phrase"
)

// itemOf returns the bytes of a part of a worker's memory.
func itemOf(m Memory, name string) int64 {
	for _, i := range slices.Concat(m.Worker, m.Shared) {
		if i.Name == name {
			return i.Bytes
		}
	}
	return 0
}

// copyParts copies a division with some of its parts.
func copyParts(t *testing.T, from, to string, parts []int) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(to + "/part-*")
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range all {
		if !slices.Contains(parts, i) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Workers that lack rows get them ahead with the default window, without any option, and a worker that reads features
// from disk has a cache of a quarter of the free memory as well. The batches that are sampled ahead are counted.
func TestDefaultWindowAndCache(t *testing.T) {
	j := job(t)
	of := make([]int32, j.Data.Nodes())
	for v := range of {
		of[v] = int32(v % 4)
	}
	dir := t.TempDir() + "/parts"
	if err := divided.Write(t.Context(), dir, j.Data, of, 4, divided.Options{}); err != nil {
		t.Fatal(err)
	}
	open := func(parts ...int) *dataset.Dataset {
		at := t.TempDir() + "/some"
		copyParts(t, dir, at, parts)
		ds, err := dataset.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ds.Close() })
		return ds
	}
	j.Eval, j.Epochs, j.Batch = "none", 1, 16
	memory := func(ds *dataset.Dataset, change func(j *Job)) (Memory, *load) {
		t.Helper()
		j := j
		j.Data, j.Workers, j.Here, j.free = ds, 2, 1, 1<<20
		if change != nil {
			change(&j)
		}
		l, err := j.loads(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return j.memory(l), l
	}
	all, l := memory(open(0, 1, 2, 3), func(j *Job) { j.Here = 2 })
	if n := itemOf(all, "rows asked for ahead"); n != 0 {
		t.Errorf("a worker that has all rows asks for %d bytes ahead", n)
	}
	some, window := memory(open(0, 1), nil)
	if n, want := itemOf(some, "rows asked for ahead"), int64(4*window.remote*window.inputs)*64; n != want || want == 0 {
		t.Errorf("by default %d bytes are asked for ahead, want %d", n, want)
	}
	if n := itemOf(some, "cache of other workers' rows"); n != 0 {
		t.Errorf("by default there is a cache of %d bytes", n)
	}
	if a, b := itemOf(all, "batches prepared")-(ahead+2)*l.rows, itemOf(some, "batches prepared")-(ahead+1)*window.rows; b <= a {
		t.Errorf("%d bytes of batches without their rows with a window, %d without one", b, a)
	}
	for free, want := range map[int64]int64{400 << 10: 100 << 10, 1 << 30: 3000 * 64} { // the cache of one worker on the machine
		j := j
		j.Data, j.Disk, j.free = job(t).Data, true, free
		l, err := j.loads(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := j.memory(l)
		if c, w := itemOf(m, "cache of rows on disk"), itemOf(m, "rows asked for ahead"); c != want || w != int64(4*l.inputs)*64 || itemOf(m, "buffers of rows on disk") != 3000*64 {
			t.Errorf("with %d bytes free, a cache of %d bytes and a window of %d, want %v; %+v", free, c, w, want, m.Worker)
		}
		if j.Cache = "64KB"; itemOf(j.memory(l), "cache of rows on disk") != 64000 && itemOf(j.memory(l), "cache of rows on disk") != 64<<10 {
			t.Errorf("a cache of 64 KB is planned as %+v", j.memory(l).Worker)
		}
	}
}

// A plan of Belady's policy says what a static cache with its window would take, and which cache takes as much.
func TestPolicyNote(t *testing.T) {
	j := job(t)
	j.Disk, j.Cache, j.Prefetch, j.Workers, j.Eval, j.free = true, "16KB", 8, 1, "none", 1<<30
	l, err := j.loads(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if note := j.policyNote(l); note != "" {
		t.Errorf("a static cache has the note %q", note)
	}
	static := j.sizes(l)
	j.CachePolicy = "belady"
	mine := j.sizes(l)
	if !mine.Alone || mine.Ahead != 11 || mine.Window >= static.Window || static.Ahead != 8 || mine.Cache != static.Cache {
		t.Fatalf("sizes %+v, and of a static cache %+v", mine, static)
	}
	want := fmt.Sprintf("with its window of 8 steps, would take %s; with Belady's policy as much memory has room for a cache of %s for each worker.", phrase.Bytes(static.Cache+static.Window), phrase.Bytes(static.Cache+static.Window-mine.Window))
	if note := j.policyNote(l); !strings.HasSuffix(note, want) {
		t.Errorf("the note is %q, want %q", note, want)
	}
	j.Workers = 2
	if note := j.policyNote(l); !strings.Contains(note, "the workers would share the cache") {
		t.Errorf("the note of two workers is %q", note)
	}
	if m := j.memory(l); itemOf(Memory{Worker: m.Worker}, "cache of rows on disk") == 0 || itemOf(Memory{Worker: m.Shared}, "cache of rows on disk") != 0 {
		t.Errorf("the cache is not each worker's own: %+v", m)
	}
}

// A plan advises what fits.
func TestAdviseWhatFits(t *testing.T) {
	ways := []Choice{
		{Workers: 4, Threads: 1, Virtual: 1, StepSeconds: 1, EpochSeconds: 1, TotalBytes: 4 << 30, Mode: "independent", Precision: "float32", Topology: "replicated"},
		{Workers: 2, Threads: 1, Virtual: 1, StepSeconds: 2, EpochSeconds: 2, TotalBytes: 2 << 30, Mode: "independent", Precision: "float32", Topology: "replicated"},
		{Workers: 1, Threads: 1, Virtual: 1, StepSeconds: 4, EpochSeconds: 4, TotalBytes: 1 << 30, Mode: "independent", Precision: "float32", Topology: "replicated"},
	}
	for name, c := range map[string]struct {
		planned int
		free    int64
		want    string
	}{
		"the fastest fits":               {2, 8 << 30, "4 workers of 1 thread would take 25 % of the time."},
		"the fastest does not":           {2, 3 << 30, "2 workers of 1 thread would take 50 % of the time."},
		"the planned way is the best":    {1, 3 << 30, ""},
		"the planned way does not":       {0, 3 << 30, "2 workers of 1 thread would fit, with 2.0 GiB, and take 200 % of the time of a step."},
		"no way fits":                    {1, 1 << 20, "None of these ways to run fits."},
		"the free memory is not known":   {2, 0, "4 workers of 1 thread would take 25 % of the time."},
		"a slower way is the only other": {0, 8 << 30, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Choice: ways[c.planned], Choices: ways, Free: c.free}
			if c.free > 0 {
				p.Fit = fit(p.TotalBytes, c.free)
			}
			p.advise(job(t))
			if got := strings.Join(p.Notes, " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Evaluations take time, sampled ones too, and the last epoch has one.
func TestEvaluationsTakeTime(t *testing.T) {
	for _, c := range []struct {
		eval          string
		epochs, every int
		want          int
	}{{"full", 10, 1, 10}, {"full", 10, 3, 4}, {"full", 10, 1000, 1}, {"sampled", 4, 2, 2}, {"none", 10, 1, 0}, {"full", 0, 1, 0}} {
		j := job(t)
		j.Eval, j.Epochs, j.EvalEvery = c.eval, c.epochs, c.every
		if n := j.evaluations(); n != c.want {
			t.Errorf("%+v: %d evaluations are counted", c, n)
		}
		l := &load{edges: 1000}
		tried := &Trial{StepSeconds: 1, Evaluation: 6}
		if got, want := j.evaluationSeconds(l, tried)*float64(c.epochs), 6*float64(c.want); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: evaluations take %v s, want %v", c, got, want)
		}
		tried.Evaluation = 0 // extrapolated by edges: the graph's for each layer, forward alone
		if got, want := j.evaluationSeconds(l, tried)*float64(c.epochs), forwardShare*float64(j.Data.Edges())*2/1000*float64(c.want); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%+v: evaluations that were not tried take %v s, want %v", c, got, want)
		}
	}
}

// Choices that have the weights of the job are runs that train: a cooperative batch has no virtual ranks, and one worker's batch
// is the same with and without Cooperative.
func TestChoicesOfCooperative(t *testing.T) {
	j := job(t)
	j.Workers, j.Here, j.Cooperative, j.Trier = 4, 2, true, &stopwatch{}
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Choices {
		if c.Mode != "cooperative" || c.Virtual != 1 || c.Workers != 4 {
			t.Errorf("two machines: %+v", c)
		}
	}
	j = job(t)
	j.Cooperative, j.Trier = true, &stopwatch{}
	if p, err = Make(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range p.Choices {
		if d := c.describe(); seen[d] {
			t.Errorf("%s is listed twice", d)
		} else {
			seen[d] = true
		}
	}
}
