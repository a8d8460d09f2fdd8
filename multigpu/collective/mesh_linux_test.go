package collective_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// tcpPair returns both ends of a TCP connection over the loopback interface.
func tcpPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

// meshConns returns connections between machines: element [a][b] joins machine a to machine b.
func meshConns(t testing.TB, machines int, pair func(testing.TB) (a, b net.Conn)) [][]net.Conn {
	conns := make([][]net.Conn, machines)
	for m := range conns {
		conns[m] = make([]net.Conn, machines)
	}
	for m := range conns {
		for o := range m {
			conns[m][o], conns[o][m] = pair(t)
		}
	}
	return conns
}

// openMesh returns the Comms of a run's ranks on machines with the given numbers of ranks.
func openMesh(t testing.TB, counts ...int) []collective.Comm {
	t.Helper()
	return openMeshOver(t, tcpPair, counts...)
}

func openMeshOver(t testing.TB, pair func(testing.TB) (a, b net.Conn), counts ...int) []collective.Comm {
	t.Helper()
	var first []int
	world := 0
	for _, n := range counts {
		first = append(first, world)
		world += n
	}
	conns, split := meshConns(t, len(counts), pair), meshConns(t, len(counts), pair)
	var comms []collective.Comm
	for m, n := range counts {
		locals := []collective.Comm{collective.NewSingle()}
		if n > 1 {
			_, locals = openShared(t, n)
		}
		for r, local := range locals {
			spec := collective.Machines{Rank: first[m] + r, World: world, First: first, Local: local}
			if r == 0 {
				spec.Conns, spec.SplitConns = conns[m], split[m]
			}
			c, err := collective.NewMachines(spec)
			if err != nil {
				t.Fatal(err)
			}
			comms = append(comms, c)
		}
	}
	return comms
}

// Each machine has one rank, and TCP connects the machines.
func TestMachinesOfOneRank(t *testing.T) {
	commtest.Run(t, worlds(), func(t *testing.T, world int) []collective.Comm {
		counts := make([]int, world)
		for m := range counts {
			counts[m] = 1
		}
		return openMesh(t, counts...)
	})
}

func TestMachinesOfManyRanks(t *testing.T) {
	testneed.Raced(t, "it runs every collective of many worlds")
	placements := [][]int{{2, 1, 1}} // other tests run sums of 10 million elements, which three ranks add up
	if testneed.Soak.Here() {        // TestMachinesInProcesses runs a machine of three ranks
		placements = append(placements, []int{2, 3}, []int{1, 2}, []int{3, 3}, []int{2, 2, 2, 2}, []int{1, 7}, []int{4, 4}, []int{4})
	}
	for _, counts := range placements {
		world := 0
		for _, n := range counts {
			world += n
		}
		t.Run(fmt.Sprint(counts), func(t *testing.T) {
			commtest.Run(t, []int{world}, func(t *testing.T, _ int) []collective.Comm { return openMesh(t, counts...) })
		})
	}
}

func BenchmarkMachinesBarrier(b *testing.B) {
	for _, counts := range [][]int{{1, 1}, {1, 1, 1, 1}, {2, 2}} {
		b.Run(fmt.Sprint(counts), func(b *testing.B) {
			comms := openMesh(b, counts...)
			var wg sync.WaitGroup
			for _, c := range comms {
				wg.Go(func() {
					for range b.N {
						if err := c.Barrier(collective.Site{Kind: "step"}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
