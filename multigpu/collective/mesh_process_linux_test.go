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
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/collective"
	"github.com/graphnb/graphnb/multigpu/collective/commtest"
)

// processRank describes one process of TestMachinesInProcesses. The process inherits its files
// after standard error: the control and data files of its machine, then its connections.
type processRank struct {
	Rank, World int
	First       []int
	Local       int    // number of ranks on its machine
	Peers       []int  // the machine at the other end of each connection; every machine appears twice
	Listen      string // on two hosts: the address of the first rank of machine 0
	Speed       bool   // measure speed instead of running the conformance suite
}

const rankVariable = "GNB_COLLECTIVE_TEST_RANK"

// Each rank is a process. TCP connects the machines, and shared memory connects the ranks of one
// machine.
func TestMachinesInProcesses(t *testing.T) {
	testneed.NotShort(t, "it starts processes")
	if text := os.Getenv(rankVariable); text != "" {
		beRank(t, text)
		return
	}
	placements := [][]int{{1, 3}} // TestMachinesOverHosts runs {2, 2}
	if testneed.Soak.Here() {
		placements = append(placements, []int{1, 2}, []int{1, 1}, []int{3, 3}, []int{2, 2, 2, 2})
	}
	for _, counts := range placements {
		t.Run(fmt.Sprint(counts), func(t *testing.T) { startRanks(t, counts) })
	}
}

func startRanks(t *testing.T, counts []int) {
	conns, split := meshConns(t, len(counts), tcpPair), meshConns(t, len(counts), tcpPair)
	var wg sync.WaitGroup
	for m, n := range counts {
		files, err := collective.NewShared(n)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = files.Close() }()
		for r := range n {
			p, extra := placed(counts, m, r), []*os.File{files.Control, files.Data}
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
			wg.Go(func() { runRank(t, p, exec.CommandContext(t.Context(), os.Args[0], rankArgs...), extra) })
		}
	}
	wg.Wait()
}

// placed returns the description of rank r of machine m.
func placed(counts []int, m, r int) processRank {
	p := processRank{Local: counts[m]}
	for _, n := range counts {
		p.First = append(p.First, p.World)
		p.World += n
	}
	p.Rank = p.First[m] + r
	return p
}

var rankArgs = []string{"-test.run=^TestMachinesInProcesses$", "-test.v"}

// runRank runs a rank and returns its output.
func runRank(t testing.TB, p processRank, cmd *exec.Cmd, files []*os.File) string {
	text, err := json.Marshal(p)
	if err != nil {
		t.Error(err)
		return ""
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, rankVariable+"="+string(text))
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestMachinesInProcesses") {
		t.Errorf("rank %d: %v\n%s", p.Rank, err, out)
	}
	return string(out)
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
	if p.Listen != "" && spec.Local.Rank() == 0 {
		spec.Conns, spec.SplitConns = meet(t, p.Listen, mine)
	}
	if p.Speed {
		speed(t, spec, 1-mine)
		return
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

// meet opens two connections between two machines.
func meet(t *testing.T, addr string, machine int) (conns, split []net.Conn) {
	var l net.Listener
	var err error
	if machine == 0 {
		if l, err = net.Listen("tcp", addr); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	var both [2]net.Conn
	for i := range both {
		if machine == 0 {
			both[i], err = l.Accept()
		} else {
			for range 1000 { // the other machine may not listen yet
				if both[i], err = net.Dial("tcp", addr); err == nil {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	conns, split = make([]net.Conn, 2), make([]net.Conn, 2)
	conns[1-machine], split[1-machine] = both[0], both[1]
	return conns, split
}
