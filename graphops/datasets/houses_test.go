package datasets

import "testing"

// Each house has its six edges and one to the graph, the graph's nodes have five edges each, and classes are places in houses.
func TestHouses(t *testing.T) {
	d, err := Houses(HousesOptions{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.Nodes() != 700 || len(d.Splits["train"]) != 560 || d.Graph.Shape().Components != 1 {
		t.Errorf("it is %v", d)
	}
	house, total := 0, 0
	for v := range int32(700) {
		for _, u := range d.Graph.InNeighbors(v) {
			total++
			if InHouse(u, v, 300) {
				house++
			}
		}
	}
	// 295 nodes join with five edges each; random edges repeat some and have no self-loops.
	if house != 2*6*80 || total < 2*(295*5+7*80+60) || total > 2*(295*5+7*80+70) {
		t.Errorf("%d of %d directed edges are in houses", house, total)
	}
	counts := map[int32]int{}
	for _, y := range d.Labels {
		counts[y]++
	}
	if counts[0] != 300 || counts[1] != 160 || counts[2] != 160 || counts[3] != 80 {
		t.Errorf("the classes have %v nodes", counts)
	}
}
