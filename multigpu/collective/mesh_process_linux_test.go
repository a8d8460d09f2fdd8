package collective_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// processRank is what a process of TestMachinesInProcesses is. Its files follow standard error:
// the control and data files of its machine, then its connections.
type processRank struct {
	Rank, World int
	First       []int
	Local       int // ranks of its machine
	Peers       []int
}

const rankVariable = "GNB_COLLECTIVE_TEST_RANK"

// Each rank is a process; the machines are joined over TCP, the ranks of one by shared memory.
func TestMachinesInProcesses(t *testing.T) {
	if text := os.Getenv(rankVariable); text != "" {
		beRank(t, text)
		return
	}
	placements := [][]int{{1, 2}, {1, 1}, {3, 3}, {2, 2, 2, 2}}
	if testing.Short() {
		placements = placements[:1]
	}
	for _, counts := range placements {
		t.Run(fmt.Sprint(counts), func(t *testing.T) { startRanks(t, counts) })
	}
}

func startRanks(t *testing.T, counts []int) {
	conns, split := meshConns(t, len(counts), tcpPair), meshConns(t, len(counts), tcpPair)
	var first []int
	world := 0
	for _, n := range counts {
		first = append(first, world)
		world += n
	}
	var wg sync.WaitGroup
	for m, n := range counts {
		files, err := collective.NewShared(n)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = files.Close() }()
		for r := range n {
			p := processRank{Rank: first[m] + r, World: world, First: first, Local: n}
			extra := []*os.File{files.Control, files.Data}
			if r == 0 {
				for _, of := range [][]net.Conn{conns[m], split[m]} {
					for o, c := range of {
						if c == nil {
							continue
						}
						f, err := c.(*net.TCPConn).File()
						if err != nil {
							t.Fatal(err)
						}
						defer f.Close()
						extra = append(extra, f)
						p.Peers = append(p.Peers, o)
					}
				}
			}
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMachinesInProcesses$", "-test.v")
			cmd.Env = append(os.Environ(), rankVariable+"="+string(text))
			cmd.ExtraFiles = extra
			wg.Go(func() {
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "--- PASS: TestMachinesInProcesses") {
					t.Errorf("rank %d: %v\n%s", p.Rank, err, out)
				}
			})
		}
	}
	wg.Wait()
}

func beRank(t *testing.T, text string) {
	var p processRank
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	mine := 0
	for m, f := range p.First {
		if f <= p.Rank {
			mine = m
		}
	}
	local, err := collective.Open(os.NewFile(3, "control"), os.NewFile(4, "data"), p.Rank-p.First[mine], p.Local)
	if err != nil {
		t.Fatal(err)
	}
	spec := collective.Machines{Rank: p.Rank, World: p.World, First: p.First, Local: local}
	if p.Peers != nil {
		spec.Conns, spec.SplitConns = make([]net.Conn, len(p.First)), make([]net.Conn, len(p.First))
	}
	for i, m := range p.Peers {
		c, err := net.FileConn(os.NewFile(uintptr(5+i), "connection"))
		if err != nil {
			t.Fatal(err)
		}
		if i < len(p.Peers)/2 {
			spec.Conns[m] = c
		} else {
			spec.SplitConns[m] = c
		}
	}
	c, err := collective.NewMachines(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := commtest.Exercise(c); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
