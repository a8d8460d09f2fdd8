package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The script starts a command again after an interruption, and after a failure as often as RESTARTS says; it ends with
// the command, with an error of the program, and with wrong usage.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		statuses []int // of the command, one for each start
		restarts string
		want     int
	}{
		{[]int{0}, "", 0},
		{[]int{75, 75, 75, 75, 75, 0}, "", 0},
		{[]int{137, 75, 9, 137, 0}, "", 0},
		{[]int{137, 137, 137, 137}, "", 137},
		{[]int{137, 9}, "1", 9},
		{[]int{137}, "0", 137},
		{[]int{75, 1}, "", 1},
		{[]int{2}, "", 2},
	} {
		dir := t.TempDir()
		var list strings.Builder
		for _, s := range c.statuses {
			fmt.Fprintln(&list, s)
		}
		if err := os.WriteFile(filepath.Join(dir, "statuses"), []byte(list.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "mpi/again.sh", "sh", "-c", `cd "$0"; read -r s <statuses; sed -i 1d statuses; exit "$s"`, dir)
		cmd.Env = append(os.Environ(), "RESTARTS="+c.restarts)
		out, _ := cmd.CombinedOutput()
		left, err := os.ReadFile(filepath.Join(dir, "statuses"))
		if got := cmd.ProcessState.ExitCode(); got != c.want || err != nil || len(left) > 0 {
			t.Errorf("statuses %v, RESTARTS=%q: the script ended with %d, want %d; it left %q: %s", c.statuses, c.restarts, got, c.want, left, out)
		}
	}
}

// Under mpirun of both libraries the script brings a run to its end whose worker is killed and whose rank 0 gets a signal.
func TestAgainUnderMPIRun(t *testing.T) {
	if !testneed.Soak.Here() {
		testneed.Skip(t, testneed.Soak, "TestAgain runs the script with another command")
	}
	for _, m := range []*clustertest.MPI{clustertest.OpenMPI(t), clustertest.MPICH(t)} {
		t.Run(m.Name, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			mpirun := m.Run(2, gnb(t), "train", "planted?nodes=20000", "--epochs", "30", "--checkpoint-every", "5", "--run", run)
			cmd := exec.Command("bash", append([]string{"mpi/again.sh"}, mpirun.Args...)...)
			cmd.Env = mpirun.Env
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			nothing := func() string { return "" }
			before := 0
			for _, c := range []struct {
				rank   string
				signal syscall.Signal
			}{{"1", syscall.SIGKILL}, {"0", syscall.SIGTERM}} {
				wait(t, "a start of rank "+c.rank, nothing, func() bool { p := rankOf(run, c.rank); return p > 0 && rankOf(run, "0") != before })
				from := newest(run)
				wait(t, "a checkpoint", nothing, func() bool { return newest(run) > from })
				before = rankOf(run, "0")
				signalRank(t, run, c.rank, c.signal)
			}
			err := cmd.Wait()
			result, _ := os.ReadFile(filepath.Join(run, "result.json"))
			if err != nil || strings.Count(out.String(), "it starts again") != 2 || strings.Count(out.String(), "resuming run") != 2 || !strings.Contains(string(result), `"done"`) {
				t.Errorf("the script ended with %v, and the run with %s:\n%s", err, result, out.String())
			}
		})
	}
}

// rankOf returns the process of a rank that trains into a folder, 0 if there is none.
func rankOf(run, rank string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		args, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		folder, _ := os.Readlink(filepath.Join(filepath.Dir(file), "cwd"))
		trains := strings.Contains(string(args), run) || strings.HasPrefix(run, folder+"/runs/") && strings.Contains(string(args), "\x00train\x00")
		for _, name := range []string{"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID="} {
			if trains && strings.Contains("\x00"+string(env), "\x00"+name+rank+"\x00") {
				var pid int
				_, _ = fmt.Sscanf(file, "/proc/%d/", &pid)
				return pid
			}
		}
	}
	return 0
}

// signalRank sends a signal to a rank.
func signalRank(t *testing.T, run, rank string, s syscall.Signal) {
	t.Helper()
	pid := rankOf(run, rank)
	if pid == 0 { // which would be this test's own process group
		t.Fatalf("there is no rank %s", rank)
	}
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// newest is the name of a run's newest checkpoint, "" if there is none.
func newest(run string) string {
	files, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
	return slices.Max(append(files, ""))
}
