//go:build linux

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

// The ways to start ranks, by their names in the page's tables, the cheapest first.
var ways = []string{ownWorkers.Name, underMPIRun.Name, onTwoHosts.Name}

// trial is a case in ranks that are started in one way.
type trial struct {
	Way string
	Case
}

// trials returns every case in every way in which it can happen.
func trials() (out []trial) {
	for i, r := range []*Ranks{&ownWorkers, &underMPIRun, &onTwoHosts} {
		for _, c := range all() {
			if r.Cases(c) {
				out = append(out, trial{ways[i], c})
			}
		}
	}
	return out
}

// pairs returns the pairs of way, fault, stage and process of a trial.
func (t trial) pairs() (out [][2]string) {
	of := [...]string{"way " + t.Way, "fault " + t.Fault, "stage " + t.Stage, "process " + t.Victim}
	for i, a := range of {
		for _, b := range of[i+1:] {
			out = append(out, [2]string{a, b})
		}
	}
	return out
}

// cover returns trials in which every pair of way, fault, stage and process occurs that can occur.
func cover(of []trial) []trial {
	open := map[[2]string]bool{}
	for _, t := range of {
		for _, p := range t.pairs() {
			open[p] = true
		}
	}
	var out []trial
	for len(open) > 0 {
		value := func(t trial) (n int) {
			for _, p := range t.pairs() {
				if open[p] {
					n++
				}
			}
			return n
		}
		best := slices.MaxFunc(of, func(a, b trial) int { return value(a) - value(b) })
		for _, p := range best.pairs() {
			delete(open, p)
		}
		out = append(out, best)
	}
	return out
}
