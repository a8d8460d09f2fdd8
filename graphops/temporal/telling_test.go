package temporal

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// The columns that tell what a model is asked are named, with what they tell; others are not, although they repeat, or never do.
func TestTellingColumns(t *testing.T) {
	const nodes, n, train = 80, 8000, 6000
	r := rand.New(rand.NewPCG(5, 6))
	src, dst, at := make([]int32, n), make([]int32, n), make([]int64, n)
	label := make([]float32, n)
	for i := range n {
		src[i], dst[i], at[i], label[i] = r.Int32N(nodes), r.Int32N(nodes/2), int64(i), float32(r.IntN(3))
	}
	// The next destination of each source, 0 if there is none.
	next, last := make([]int32, n), map[int32]int32{}
	for i := n - 1; i >= 0; i-- {
		next[i] = last[src[i]]
		last[src[i]] = dst[i]
	}
	columns := []struct {
		name string
		of   func(i int) float32
		says string
	}{
		{"amount", func(int) float32 { return r.Float32() }, ""},
		{"kind=a", func(i int) float32 { return float32(i % 2) }, ""},
		{"kind=b", func(i int) float32 { return float32(1 - i%2) }, ""},
		{"parity", func(i int) float32 { return float32(dst[i] % 2) }, ""},
		{"almost", func(i int) float32 { return float32(dst[i]) + float32(r.IntN(10)/9) }, ""},
		{"item", func(i int) float32 { return -1.5 * float32(dst[i]) }, `the column "item" of events tells the destination of its event: in `},
		{"place", func(i int) float32 { return float32((dst[i] + 7*src[i]) % (nodes / 2)) }, `the column "place" of events tells with the source the destination of its event: in `},
		{"goes to=1", func(i int) float32 { return float32(next[i] & 1) }, `the column "goes to" of events tells the destination of the source's next event: in `},
		{"goes to=2", func(i int) float32 { return float32(next[i] >> 1) }, ""},
		{"result", func(i int) float32 { return 2*label[i] - 1 }, `the column "result" of events tells the number to predict "outcome" of its event: in `},
	}
	x := make([]float32, n*len(columns))
	var names []string
	for c, column := range columns {
		names = append(names, column.name)
		for i := range n {
			x[i*len(columns)+c] = column.of(i)
		}
	}
	g, at0, err := eventsGraph(nodes, src, dst, at, x, len(columns))
	if err != nil {
		t.Fatal(err)
	}
	ds := &dataset.Dataset{Graph: g, Events: at0, Meta: dataset.Metadata{Name: "told", EdgeFeatureNames: names}}
	if _, err := ds.SetEdgeTargets(at0, &dataset.Matrix{Rows: n, Cols: 1, F32: label}, []string{"outcome"}); err != nil {
		t.Fatal(err)
	}
	var count [2][nodes]float32 // of events, in training and in all
	for i := range n {
		for _, v := range []int32{src[i], dst[i]} {
			if count[1][v]++; i < train {
				count[0][v]++
			}
		}
	}
	ofNodes := []string{"size", "in training", "in the end", "noise"}
	rows := make([]float32, nodes*len(ofNodes))
	for v := range nodes {
		copy(rows[v*4:], []float32{float32(v % 3), count[0][v], 3 - count[1][v]/7, r.Float32()})
	}
	ds.Features, ds.Meta.FeatureNames = &dataset.Matrix{Rows: nodes, Cols: len(ofNodes), F32: rows}, ofNodes
	e, err := Of(ds)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, c := range columns {
		if c.says != "" {
			want = append(want, c.says)
		}
	}
	want = append(want, `the column "in the end" of nodes is in the order of their numbers of events, and not in that of training`)
	for _, found := range Tells(ds, e, train) {
		got = append(got, found.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}

// eventsGraph makes the graph of events with features in the order of the events, and returns where each is.
func eventsGraph(nodes int, src, dst []int32, at []int64, x []float32, cols int) (*graphops.Graph, []int64, error) {
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Times: at, Features: &graphops.EdgeFeatures{Cols: cols, F32: x}}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		return nil, nil, err
	}
	where := make([]int64, len(at))
	for e, t := range g.EdgeTimes {
		where[t] = int64(e) // times are the numbers of the events
	}
	return g, where, nil
}
