package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The batch script trains on two nodes. Told to end, as Slurm does before the time limit, its ranks write a checkpoint
// and exit with 75; Slurm starts the job again, and it resumes. So it does after a rank was killed.
func TestBatchScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gnb and waits for a requeued job")
	}
	dir := t.TempDir() // made before the cluster, whose job writes into it until the cluster ends
	s := clustertest.Slurm(t)
	script, err := filepath.Abs("slurm/train.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	epochs := "12"
	if testneed.Soak.Here() {
		epochs = "40"
	}
	sbatch := s.Command("sbatch", "--parsable", script, "planted?nodes=20000", "--epochs", epochs, "--checkpoint-every", "5")
	sbatch.Dir = dir
	sbatch.Env = append(sbatch.Env, "PATH="+filepath.Dir(gnb(t))+":"+os.Getenv("PATH")+":"+s.Bin())
	out, err := sbatch.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	job := strings.TrimSpace(string(out))
	run, log := filepath.Join(dir, "runs", job), filepath.Join(dir, "graphnb-"+job+".log")
	printed := func() string { b, _ := os.ReadFile(log); return string(b) }
	wait(t, "its first checkpoint", printed, func() bool {
		c, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
		return len(c) > 0
	})
	if out, err := s.Command("scancel", "--signal=TERM", job).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if testneed.Soak.Here() { // a rank that is killed, for want of memory for example
		wait(t, "the resumed run", printed, func() bool { return strings.Contains(printed(), "resuming run") })
		from := newest(run)
		wait(t, "its next checkpoint", printed, func() bool { return newest(run) > from })
		signalRank(t, run, "1", syscall.SIGKILL)
		wait(t, "the run resumed after a failure", printed, func() bool { return strings.Count(printed(), "resuming run") == 2 })
	}
	wait(t, "the resumed run's end", printed, func() bool {
		result, _ := os.ReadFile(filepath.Join(run, "result.json"))
		return strings.Contains(string(result), `"done"`)
	})
	if got := printed(); !strings.Contains(got, "exit code 75") || !strings.Contains(got, "resuming run") {
		t.Errorf("the job does not show that it was interrupted and resumed:\n%s", got)
	}
}

// A token in the environment from which the script is submitted does not collide with the script's own.
func TestBatchScriptSetsOneToken(t *testing.T) {
	path := commands(t, map[string]string{
		"od": "echo 0123456789abcdef0123456789abcdef", "tr": "exec cat",
		"srun": `echo "token=$GNB_TOKEN file=${GNB_TOKEN_FILE-unset} $*"`,
	})
	c := exec.Command("bash", "slurm/train.sbatch", "cora")
	c.Env = []string{"PATH=" + path, "SLURM_JOB_ID=7", "GNB_TOKEN=another secret of this user", "GNB_TOKEN_FILE=/elsewhere"}
	out, err := c.CombinedOutput()
	if want := "token=0123456789abcdef0123456789abcdef file=unset gnb train cora --run runs/7\n"; err != nil || string(out) != want {
		t.Errorf("%v: the ranks would see\n%s, want\n%s", err, out, want)
	}
}

func wait(t *testing.T, what string, printed func() string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("no sign of %s; the job printed:\n%s", what, printed())
		}
	}
}
