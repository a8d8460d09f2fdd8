package multigpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/multigpu/cluster"
)

// Failures of ranks, machines and networks have a status of their own, by which a script starts the run again; errors of the
// program have another.
func TestStatusOf(t *testing.T) {
	for _, c := range []struct {
		name        string
		err         error
		interrupted bool
		want        int
	}{
		{"an error of the program", &WorkerError{Cause: CauseError}, false, 1},
		{"a panic", &WorkerError{Cause: CauseProgram}, false, 1},
		{"a rank that a signal ended", &WorkerError{Cause: CauseLost}, false, ExitLost},
		{"a stall", fmt.Errorf("gnb: %w", &WorkerError{Cause: CauseStalled}), false, ExitLost},
		{"a rank that has gone", fmt.Errorf("gnb: %w", &cluster.Lost{Err: errors.New("gone")}), false, ExitLost},
		{"another error", errors.New("no dataset"), false, 1},
		{"an interrupt", errors.New("interrupted"), true, ExitResumable},
	} {
		if got := StatusOf(c.err, c.interrupted); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

// The scripts of the repository start a run again after a lost rank, and not after an error of the program.
func TestScriptsKnowStatuses(t *testing.T) {
	bin := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("srun", `exit "$STATUS"`)
	put("scontrol", `echo "$@"`)
	for status, again := range map[int]bool{0: false, 1: false, 2: false, ExitLost: true, ExitResumable: true, 137: true} {
		cmd := exec.Command("bash", filepath.Join("..", "docker", "slurm", "train.sbatch"), "cora")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), fmt.Sprint("STATUS=", status), "SLURM_JOB_ID=7")
		out, _ := cmd.CombinedOutput()
		if got := strings.Contains(string(out), "requeue 7"); got != again || cmd.ProcessState.ExitCode() != status {
			t.Errorf("train.sbatch after status %d: requeued is %v, it ended with %d: %s", status, got, cmd.ProcessState.ExitCode(), out)
		}
	}
	for status, starts := range map[int]int{0: 1, 1: 1, 2: 1, ExitLost: 3} {
		count := filepath.Join(bin, fmt.Sprint("starts", status))
		put("run", `echo x >>"$0.log"; echo x >>"`+count+`"; exit "$STATUS"`)
		cmd := exec.Command("bash", filepath.Join("..", "docker", "mpi", "again.sh"), filepath.Join(bin, "run"))
		cmd.Env = append(os.Environ(), fmt.Sprint("STATUS=", status), "RESTARTS=2")
		_ = cmd.Run()
		if b, _ := os.ReadFile(count); len(b)/2 != starts {
			t.Errorf("again.sh after status %d: %d starts, want %d", status, len(b)/2, starts)
		}
	}
}
