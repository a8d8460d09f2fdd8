package temporal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

func TestBeforeIsWhatHappenedBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const nodes, n = 7, 60
	var src, dst []int32
	var time []int64
	for i := range n {
		src, dst, time = append(src, int32(r.IntN(nodes))), append(dst, int32(r.IntN(nodes))), append(time, int64(i/3))
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	for v := range int32(nodes) {
		for before := range n + 1 {
			for _, k := range []int{-1, 0, 1, 4} {
				var want []int32
				for i := before - 1; i >= 0 && (k < 0 || len(want) < k); i-- {
					if src[i] == v || dst[i] == v {
						want = append(want, int32(i))
					}
				}
				slices.Reverse(want)
				if got := e.Before(v, before, k); !slices.Equal(got, want) {
					t.Fatalf("node %d, before %d, %d events: %v, want %v", v, before, k, got, want)
				}
				if got := e.Head(before).Last(v, k); !slices.Equal(got, want) {
					t.Fatalf("node %d, of the first %d events the last %d: %v, want %v", v, before, k, got, want)
				}
			}
		}
	}
	for tm := int64(-1); tm < n; tm++ {
		if got, want := e.Until(tm), min(n, int(3*(tm+1))); got != want {
			t.Fatalf("%d events are known at %d, want %d", got, tm, want)
		}
	}
}

func TestEventsOfADatasetAreInOrder(t *testing.T) {
	src, dst, time := []int32{0, 1, 2, 0, 0}, []int32{1, 2, 0, 1, 2}, []int64{30, 10, 20, 10, 20}
	build := func(o graphops.BuildOptions) *dataset.Dataset {
		g, err := graphops.FromEdgesWith(3, src, dst, graphops.EdgeData{Times: time}, o)
		if err != nil {
			t.Fatal(err)
		}
		return &dataset.Dataset{Graph: g}
	}
	e, err := Of(build(graphops.BuildOptions{KeepDuplicates: true}))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Time, []int64{10, 10, 20, 20, 30}) || e.Src[4] != 0 || e.Dst[4] != 1 {
		t.Errorf("events %v → %v at %v", e.Src, e.Dst, e.Time)
	}
	if _, err := Of(build(graphops.BuildOptions{Undirected: true})); err == nil {
		t.Error("a graph with each edge in both directions has each event twice, and that is no error")
	}
	timeless, _ := graphops.Karate()
	if _, err := Of(&dataset.Dataset{Graph: timeless}); err == nil {
		t.Error("edges without times are events")
	}
	if _, err := New(2, []int32{0, 1}, []int32{1, 0}, []int64{5, 4}); err == nil {
		t.Error("times that decrease are no error")
	}
}

// A destination is drawn as a negative from its first event on, and not before its own time, also as an earlier destination of the source.
func TestNegativesExist(t *testing.T) {
	const nodes, n = 12, 600
	r := rand.New(rand.NewPCG(3, 1))
	src, dst, time := make([]int32, n), make([]int32, n), make([]int64, n)
	for i := range n {
		src[i], dst[i], time[i] = r.Int32N(nodes), r.Int32N(nodes), int64(i/3)
	}
	e, err := New(nodes, src, dst, time)
	if err != nil {
		t.Fatal(err)
	}
	e.NodeTimes = make([]int64, nodes)
	for v := range e.NodeTimes {
		e.NodeTimes[v] = int64(40 * (v % 4))
	}
	e.NodeTimes[5] = n // never
	d := NewDrawer(e, DrawOptions{Count: 20, History: 0.5, Strict: true})
	first, drawn := map[int32]int{}, map[int32]int{}
	for i := range n {
		if _, ok := first[dst[i]]; !ok {
			first[dst[i]] = i
		}
		for _, v := range d.Append(nil, 1, 0, i) {
			if at, ok := first[v]; !ok || at > i || e.NodeTimes[v] > time[i] {
				t.Fatalf("%d is a negative of event %d at %d; its first event is %d, and its time %d", v, i, time[i], at, e.NodeTimes[v])
			}
			drawn[v]++
		}
	}
	for v := range int32(nodes) {
		if want := v != 5; (drawn[v] > 0) != want {
			t.Errorf("%d is drawn %d times", v, drawn[v])
		}
	}
}
