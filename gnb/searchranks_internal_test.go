//go:build linux

package gnb

import (
	"sync"
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// findingSite is the same on all ranks.
var findingSite = collective.Site{Kind: "finding"}

// All ranks learn the finding of the lowest rank that has one, and keep only findings in the lowest layer of any rank.
func TestFindingsOfRanks(t *testing.T) {
	for name, c := range map[string]struct {
		found []string
		at    []int
		rank  int
		first string
		kept  []bool
	}{
		"none":        {[]string{"", "", ""}, []int{0, 0, 0}, 0, "", []bool{false, false, false}},
		"one":         {[]string{"", "", "c"}, []int{0, 0, 2}, 2, "c", []bool{false, false, true}},
		"lower layer": {[]string{"", "b", "c"}, []int{0, 2, 1}, 1, "b", []bool{false, false, true}},
		"the input":   {[]string{"a", "b", "c"}, []int{3, 0, 0}, 0, "a", []bool{false, true, true}},
		"same layer":  {[]string{"a", "b", ""}, []int{1, 1, 0}, 0, "a", []bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			eachRank(t, len(c.found), func(comm collective.Comm) {
				r := comm.Rank()
				if rank, what, err := firstFinding(comm, findingSite, c.found[r]); err != nil || rank != c.rank || what != c.first {
					t.Errorf("rank %d: firstFinding is %d, %q, %v; want %d, %q", r, rank, what, err, c.rank, c.first)
				}
				if any, err := onAnyRank(comm, findingSite, c.found[r] != ""); err != nil || any != (c.first != "") {
					t.Errorf("rank %d: on any rank %v, %v", r, any, err)
				}
				s := &rowSearch{found: c.found[r], at: c.at[r]}
				if err := s.agree(comm, findingSite); err != nil || (s.found != "") != c.kept[r] {
					t.Errorf("rank %d: kept %q, %v; want one kept: %v", r, s.found, err, c.kept[r])
				}
			})
		})
	}
}

// eachRank runs f for each of world ranks, each in its own goroutine.
func eachRank(t *testing.T, world int, f func(c collective.Comm)) {
	t.Helper()
	s, err := collective.NewShared(world)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for r := range world {
		c, err := collective.Open(s.Control, s.Data, r, world)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wg.Go(func() { f(c) })
	}
	wg.Wait()
}
