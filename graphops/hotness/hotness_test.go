package hotness

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// random returns the job of a random directed graph with hubs, loops and isolated nodes.
func random(t testing.TB, n, edges, parts int) Job {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(edges)))
	var src, dst []int32
	for range edges {
		src, dst = append(src, int32(float64(n)*math.Pow(r.Float64(), 3))), append(dst, r.Int32N(int32(n)))
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j := Job{Graph: g, Parts: parts, Of: make([]int32, n), Fanouts: sample.Fanouts{3, -1, 2}, Batch: max(1, n/16)}
	for v := range j.Of {
		j.Of[v] = r.Int32N(int32(parts))
		if v%3 == 0 {
			j.Seeds = append(j.Seeds, int32(v))
		}
	}
	return j
}

// propagated is the definition of Propagate in float64 for one part.
func propagated(j Job, part int) []float64 {
	n := j.Graph.NumNodes()
	r0, r, q := make([]float64, n), make([]float64, n), make([]float64, n)
	for _, v := range j.Seeds {
		if int(j.Of[v]) == part {
			r0[v] = min(1, float64(j.Batch)/float64(len(j.Seeds)))
			r[v] = r0[v]
		}
	}
	for _, fanout := range j.Fanouts {
		missed := make([]float64, n)
		for u := range missed {
			missed[u] = 1 - r0[u]
		}
		for v := range int32(n) {
			nbrs := j.Graph.InNeighbors(v)
			pick := 1.0
			if fanout >= 0 {
				pick = min(1, float64(fanout)/float64(len(nbrs)))
			}
			if len(nbrs) > 0 {
				q[v] += pick * (r[v] - q[v])
			}
			for _, u := range nbrs {
				missed[u] *= 1 - q[v]
			}
		}
		for u := range r {
			r[u] = 1 - missed[u]
		}
	}
	for u := range r {
		r[u] *= float64(j.Steps())
	}
	return r
}

func TestPropagate(t *testing.T) {
	directed := random(t, 500, 3000, 3)
	undirected := directed
	undirected.Graph = directed.Graph.Undirected(1)
	for _, j := range []Job{directed, undirected, random(t, 1, 0, 1), random(t, 40, 900, 2)} {
		hot, err := Propagate(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		for p := range hot {
			want := propagated(j, p)
			for v, got := range hot[p] {
				// 1e-6 times the number of steps: float32 stores the probabilities and their
				// logarithms.
				if math.Abs(float64(got)-want[v]) > 1e-6*float64(j.Steps())+1e-5*want[v] {
					t.Fatalf("%d nodes, part %d, node %d: %v, want %v", len(want), p, v, got, want[v])
				}
			}
		}
		j.Only, j.Threads = []int{j.Parts - 1}, 1
		one, err := Propagate(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if j.Parts > 1 && one[0] != nil || !slices.Equal(one[j.Parts-1], hot[j.Parts-1]) {
			t.Error("one part computed alone on one thread gives other numbers")
		}
	}
}

// If all neighbours are taken and every seed is in each batch, nothing is random, and Propagate and
// Simulate are both exact.
func TestBothAreExactWithoutChance(t *testing.T) {
	j := random(t, 60, 100, 2)
	j.Fanouts, j.Batch = sample.Fanouts{-1, -1}, len(j.Seeds)
	a, err := Propagate(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Simulate(t.Context(), j, Epochs{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	for p := range a {
		if !slices.Equal(a[p], b[p]) {
			t.Errorf("part %d: %v and %v", p, a[p], b[p])
		}
	}
}

// The number of rows that sampled epochs touch agrees with the probabilities, node by node.
func TestSimulateNearPropagate(t *testing.T) {
	j := random(t, 2000, 16000, 2)
	hot, err := Propagate(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	const epochs = 100
	counted, err := Simulate(t.Context(), j, Epochs{Seed: 3, Count: epochs})
	if err != nil {
		t.Fatal(err)
	}
	for p := range hot {
		var got, want, square float64
		for v := range hot[p] {
			a, b := float64(counted[p][v]), float64(hot[p][v])
			got, want = got+a, want+b
			square += (a - b) * (a - b) / max(b, 0.1)
		}
		// Several paths from a common seed can reach a node, which the probabilities ignore; the
		// difference is 7 % here.
		if math.Abs(got-want) > 0.1*want || square/float64(len(hot[p])) > 0.05 {
			t.Errorf("part %d: %.0f touches in sampled epochs, %.0f expected; mean squared error %.3f", p, got, want, square/float64(len(hot[p])))
		}
	}
}

// A trace records the rows of other parts that a user's own sampler reads, and Simulate counts
// them.
func TestRecord(t *testing.T) {
	j := random(t, 700, 4000, 3)
	traces, err := Record(t.Context(), j, 7, 2)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := Simulate(t.Context(), j, Epochs{Seed: 7, First: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sample.New(j.Graph, sample.Config{Picker: j.Fanouts, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	order := sample.EpochOrder(7, 2, j.Seeds)
	for p, trace := range traces {
		if len(trace) != j.Steps() {
			t.Fatalf("part %d has %d batches, want %d", p, len(trace), j.Steps())
		}
		counts := make([]float32, len(j.Of))
		for step, batch := range trace {
			var seeds []int32
			for _, v := range order[step*j.Batch : min(len(order), (step+1)*j.Batch)] {
				if int(j.Of[v]) == p {
					seeds = append(seeds, v)
				}
			}
			b, err := s.Sample(2, step, sample.Seeds{IDs: seeds})
			if err != nil {
				t.Fatal(err)
			}
			var want []int32
			for _, v := range b.InputIDs() {
				counts[v]++
				if int(j.Of[v]) != p {
					want = append(want, v)
				}
			}
			slices.Sort(want)
			if !slices.Equal(batch, want) {
				t.Fatalf("part %d, step %d: %d rows, want %d", p, step, len(batch), len(want))
			}
		}
		if !slices.Equal(counts, counted[p]) {
			t.Errorf("part %d: Simulate does not count the trace", p)
		}
	}
}

func TestHottest(t *testing.T) {
	score, of := []float32{1, 5, 5, 0, 9, 2}, []int32{0, 0, 0, 0, 1, 0}
	for _, c := range []struct {
		n    int
		want []int32
	}{{0, nil}, {-1, nil}, {1, []int32{1}}, {3, []int32{1, 2, 5}}, {99, []int32{1, 2, 5, 0}}} {
		if got := Hottest(score, of, 1, c.n); !slices.Equal(got, c.want) {
			t.Errorf("the %d hottest: %v, want %v", c.n, got, c.want)
		}
	}
	g, err := graphops.FromEdges(6, []int32{0, 0, 1, 4}, []int32{4, 1, 4, 4}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Degrees(g); !slices.Equal(got, []float32{2, 1, 0, 0, 1, 0}) {
		t.Errorf("degrees %v", got)
	}
	if got := Halo(g, of, 1); !slices.Equal(got, []float32{1, 1, 0, 0, 1, 0}) {
		t.Errorf("halo %v", got)
	}
}

func TestBadJobs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(j *Job)
		want   string
	}{
		"no graph":    {func(j *Job) { j.Graph = nil }, "no Graph"},
		"no parts":    {func(j *Job) { j.Parts = 0 }, "into 0 parts"},
		"short Of":    {func(j *Job) { j.Of = j.Of[1:] }, "divides 9 nodes"},
		"wrong part":  {func(j *Job) { j.Of[3] = 2 }, "node 3 is in part 2"},
		"no batch":    {func(j *Job) { j.Batch = 0 }, "batch size is 0"},
		"no fanouts":  {func(j *Job) { j.Fanouts = nil }, "no Fanouts"},
		"bad fanout":  {func(j *Job) { j.Fanouts = sample.Fanouts{-2} }, "-2"},
		"wrong seed":  {func(j *Job) { j.Seeds = []int32{10} }, "seed 10"},
		"other parts": {func(j *Job) { j.Only = []int{2} }, "Only is [2]"},
	} {
		j := random(t, 10, 20, 2)
		c.change(&j)
		_, err := Propagate(t.Context(), j)
		_, err2 := Simulate(t.Context(), j, Epochs{})
		_, err3 := Record(t.Context(), j, 0, 0)
		for _, err := range []error{err, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := random(t, 10, 20, 2)
	if _, err := Propagate(ctx, j); err == nil {
		t.Error("Propagate continues after its context is done")
	}
	if _, err := Record(ctx, j, 0, 0); err == nil {
		t.Error("Record continues after its context is done")
	}
	j.Seeds = nil
	if hot, err := Propagate(t.Context(), j); err != nil || slices.Max(hot[0]) != 0 {
		t.Errorf("without seeds: %v, %v", hot, err)
	}
}
