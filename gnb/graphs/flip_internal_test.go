package graphs

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
)

// In a training pass each signed column of a graph is multiplied by 1 or -1, drawn by graph and step; other columns stay.
func TestSignsAreDrawn(t *testing.T) {
	offsets := []int32{0, 2, 5}
	m := &Model{signed: []int{1, 2}, at: &union{graphs: []int32{7, 3}, offsets: offsets, groups: graphops.Groups(offsets)}}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	seen := map[[4]float32]bool{} // the signs of both columns of both graphs
	for step := range 64 {
		f := nn.NewFwd(nn.Config{Train: true, Seed: 1, Step: step})
		y := m.flip(f, f.Input(5, 3, x, nil)).Data()
		var signs [4]float32
		for r := range 5 {
			graph := min(r/2, 1)
			if y[3*r] != x[3*r] {
				t.Fatalf("step %d: a column without a sign is %v and was %v", step, y[3*r], x[3*r])
			}
			for c := 1; c < 3; c++ {
				s, at := y[3*r+c]/x[3*r+c], 2*graph+c-1
				if s != 1 && s != -1 || r > 2*graph && s != signs[at] {
					t.Fatalf("step %d: row %d has the factor %v in column %d, and the graph's is %v", step, r, s, c, signs[at])
				}
				signs[at] = s
			}
		}
		seen[signs] = true
	}
	if len(seen) < 12 {
		t.Errorf("64 steps drew %d of the 16 combinations of signs", len(seen))
	}
}
