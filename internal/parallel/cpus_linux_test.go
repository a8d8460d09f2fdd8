package parallel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

const cpusVariable = "GNB_TEST_CPUS"

func TestMain(m *testing.M) {
	if os.Getenv(cpusVariable) != "" {
		fmt.Println(CPUs(), runtime.GOMAXPROCS(0), runtime.NumCPU())
		return
	}
	os.Exit(m.Run())
}

// cpusIn runs this program with the given environment, in a control group if the files of one are given.
func cpusIn(t *testing.T, procs []string, env ...string) (cpus, set, all int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	enter := ""
	for _, p := range procs {
		enter += "echo $$ >" + p + " || exit 9; "
	}
	cmd := exec.Command("sh", "-c", enter+`exec "$0"`, exe)
	cmd.Env = append(append(os.Environ(), cpusVariable+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := fmt.Sscan(string(out), &cpus, &set, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return cpus, set, all
}

// GOMAXPROCS says how many threads this process has, not how many processors there are; it stays as it is set.
func TestCPUsIgnoreTheVariable(t *testing.T) {
	plain, _, _ := cpusIn(t, nil, "GOMAXPROCS=")
	for _, set := range []int{1, 3, 64} {
		if got, now, _ := cpusIn(t, nil, "GOMAXPROCS="+strconv.Itoa(set)); got != plain || now != set {
			t.Errorf("GOMAXPROCS=%d: %d processors, want %d; GOMAXPROCS is then %d", set, got, plain, now)
		}
	}
}

// A control group's quota counts.
func TestCPUsInAQuota(t *testing.T) {
	testneed.Root(t)
	var procs string
	if dir, err := os.MkdirTemp("/sys/fs/cgroup", "gnb-test-"); err == nil && os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("200000 100000"), 0o600) == nil { //nolint:usetesting // a control group
		procs = filepath.Join(dir, "cgroup.procs")
		t.Cleanup(func() { _ = os.Remove(dir) })
	} else if err == nil {
		_ = os.Remove(dir)
	}
	if procs == "" {
		dir, err := os.MkdirTemp("/sys/fs/cgroup/cpu", "gnb-test-") //nolint:usetesting // a control group
		if err == nil {
			t.Cleanup(func() { _ = os.Remove(dir) })
			err = os.WriteFile(filepath.Join(dir, "cpu.cfs_quota_us"), []byte("200000"), 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cpu.cfs_period_us"), []byte("100000"), 0o600)
		}
		if err != nil {
			t.Skipf("this machine has no control group that this user can make: %v", err)
		}
		procs = filepath.Join(dir, "cgroup.procs")
	}
	cpus, _, all := cpusIn(t, []string{procs}, "GOMAXPROCS=")
	want := min(2, all) // Go counts at least 2 in any quota, so a machine with more shows more
	if cpus != want {
		t.Errorf("%d processors of %d in a quota of 2", cpus, all)
	}
	if cpus, _, _ := cpusIn(t, []string{procs}, "GOMAXPROCS=8"); cpus != want {
		t.Errorf("%d processors with GOMAXPROCS=8 in a quota of 2", cpus)
	}
}
