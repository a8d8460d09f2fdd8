package collective_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// openLinkedMesh returns the Comms of a run's ranks on machines with the given numbers of ranks. A
// Link connects the first ranks of the machines.
func openLinkedMesh(t testing.TB, counts ...int) ([]collective.Comm, []*chanLink) {
	t.Helper()
	var first []int
	world := 0
	for _, n := range counts {
		first = append(first, world)
		world += n
	}
	links := chanLinks(len(counts))
	var comms []collective.Comm
	for m, n := range counts {
		locals := []collective.Comm{collective.NewSingle()}
		if n > 1 {
			_, locals = openShared(t, n)
		}
		for r, local := range locals {
			spec := collective.Machines{Rank: first[m] + r, World: world, First: first, Local: local}
			if r == 0 {
				spec.Link = links[m]
			}
			c, err := collective.NewMachines(spec)
			if err != nil {
				t.Fatal(err)
			}
			comms = append(comms, c)
		}
	}
	return comms, links
}

func TestMachinesOverALink(t *testing.T) {
	testneed.Raced(t, "it runs every collective of many worlds")
	placements := [][]int{{1, 3}} // the machines of one rank and of several
	switch {
	case testneed.Soak.Here():
		placements = append(placements, []int{1, 2, 1}, []int{1, 1}, []int{3, 3}, []int{2, 2, 2, 2}, []int{1}, []int{1, 7}, []int{4, 4}, []int{4}, []int{1, 1, 1, 1, 1})
	case !testing.Short():
		placements = append(placements, []int{1, 2, 1})
	}
	for _, counts := range placements {
		world := 0
		for _, n := range counts {
			world += n
		}
		t.Run(fmt.Sprint(counts), func(t *testing.T) {
			commtest.Run(t, []int{world}, func(t *testing.T, _ int) []collective.Comm {
				comms, _ := openLinkedMesh(t, counts...)
				return comms
			})
		})
	}
}

// A machine sends one sum for each maximal subtree of the fixed tree that it holds whole, however
// many ranks it has.
func TestLinkCarriesSumsOfMachines(t *testing.T) {
	const n = 100_000
	site := collective.Site{Kind: "step"}
	for _, c := range []struct {
		counts []int
		sums   int64 // vectors sent: n elements to add up, and their sum to each other machine
	}{{[]int{1, 1}, 2}, {[]int{4, 4}, 2}, {[]int{2, 2, 2, 2}, 6}, {[]int{3, 3}, 3}} { // in the last case, the subtrees are ranks 0-1, rank 2, rank 3, and ranks 4-5
		comms, links := openLinkedMesh(t, c.counts...)
		var before int64
		var wg sync.WaitGroup
		for r, comm := range comms {
			wg.Go(func() {
				red, err := comm.NewReducer(site, n, 1)
				err = errors.Join(err, comm.Barrier(site))
				if r == 0 {
					before = links[0].bytes.Load()
				}
				if err = errors.Join(err, comm.Barrier(site)); err == nil {
					_, err = red.Reduce(site)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		data := c.sums * 4 * n
		if got := links[0].bytes.Load() - before; got < data || got > data+100_000 {
			t.Errorf("%v: %d bytes were sent, want %d plus the messages' heads", c.counts, got, data)
		}
		for _, comm := range comms {
			if err := comm.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Closing a Comm during a collective of its split Comm leaves the link of the split Comm open for
// that collective.
func TestLinkedMachinesCloseBesideSplit(t *testing.T) {
	comms, links := openLinkedMesh(t, 1, 1)
	ended := closeBesideSplit(t, comms)
	if !links[0].closed {
		t.Error("the link is open")
	}
	if err := <-ended; err == nil {
		t.Error("the collective under way did not end")
	}
	for _, c := range comms {
		if err := c.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
	}
}
