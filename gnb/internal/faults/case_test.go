package faults

import (
	"fmt"
	"slices"
)

// Case is one fault at one stage of a run, in one of its processes.
type Case struct{ Fault, Stage, Victim string }

// The faults.
const (
	Kill           = "SIGKILL"
	Stop           = "SIGSTOP"
	Panic          = "panic"
	Memory         = "memory limit"
	DiskRun        = "full disk (run)"         // fills the disk of the run's directory; the process that suffers the fault writes the filler file
	DiskCheckpoint = "full disk (checkpoints)" // the disk has room for metrics but not for weights
	Clock          = "clock step"              // the clock steps an hour forward, then two hours back
	Cut            = "network cut"             // packets between the hosts are lost; the victim's rank is at the stage
	ShortCut       = "network cut for 2 s"     // the network passes packets again after 2 s
)

// The stages.
const (
	Start      = "start"
	Sampling   = "sampling"
	Sum        = "sum"
	Evaluation = "evaluation"
	Checkpoint = "checkpoint"
)

// The processes that a fault can hit. The launcher is the process in which the program calls
// gnb.Launch, or mpirun.
const (
	Worker   = "worker"
	Rank0    = "rank 0"
	Launcher = "launcher"
)

var (
	faults  = []string{Kill, Stop, Panic, Memory, DiskRun, DiskCheckpoint, Clock, Cut, ShortCut}
	stages  = []string{Start, Sampling, Sum, Evaluation, Checkpoint}
	victims = []string{Worker, Rank0, Launcher}
)

// cuts reports whether the fault cuts the network between hosts.
func (c Case) cuts() bool { return c.Fault == Cut || c.Fault == ShortCut }

// onDisk reports whether the fault needs its own disk.
func (c Case) onDisk() bool { return c.Fault == DiskRun || c.Fault == DiskCheckpoint }

func (c Case) String() string { return fmt.Sprintf("%s, %s, %s", c.Victim, c.Fault, c.Stage) }

// all returns every case.
func all() []Case {
	var out []Case
	for _, f := range faults {
		for _, s := range stages {
			for _, v := range victims {
				out = append(out, Case{f, s, v})
			}
		}
	}
	return out
}

// cover returns cases in which every pair of fault and stage, fault and process, and stage and
// process occurs.
func cover(of []Case) []Case {
	pairs := func(c Case) [3][2]string {
		return [3][2]string{{c.Fault, c.Stage}, {c.Fault, c.Victim}, {c.Stage, c.Victim}}
	}
	open := map[[2]string]bool{}
	for _, c := range of {
		for _, p := range pairs(c) {
			open[p] = true
		}
	}
	var out []Case
	for len(open) > 0 {
		value := func(c Case) (n int) {
			for _, p := range pairs(c) {
				if open[p] {
					n++
				}
			}
			return n
		}
		best := slices.MaxFunc(of, func(a, b Case) int { return value(a) - value(b) })
		for _, p := range pairs(best) {
			delete(open, p)
		}
		out = append(out, best)
	}
	return out
}
