package onhosts

import "github.com/graphnb/graphnb/multigpu"

// Over ssh's standard streams, the process on a host writes a line end, and a line with marker and a [greeting]; what comes
// before is of the user's login scripts. The launcher answers with a line, [orders], or ends the stream. What the process
// writes after that is its ranks' output, and its exit status is the one that matters of theirs.
const marker = "gnb on-host "

// greeting is what a host says of itself.
type greeting struct {
	Version string `json:"version"` // gnb's
	Build   string `json:"build"`   // digest of the executable
	Address string `json:"address"` // by which other hosts reach this one
	Port    int    `json:"port"`    // a free one
}

// orders say what a host starts.
type orders struct {
	Args       []string `json:"args"` // the command, or a program and its arguments
	Dir        string   `json:"dir"`  // where the launcher was started
	First      int      `json:"first"`
	Ranks      int      `json:"ranks"` // of this host
	World      int      `json:"world"`
	Address    string   `json:"address"` // of rank 0's host
	Port       int      `json:"port"`
	Rendezvous string   `json:"rendezvous,omitempty"` // in place of these two
	Job        string   `json:"job"`
	Token      string   `json:"token"`
}

// severity orders exit statuses: an error of the program counts before a failure of a rank or a machine, and that before
// an interruption.
func severity(status int) int {
	switch status {
	case 0:
		return 0
	case multigpu.ExitResumable:
		return 1
	case multigpu.ExitLost:
		return 2
	case 2: // wrong usage, or a panic
		return 3
	}
	return 4
}

// matters returns the exit status that stands for all: that of rank 0 if it has ended by itself with a failure, because it
// knows what ended the run, or else the worst. A process that a signal ended, or whose host vanished, is a lost rank. rank0 is
// -1 if rank 0 is on another host, or did not end by itself.
func matters(rank0 int, all []int) (status int) {
	known := func(s int) int {
		if s < 0 || s > 128 {
			return multigpu.ExitLost
		}
		return s
	}
	if rank0 >= 0 && rank0 <= 128 && severity(rank0) >= severity(multigpu.ExitLost) {
		return rank0
	}
	for _, s := range all {
		if s = known(s); severity(s) > severity(status) {
			status = s
		}
	}
	return status
}
