package plan

import (
	"errors"
	"fmt"
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
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// flat are rates of a machine with some threads, on which everything takes about as long.
func flat(threads int) *Rates {
	same := func(n int) []float64 { return slices.Repeat([]float64{1e9}, n) }
	return &Rates{
		Threads: threads, Tall: same(len(sides)), Deep: same(len(sides)), TallBF16: same(len(sides)), DeepBF16: same(len(sides)), Near: same(len(widths)), Far: same(len(widths)),
		NearStream: 1e9, FarStream: 1e9, HeadSums: 1e9, HeadDots: 1e9, Exp: 1e9, Draw: 1e9, Transpose: 1e9, Operation: 1e-6,
		ReduceSeconds: slices.Repeat([]float64{1e-5}, len(worlds)), ReduceBytes: same(len(worlds)),
		Operations: map[string]Operation{otherOperations: {Seconds: []float64{1e-3}, Factor: []float64{1}}}, Together: 1,
		Learned: slices.Repeat([]float64{1e-7}, len(rowWidths)), Own: slices.Repeat([]float64{1e-7}, len(rowWidths)), Sent: slices.Repeat([]float64{1e-6}, len(rowWidths)), Message: 1e-5, MessageBytes: 1e9,
	}
}

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
		j.Data, j.Workers, j.Here = ds, 2, 1
		if change != nil {
			change(&j)
		}
		l, err := j.loads(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return j.memory(l, 1<<20), l
	}
	all, l := memory(open(0, 1, 2, 3), func(j *Job) { j.Here = 2 })
	if n := itemOf(all, "rows asked for ahead"); n != 0 {
		t.Errorf("a worker that has all rows asks for %d bytes ahead", n)
	}
	some, window := memory(open(0, 1), nil)
	if n, want := itemOf(some, "rows asked for ahead"), int64(4*window.window.held)*64; n != want || want == 0 {
		t.Errorf("by default %d bytes are asked for ahead, want %d", n, want)
	}
	if n := itemOf(some, "cache of other workers' rows"); n != 0 {
		t.Errorf("by default there is a cache of %d bytes", n)
	}
	if a, b := itemOf(all, "batches prepared")-l.rows, itemOf(some, "batches prepared")-window.rows; b <= a {
		t.Errorf("%d bytes of batches without their rows with a window, %d without one", b, a)
	}
	for free, want := range map[int64]int64{400 << 10: 100 << 10, 1 << 30: 3000 * 64} { // the cache of one worker on the machine
		j := j
		j.Data, j.Disk = job(t).Data, true
		l, err := j.loads(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := j.memory(l, free)
		if c, w := itemOf(m, "cache of rows on disk"), itemOf(m, "rows asked for ahead"); c != want || w != int64(4*l.inputs)*64 || itemOf(m, "buffers of rows on disk") != 3000*64 {
			t.Errorf("with %d bytes free, a cache of %d bytes and a window of %d, want %v; %+v", free, c, w, want, m.Worker)
		}
		if j.Cache = "64KB"; itemOf(j.memory(l, free), "cache of rows on disk") != 64000 && itemOf(j.memory(l, free), "cache of rows on disk") != 64<<10 {
			t.Errorf("a cache of 64 KB is planned as %+v", j.memory(l, free).Worker)
		}
	}
}

// A plan of Belady's policy says what a static cache with its window would take, and which cache takes as much.
func TestPolicyNote(t *testing.T) {
	j := job(t)
	j.Disk, j.Cache, j.Prefetch, j.Workers, j.Eval = true, "16KB", 8, 1, "none"
	l, err := j.loads(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if note := j.policyNote(l, 1<<30); note != "" {
		t.Errorf("a static cache has the note %q", note)
	}
	static := j.sizes(l, 1<<30)
	j.CachePolicy = "belady"
	mine := j.sizes(l, 1<<30)
	if !mine.Alone || mine.Ahead != 11 || mine.Window >= static.Window || static.Ahead != 8 || mine.Cache != static.Cache {
		t.Fatalf("sizes %+v, and of a static cache %+v", mine, static)
	}
	want := fmt.Sprintf("with its window of 8 steps, would take %s; with Belady's policy as much memory has room for a cache of %s for each worker.", phrase.Bytes(static.Cache+static.Window), phrase.Bytes(static.Cache+static.Window-mine.Window))
	if note := j.policyNote(l, 1<<30); !strings.HasSuffix(note, want) {
		t.Errorf("the note is %q, want %q", note, want)
	}
	j.Workers = 2
	if note := j.policyNote(l, 1<<30); !strings.Contains(note, "the workers would share the cache") {
		t.Errorf("the note of two workers is %q", note)
	}
	if m := j.memory(l, 1<<30); itemOf(Memory{Worker: m.Worker}, "cache of rows on disk") == 0 || itemOf(Memory{Worker: m.Shared}, "cache of rows on disk") != 0 {
		t.Errorf("the cache is not each worker's own: %+v", m)
	}
}

// A choice that cannot be planned is left out with a note. The plan itself and its other choices stay.
func TestChoiceFails(t *testing.T) {
	j := job(t)
	j.Workers = 2
	build, made := j.Build, 0
	j.Build = func() nn.Model {
		if made++; made == 1 { // of the first choice
			return nn.NewSAGEModel(nn.ModelConfig{In: 16, Out: 4, Layers: 2})
		}
		return build()
	}
	p := &Plan{Choice: Choice{Workers: 2, EpochSeconds: 1}}
	if err := p.others(t.Context(), j, flat(2)); err != nil {
		t.Fatal(err)
	}
	if len(p.Choices) < 2 || !slices.ContainsFunc(p.Notes, func(s string) bool {
		return strings.Contains(s, "1 worker of 2 threads, 2 virtual ranks each cannot be planned: ") && strings.Contains(s, "Hidden is 0")
	}) {
		t.Errorf("choices %+v, notes %q", p.Choices, p.Notes)
	}
}

// Where there is no room to measure rates, a plan has no times, and says so.
func TestNoRoomForRates(t *testing.T) {
	p, err := planned(t.Context(), job(t), func(bool) (*Rates, error) {
		return nil, fmt.Errorf("plan: %w: that needs 384 MiB, and 10 MiB are free", ErrNoRoom)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "Times are unknown: too little memory is free to measure this machine's rates: that needs 384 MiB, and 10 MiB are free."
	if p.StepSeconds != 0 || p.WorkerBytes == 0 || !strings.Contains(p.String(), want) {
		t.Errorf("%+v\n%s", p, p)
	}
	broken := errors.New("the disk is broken")
	if _, err := planned(t.Context(), job(t), func(bool) (*Rates, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("another error of the rates: %v", err)
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
			p := &Plan{Choice: ways[c.planned], Choices: ways, Free: c.free, Rates: flat(4)}
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

// Rates are those of the threads that a control group's quota, which Go takes for GOMAXPROCS, allows, and rates of
// another number are not taken.
func TestRatesOfAQuota(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("it allows itself one of several processors")
	}
	r := flat(runtime.NumCPU())
	r.Machine, r.Version = machine.Name(), ratesVersion
	if !r.fits() {
		t.Fatalf("the rates of all processors are not taken: %+v", r)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if r.fits() || processors() != 1 {
		t.Errorf("%d threads are planned with rates of %d", processors(), r.Threads)
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
		n := 0
		for epoch := range c.epochs {
			if j.evaluates(epoch) {
				n++
			}
		}
		if n != c.want || j.evaluations() != c.want {
			t.Errorf("%+v: %d epochs have an evaluation, and %d are counted", c, n, j.evaluations())
		}
		l, err := j.loads(t.Context(), 2, planTime)
		if err != nil {
			t.Fatal(err)
		}
		seconds := j.evaluationSeconds(l, flat(2))
		if (seconds > 0) != (c.want > 0) {
			t.Errorf("%+v: evaluations take %v s an epoch", c, seconds)
		}
		if j.Epochs, j.EvalEvery = 1, 1; c.want > 0 { // the same evaluation after each epoch
			if each := j.evaluationSeconds(l, flat(2)); math.Abs(seconds*float64(c.epochs)/(each*float64(c.want))-1) > 1e-9 {
				t.Errorf("%+v: %v s an epoch, and an evaluation takes %v s", c, seconds, each)
			}
		}
	}
}

// Choices that have the weights of the job are runs that train: a cooperative batch has no virtual ranks, and one worker's batch
// is the same with and without Cooperative.
func TestChoicesOfCooperative(t *testing.T) {
	rates := func(bool) (*Rates, error) { return flat(2), nil }
	j := job(t)
	j.Workers, j.Here, j.Cooperative = 4, 2, true
	p, err := planned(t.Context(), j, rates)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Choices {
		if c.Mode != "cooperative" || c.Virtual != 1 || c.Workers != 4 {
			t.Errorf("two machines: %+v", c)
		}
	}
	j = job(t)
	j.Cooperative = true
	if p, err = planned(t.Context(), j, rates); err != nil {
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
