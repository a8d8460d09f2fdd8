package cluster

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/parallel"
)

// placed returns hellos of ranks by machine: "aab" means two ranks on machine a and one on machine
// b.
func placed(machines string) (out []hello) {
	for r, m := range machines {
		out = append(out, hello{Rank: r, World: len(machines), Host: "host-" + string(m), Machine: string(m), NumCPU: 8, CPUs: "ff", PID: 100 + r})
	}
	return out
}

func TestRanksAreNumberedMachineByMachine(t *testing.T) {
	for _, c := range []struct {
		machines string
		first    []int
		launcher []int
	}{
		{"aaa", []int{0}, []int{0, 1, 2}},
		{"aaabbb", []int{0, 3}, []int{0, 1, 2, 3, 4, 5}},
		{"abbbbbbb", []int{0, 1}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"abab", []int{0, 2}, []int{0, 2, 1, 3}},
		{"zyxzyx", []int{0, 2, 4}, []int{0, 3, 1, 4, 2, 5}},
		{"abca", []int{0, 2, 3}, []int{0, 3, 1, 2}},
	} {
		w, launcher := gather(placed(c.machines))
		if !reflect.DeepEqual(w.First, c.first) || !reflect.DeepEqual(launcher, c.launcher) {
			t.Errorf("%s: first ranks %v of %v, want %v of %v", c.machines, w.First, launcher, c.first, c.launcher)
		}
		for r := range w.Members {
			w.Rank = r
			if !w.valid() {
				t.Errorf("%s: rank %d fails validation", c.machines, r)
			}
			first, count := w.machine()
			if m := c.machines[launcher[r]]; count != strings.Count(c.machines, string(m)) || w.Members[first].Host != "host-"+string(m) {
				t.Errorf("%s: rank %d is on a machine of %d ranks from %d", c.machines, r, count, first)
			}
		}
	}
	// A machine that cannot be identified counts as a machine of one rank.
	if w, _ := gather([]hello{{}, {}}); len(w.First) != 2 {
		t.Errorf("two unknown machines count as %d machines", len(w.First))
	}
}

func TestThreadsAreShared(t *testing.T) {
	for _, c := range []struct {
		masks string
		n     int
		want  []int
	}{
		{"ff ff", 8, []int{4, 4}},       // not bound to cores
		{"0f f0", 4, []int{4, 4}},       // each rank bound to one half
		{"0f 0f f0", 4, []int{2, 2, 4}}, // two ranks share a half
		{"ff ff ff", 2, []int{1, 1, 1}},
	} {
		h := placed(strings.Repeat("a", len(c.want)))
		for i, m := range strings.Fields(c.masks) {
			h[i].CPUs, h[i].NumCPU = m, c.n
		}
		w, _ := gather(h)
		for r, m := range w.Members {
			if m.Threads != c.want[r] {
				t.Errorf("%s: rank %d has %d threads, want %d", c.masks, r, m.Threads, c.want[r])
			}
		}
	}
}

// A rank has no more threads than its GOMAXPROCS, which a control group's quota or its user sets.
func TestThreadsOfAQuota(t *testing.T) {
	h := placed("aa")
	h[0].NumCPU, h[0].Most, h[1].NumCPU, h[1].Most = 64, 4, 64, 0
	if w, _ := gather(h); w.Members[0].Threads != 4 || w.Members[1].Threads != 32 {
		t.Errorf("the ranks have %d and %d threads, want 4 and 32", w.Members[0].Threads, w.Members[1].Threads)
	}
	if own := ownHello(&Place{World: 2}); own.NumCPU != parallel.CPUs() || own.Most != runtime.GOMAXPROCS(0) {
		t.Errorf("this process says %d processors and %d threads", own.NumCPU, own.Most)
	}
}

// Only a process of the launcher's own job ends the start of all ranks if it does not fit.
func TestOfJob(t *testing.T) {
	root := hello{Launcher: Slurm, JobID: "7.0", World: 4}
	for name, c := range map[string]struct {
		h    hello
		want bool
	}{
		"of the job":      {hello{Launcher: Slurm, JobID: "7.0", World: 4, Rank: 1, Build: "b"}, true},
		"another world":   {hello{Launcher: Slurm, JobID: "7.0", World: 8, Rank: 7}, true},
		"another job":     {hello{Launcher: Slurm, JobID: "8.0", World: 4, Rank: 1}, false},
		"a launcher":      {hello{Launcher: MPICH, JobID: "7.0", World: 4, Rank: 1}, false},
		"no rank at all":  {hello{Launcher: Slurm, JobID: "7.0"}, false},
		"a negative rank": {hello{Launcher: Slurm, JobID: "7.0", World: 4, Rank: -1}, false},
	} {
		if got := c.h.ofJob(root); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRanksThatDifferAreRefused(t *testing.T) {
	root := hello{Launcher: Slurm, JobID: "7.0", World: 4, Host: "n1", Build: "aaaaaaaaaaaaaaaa", Go: "go1", Args: []string{"train", "cora"}, CPUClass: "amd64-avx512"}
	ok := root
	ok.Rank, ok.Host = 2, "n2"
	if why := ok.differs(root); why != "" {
		t.Error(why)
	}
	for name, c := range map[string]struct {
		change func(h *hello)
		want   string
	}{
		"launcher":  {func(h *hello) { h.Launcher = MPICH }, "one of 4 ranks of MPICH"},
		"world":     {func(h *hello) { h.World = 5 }, "one of 5 ranks of Slurm, and rank 0 (n1) one of 4"},
		"rank 0":    {func(h *hello) { h.Rank = 0 }, "there are ranks 1 to 3"},
		"rank":      {func(h *hello) { h.Rank = 4 }, "there are ranks 1 to 3"},
		"job":       {func(h *hello) { h.JobID = "8.0" }, `belongs to the job "8.0" of Slurm, and rank 0 (n1) to "7.0"`},
		"build":     {func(h *hello) { h.Build = "bbbbbbbbbbbbbbbb" }, "rank 2 (n2) runs another build of the program than rank 0 (n1)"},
		"arguments": {func(h *hello) { h.Args = []string{"train", "cora", "--lr", "1"} }, `rank 2 (n2) was started with the arguments "train cora --lr 1" and rank 0 (n1) with "train cora"`},
		"processor": {func(h *hello) { h.CPUClass = "amd64-avx2" }, "rank 2 (n2) has a processor of class amd64-avx2"},
	} {
		h := ok
		c.change(&h)
		if why := h.differs(root); !strings.Contains(why, c.want) {
			t.Errorf("%s: %q does not contain %q", name, why, c.want)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"0f", "f0", false}, {"01", "01", true}, {"03", "06", true}, {"", "", true}, {"0", "00", true}, {"10", "01", false}} {
		if overlap(c.a, c.b) != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, !c.want)
		}
	}
	if p := processors(); p != "" && !overlap(p, p) {
		t.Error("this process's affinity mask has no processor")
	}
	if id := machineID(); id != machineID() {
		t.Errorf("the machine's name %q changes between calls", id)
	}
}
