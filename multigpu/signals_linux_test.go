package multigpu

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A rank that is told to end before all ranks have met ends with the status of an interrupted run,
// whether it has found rank 0 or not.
func TestSignalBeforeRanksMeet(t *testing.T) {
	t.Parallel()
	for _, found := range []bool{false, true} {
		all := startAsRanks(t, 2, []testJob{{Kind: "train", Steps: 1, Rank: -1}}, func(rank int) []string {
			env := []string{"WORLD_SIZE=3", "LOCAL_WORLD_SIZE=3"} // the last one never comes
			if rank == 0 && !found {
				env = append(env, "TORCHELASTIC_RUN_ID=another")
			}
			return env
		})
		awaitFollower(t, all[1].cmd.Process.Pid)
		time.Sleep(300 * time.Millisecond) // in which it finds rank 0
		_ = all[1].cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(300 * time.Millisecond)
		_ = all[0].cmd.Process.Kill()
		if status := waitRanks(t, all); status[1] != ExitResumable {
			t.Errorf("rank 0 found: %v: rank 1 ended with %d, want %d: %s", found, status[1], ExitResumable, all[1].stderr.String())
		}
	}
}

// envGrace shortens checkpointGrace in a rank.
const envGrace = "MULTIGPU_TEST_GRACE"

func init() {
	if d, err := time.ParseDuration(os.Getenv(envGrace)); err == nil {
		checkpointGrace = d
	}
}

// An interrupted run has time for its checkpoint, and ends with the status of a failure if it is
// given up in it.
func TestSignalInALongCheckpoint(t *testing.T) {
	for _, c := range []struct {
		seconds     int
		grace, want string
		status      int
	}{
		{7, "50s", "the run was interrupted", ExitResumable},
		{60, "1s", "it had not written its checkpoint", exitFailed},
	} {
		t.Run(c.grace, func(t *testing.T) {
			t.Parallel()
			all := startAsRanks(t, 3, []testJob{{Kind: "save", Steps: c.seconds}}, func(int) []string { return []string{envGrace + "=" + c.grace} })
			awaitRunning(t, all)
			_ = all[0].cmd.Process.Signal(syscall.SIGTERM)
			status, got := waitRanks(t, all), results(t, all)
			if status[0] != c.status || len(got) != 1 || !strings.Contains(got[0].Err, c.want) || c.status == ExitResumable && len(got[0].Forced) > 0 {
				t.Errorf("the ranks ended with %v: %+v", status, got)
			}
			for rank, s := range status {
				if s != c.status {
					t.Errorf("rank %d ended with %d, want %d", rank, s, c.status)
				}
			}
		})
	}
}

// awaitFollower waits until a rank above 0 listens to signals: it then ignores SIGPIPE.
func awaitFollower(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`SigIgn:\s*([0-9a-f]+)`).FindSubmatch(b); m != nil {
			if mask, err := strconv.ParseUint(string(m[1]), 16, 64); err == nil && mask>>(uint(syscall.SIGPIPE)-1)&1 == 1 {
				return
			}
		}
	}
	t.Fatal("the rank does not listen to signals")
}
