package plan

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/sample"
)

// The costs are those of a whole share, also if the epoch's last batch, which is smaller, was passed over last.
func TestCostsOfWholeShare(t *testing.T) {
	j := job(t)
	train, err := j.Data.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	j.Batch = (len(train)*2)/3 + 1 // two steps
	flop := func(steps int) (n int64) {
		l, err := j.loads(context.Background(), steps, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range l.last.costs {
			n += c.FLOP
		}
		return n
	}
	one, two, many := flop(1), flop(2), flop(7)
	if one == 0 || two != one || math.Abs(float64(many)/float64(one)-1) > 0.05 {
		t.Errorf("the products of a share take %d operations after one step, %d after two, %d after seven", one, two, many)
	}
}

// An operation's time is that of its work, times a factor that depends on its name and size. Parts of one operation count
// together, and an operation that was not measured has the factor of all.
func TestPassSeconds(t *testing.T) {
	j, r := job(t), flat(2)
	l, err := j.loads(context.Background(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	base, sum := 0.0, 0.0
	names := map[string]bool{}
	for _, c := range r.calls(l.last.costs, false) {
		base += c.base
		names[c.op] = true
	}
	for _, op := range []string{"Affine", "AffineGrad", "SpMMRows", "SpMMGrad"} {
		if !names[op] {
			t.Errorf("a pass has no operation %s: %v", op, names)
		}
	}
	if got := r.passSeconds(l.last.costs, false); math.Abs(got/base-1) > 1e-9 {
		t.Errorf("factors of 1 make %g s of %g s", got, base)
	}
	r.Operations["Affine"] = Operation{Seconds: []float64{1e-12, 1}, Factor: []float64{3, 3}}
	for _, c := range r.calls(l.last.costs, false) {
		if sum += c.base; c.op == "Affine" {
			sum += 2 * c.base
		}
	}
	if got := r.passSeconds(l.last.costs, false); math.Abs(got/sum-1) > 1e-9 {
		t.Errorf("with one factor of 3 a pass takes %g s, want %g", got, sum)
	}
}

// Learned rows, and rows of parts, take time in proportion to their number. More threads than CPUs share them.
func TestStagesOfRows(t *testing.T) {
	j, r := job(t), flat(2)
	l, err := j.loads(context.Background(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(j Job, name string) float64 {
		for _, s := range j.stages(l, r) {
			if s.Name == name {
				return s.Seconds
			}
		}
		return 0
	}
	learned := j
	learned.Embedding = 16
	if more, want := seconds(learned, "optimizer")-seconds(j, "optimizer"), float64(int(l.inputs))*1e-7; math.Abs(more/want-1) > 1e-6 {
		t.Errorf("learned rows take %g s, want %g", more, want)
	}
	crowded := j
	crowded.Workers = 8
	if got, want := seconds(crowded, "sample"), 4*seconds(j, "sample"); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("sampling by 8 threads on 2 CPUs takes %g s, want %g", got, want)
	}
	if seconds(j, "fetch") != 0 {
		t.Error("a batch that reads mapped features has a stage that fetches them")
	}
}

// The cache has the share of reads of other workers' rows that it has in a run: those read most in one half of the batches
// are found in the other.
func TestCachedShare(t *testing.T) {
	j := job(t)
	j.Data, j.Workers = inTwo(t, j.Data), 2
	share := func(cache string) *load {
		j.Cache = cache
		l, err := j.loads(context.Background(), 12, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	none, some, all := share(""), share("20%"), share("100%")
	cached := func(l *load) float64 { return 1 - l.window.held/l.window.away }
	if some.window.away == 0 || none.window != (windowRows{}) || cached(some) <= 0 || cached(some) >= cached(all) || cached(all) < 0.9 {
		t.Errorf("caches of no, a fifth, and all rows: %+v, %+v and %+v", none.window, some.window, all.window)
	}
	j.Picker = sample.Labor{Fanouts: j.Fanouts} // its reads are counted
	if l := share("20%"); cached(l) <= 0 || cached(l) >= cached(all) {
		t.Errorf("a cache of a fifth of the rows: %+v", l.window)
	}
	j.Picker = nil
	r := flat(2)
	j.Cache = "20%"
	if a, b := j.fetchSeconds(some, r), j.fetchSeconds(all, r); !(a > b && b > 0) {
		t.Errorf("fetching takes %g s with a small cache and %g s with a large one", a, b)
	}
	if some.busy < 1 || some.busy > 1.5 {
		t.Errorf("the worker with most seeds has %.2f of the mean", some.busy)
	}
	a := &awayReads{ranks: 1, counts: map[int][]uint16{}, nodes: 4}
	for _, ids := range [][]int32{{0, 1, 1}, {0, 1, 2, 3}, {1, 2}} {
		a.add(awayShare{ids: ids})
	}
	for rows, want := range []float64{0, 1, 2, 3} {
		has, hits := a.has(rows), 0.0
		for _, s := range a.later {
			for _, v := range s.ids {
				hits += has(s.machine, v)
			}
		}
		if hits != want {
			t.Errorf("a cache of %d rows has %.3f of four reads", rows, hits)
		}
	}
}
