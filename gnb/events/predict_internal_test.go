package events

import (
	"context"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/temporal"
)

// watched says how many nodes were embedded together.
type watched struct {
	embedder
	most int
}

func (w *watched) around(nodes []int32, happened *temporal.Events, now int64) any {
	w.most = max(w.most, len(nodes))
	return w.embedder.around(nodes, happened, now)
}

// Nodes that are asked about together, in questions of any size, have the scores that each has alone: in the order of its candidates, also none
// and repeated ones.
func TestScoresTogetherAreThoseAlone(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const known = 200
			s := streamOf(t, visits(400, known, 1), 20)
			o := &Options{Model: k.name, Hidden: 8, TimeDim: 8, Heads: 2, Neighbors: 4, Layers: 2, Hops: 2, WalkDim: 16, TimeScale: 600}
			m, begun := shown(t, s, o, known)
			a := &answerer{model: m, state: begun, happened: s.Head(known), asOf: s.Time[known-1] + 60, threads: 2}
			nodes := []int32{4, 0, 7, 3, 1, 9}
			cands := func(i int) (list []int32) {
				for k := range 5 * (i % 4) {
					list = append(list, int32((int(nodes[i])+k*k)%s.Nodes))
				}
				return list
			}
			scores := func(nodes []int32, cands func(i int) []int32) (all [][]float32) {
				err := a.scores(context.Background(), nodes, cands, func(i int, of []int32, scores []float32) error {
					if i != len(all) || !slices.Equal(of, cands(i)) {
						t.Fatalf("node %d comes with the candidates %v, after %d nodes; want %v", i, of, len(all), cands(i))
					}
					all = append(all, slices.Clone(scores))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			a.atOnce = scoresAtOnce
			var want [][]float32
			for i, u := range nodes {
				want = append(want, scores([]int32{u}, func(int) []int32 { return cands(i) })...)
			}
			for _, a.atOnce = range []int{scoresAtOnce, 1, 7, 20} {
				if got := scores(nodes, cands); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
					t.Errorf("%d at once: the scores are %v, want %v", a.atOnce, got, want)
				}
			}
			c, ok := begun.(*counted)
			if !ok {
				return
			}
			a.atOnce = scoresAtOnce
			seen := &watched{embedder: c.embedder}
			c.embedder = seen
			for _, n := range []int{1, 2, 7} { // nodes that are embedded together
				seen.most, c.atOnce = 0, n*c.inputs()
				if got := scores(nodes, cands); !slices.EqualFunc(got, want, slices.Equal[[]float32]) || seen.most != n {
					t.Errorf("%d embeddings at once, and %d wanted: the scores are %v, want %v", seen.most, n, got, want)
				}
			}
		})
	}
}
