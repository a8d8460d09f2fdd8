package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// hello is the first frame of a connection: the sender and the connection's purpose.
type hello struct {
	// For is the purpose of the connection: to join the ranks, to carry data between two machines
	// in a job, or to fetch the files of a job.
	For string `json:"for"`

	// Of a rank that joins.
	Launcher string   `json:"launcher,omitempty"`
	JobID    string   `json:"job_id,omitempty"`
	Rank     int      `json:"rank,omitempty"` // the launcher's
	World    int      `json:"world,omitempty"`
	Host     string   `json:"host,omitempty"`
	PID      int      `json:"pid,omitempty"`
	Machine  string   `json:"machine,omitempty"`
	CPUs     string   `json:"cpus,omitempty"`    // those that it may use
	NumCPU   int      `json:"num_cpu,omitempty"` // their number, or the control group's quota
	Most     int      `json:"most,omitempty"`    // threads that this rank may have: its GOMAXPROCS
	Build    string   `json:"build,omitempty"`   // digest of the executable
	Go       string   `json:"go,omitempty"`
	Args     []string `json:"args,omitempty"`
	CPUClass string   `json:"cpu_class,omitempty"`
	Listen   string   `json:"listen,omitempty"` // where it accepts data of other machines
	Local    string   `json:"local,omitempty"`  // where it accepts ranks of its machine

	// Of a connection for a job.
	Session string `json:"session,omitempty"` // the welcome's
	Job     int    `json:"job,omitempty"`
	Channel int    `json:"channel,omitempty"`
	From    int    `json:"from,omitempty"` // the machine that dials
}

const (
	forJoin  = "join"
	forData  = "data"
	forFiles = "files"
)

// Member is a rank as all ranks know it.
type Member struct {
	// Host is the name of its host. PID is its process there.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Threads is its share of the processors that it may use, among the ranks of its machine.
	Threads int `json:"threads"`
	// Listen and Local are where the first rank of a machine accepts connections.
	Listen string `json:"listen,omitempty"`
	Local  string `json:"local,omitempty"`
}

// welcome tells a rank its own number and those of the others.
type welcome struct {
	// Session is random. It keeps connections of other runs out, which may have the same token and, after a while, the same
	// ports.
	Session string   `json:"session"`
	Rank    int      `json:"rank"`
	First   []int    `json:"first"` // the first rank of each machine
	Members []Member `json:"members"`
}

// index is the machine of a rank.
func (w welcome) index(rank int) int {
	i, found := slices.BinarySearch(w.First, rank)
	if !found {
		i--
	}
	return i
}

// machine is the first rank of this rank's machine, and the number of its ranks.
func (w welcome) machine() (first, count int) {
	m := w.index(w.Rank)
	first, end := w.First[m], len(w.Members)
	if m+1 < len(w.First) {
		end = w.First[m+1]
	}
	return first, end - first
}

// name is a rank and its host in an error.
func (w welcome) name(rank int) string {
	return fmt.Sprintf("rank %d (%s)", rank, w.Members[rank].Host)
}

// ownHello describes this process.
func ownHello(p *Place) hello {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	// Under Slurm several nodes may have one host name in tests and in containers.
	if node := os.Getenv("SLURMD_NODENAME"); node != "" && p.Launcher == Slurm {
		host = node
	}
	return hello{
		For: forJoin, Launcher: p.Launcher, JobID: p.job(), Rank: p.Rank, World: p.World, Host: host, PID: os.Getpid(),
		Machine: machineID(), CPUs: processors(), NumCPU: parallel.CPUs(), Most: runtime.GOMAXPROCS(0), Build: build(), Go: runtime.Version(), Args: os.Args[1:], CPUClass: simd.Class(),
	}
}

// job is the identity of the launcher's job, equal on its ranks.
func (p *Place) job() string {
	if p.Launcher == MPICH && p.JobID == "" && p.OneNode() {
		return launcherProcess()
	}
	return p.JobID
}

// Build is the SHA-256 of this program's executable. A rank of another build cannot join.
func Build() string { return build() }

var build = sync.OnceValue(func() string {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		path, _ := os.Executable()
		if f, err = os.Open(path); err != nil {
			return "unknown: " + err.Error()
		}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unknown: " + err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
})

// ofJob reports whether a process that has joined is one of the launcher's job of rank 0. Another one is refused, and the job
// goes on.
func (h hello) ofJob(root hello) bool {
	return h.Launcher == root.Launcher && (h.JobID == root.JobID || h.Launcher == MPICH) && h.Rank > 0 && h.Rank < h.World
}

// differs returns the reason why a rank cannot join rank 0's run, "" if it can.
func (h hello) differs(root hello) string {
	me := fmt.Sprintf("rank %d (%s)", h.Rank, h.Host)
	switch {
	case h.Launcher != root.Launcher || h.World != root.World:
		return fmt.Sprintf("%s is one of %d ranks of %s, and rank 0 (%s) one of %d ranks of %s; start all ranks by one launcher", me, h.World, h.Launcher, root.Host, root.World, root.Launcher)
	case h.Rank <= 0 || h.Rank >= root.World:
		return fmt.Sprintf("%s cannot join rank 0: there are ranks 1 to %d", me, root.World-1)
	case h.JobID != root.JobID && h.Launcher == root.Launcher && h.Launcher != MPICH:
		return fmt.Sprintf("%s belongs to the job %q of %s, and rank 0 (%s) to %q; another job still holds this address, so wait for its end or set GNB_RENDEZVOUS to another one", me, h.JobID, h.Launcher, root.Host, root.JobID)
	case h.Build != root.Build:
		return fmt.Sprintf("%s runs another build of the program than rank 0 (%s): its executable has the SHA-256 %.12s, with %s, and rank 0's %.12s, with %s; copy one executable to all machines", me, root.Host, h.Build, h.Go, root.Build, root.Go)
	case !slices.Equal(h.Args, root.Args):
		return fmt.Sprintf("%s was started with the arguments %q and rank 0 (%s) with %q; start all ranks with the same", me, strings.Join(h.Args, " "), root.Host, strings.Join(root.Args, " "))
	case h.CPUClass != root.CPUClass:
		return fmt.Sprintf("%s has a processor of class %s and rank 0 (%s) one of class %s, whose sums differ in the last bits; start the ranks on machines of one class", me, h.CPUClass, root.Host, root.CPUClass)
	}
	return ""
}

// gather numbers the ranks machine by machine, machines by their lowest launcher rank, and returns
// them with the launcher's rank of each. hellos are by launcher rank.
func gather(hellos []hello) (w welcome, launcherRank []int) {
	machines := map[string]int{}
	var of [][]int
	for r, h := range hellos {
		key := h.Machine
		if key == "" {
			key = fmt.Sprint("rank ", r) // an unknown machine counts as one of its own
		}
		m, ok := machines[key]
		if !ok {
			m = len(of)
			machines[key] = m
			of = append(of, nil)
		}
		of[m] = append(of[m], r)
	}
	for _, ranks := range of {
		w.First = append(w.First, len(launcherRank))
		for _, r := range ranks {
			sharing := 0
			for _, q := range ranks {
				if overlap(hellos[r].CPUs, hellos[q].CPUs) {
					sharing++
				}
			}
			h := hellos[r]
			launcherRank = append(launcherRank, r)
			threads := max(1, h.NumCPU/max(1, sharing))
			if h.Most > 0 {
				threads = min(threads, h.Most)
			}
			w.Members = append(w.Members, Member{Host: h.Host, PID: h.PID, Threads: threads, Listen: h.Listen, Local: h.Local})
		}
	}
	return w, launcherRank
}

// overlap reports whether two masks of processors, in hexadecimal digits, have one in common.
func overlap(a, b string) bool {
	if len(a) != len(b) || a == "" {
		return true // unknown
	}
	digit := func(c byte) int { return strings.IndexByte("0123456789abcdef", c) }
	for i := range len(a) {
		if x, y := digit(a[i]), digit(b[i]); x > 0 && y > 0 && x&y != 0 {
			return true
		}
	}
	return false
}
