package multigpu

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A rank that receives a signal before all ranks have met ends all ranks with the status of an
// interrupted run, including those that join late. Rank 0 names the rank.
func TestSignalBeforeRanksMeet(t *testing.T) {
	for _, rank := range []int{0, 1} {
		t.Run(fmt.Sprint("at rank ", rank), func(t *testing.T) {
			t.Parallel()
			hold := filepath.Join(t.TempDir(), "hold")
			if err := syscall.Mkfifo(hold, 0o600); err != nil {
				t.Fatal(err)
			}
			// On a busy machine, rank 0 may learn of the signal only when the job has begun.
			all := startAsRanks(t, 3, []testJob{{Kind: "train", Steps: 1 << 30, Rank: -1}}, func(rank int) []string {
				if rank == 2 {
					return []string{envHold + "=" + hold}
				}
				return nil
			})
			release, err := os.OpenFile(hold, os.O_WRONLY, 0) // returns once rank 2 has opened the pipe
			if err != nil {
				t.Fatal(err)
			}
			awaitLine(t, all, func(line string) bool { return line == listening })
			awaitFollower(t, all[1].cmd.Process.Pid)
			if err := all[rank].cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = release.Close()
			status, got := waitRanks(t, all), results(t, all)
			if !reflect.DeepEqual(status, []int{ExitResumable, ExitResumable, ExitResumable}) {
				t.Errorf("the ranks ended with %v", status)
			}
			want := "^multigpu: the run was interrupted( at epoch .*)?"
			if rank > 0 {
				want += fmt.Sprintf(`, because rank %d \(.*\) received the signal terminated$`, rank)
			}
			if len(got) != 1 || !regexp.MustCompile(want).MatchString(got[0].Err) {
				t.Errorf("%+v, want %q", got, want)
			}
		})
	}
}

// A rank that receives a signal while it cannot reach rank 0 ends with the same status.
func TestSignalWithoutRankZero(t *testing.T) {
	testneed.Raced(t, "it waits for rank 0")
	t.Parallel()
	all := startAsRanks(t, 2, []testJob{{Kind: "train", Steps: 1, Rank: -1}}, func(rank int) []string {
		return []string{fmt.Sprint("TORCHELASTIC_RUN_ID=", t.Name(), os.Getpid(), rank)}
	})
	awaitFollower(t, all[1].cmd.Process.Pid)
	_ = all[1].cmd.Process.Signal(syscall.SIGTERM)
	if status := waitRanks(t, all[1:]); status[0] != ExitResumable || !strings.Contains(all[1].stderr.String(), "received the signal terminated") {
		t.Errorf("rank 1 ended with %d: %s", status[0], all[1].stderr.String())
	}
	_ = all[0].cmd.Process.Kill()
	waitRanks(t, all[:1])
}

// envGrace sets a shorter checkpointGrace in a rank.
const envGrace = "MULTIGPU_TEST_GRACE"

func init() {
	if d, err := time.ParseDuration(os.Getenv(envGrace)); err == nil {
		checkpointGrace = d
	}
}

// An interrupted run gets time for its checkpoint; if the time is exceeded, the run ends with the
// status at which its launcher starts it again.
func TestSignalInALongCheckpoint(t *testing.T) {
	testneed.Raced(t, "it waits for a checkpoint of seconds")
	for _, c := range []struct {
		seconds     int
		grace, want string
		status      int
	}{
		{7, "50s", "the run was interrupted", ExitResumable},
		{60, "1s", "it had not written its checkpoint", ExitLost},
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

// awaitLine waits until rank 0 prints a line that fits accepts.
func awaitLine(t *testing.T, all []*rank, fits func(line string) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-all[0].lines:
			if !ok {
				t.Fatalf("rank 0 ended without printing the line: %s", all[0].stderr.String())
			}
			if fits(line) {
				return
			}
		case <-late:
			t.Fatalf("rank 0 does not print the line: %s", all[0].stderr.String())
		}
	}
}

// awaitFollower waits until a rank above 0 handles signals: it then ignores SIGPIPE.
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
	t.Fatal("the rank did not begin to handle signals")
}
