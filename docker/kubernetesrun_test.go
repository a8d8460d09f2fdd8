package docker

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/nbtest"
	"github.com/graphnb/graphnb/multigpu"
)

// The pods' commands with their environments, as processes of this machine: when Kubernetes ends one rank
// (SIGTERM), all write a checkpoint and end with the status by which they are started again, and then they
// resume.
func TestRanksOfPodsResume(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains")
	}
	bin := filepath.Dir(gnb(t))
	pods := trainJob(t).Pods
	t.Run("on one host", func(t *testing.T) {
		port, err := nbtest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		interruptRanks(t, bin, pods, map[string]string{"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port}, func(_ int, name string, args ...string) *exec.Cmd {
			return exec.Command(name, args...)
		})
	})
	t.Run("on hosts of their own", func(t *testing.T) {
		w := clustertest.Hosts(t, len(pods))
		var names strings.Builder
		for i, p := range pods {
			names.WriteString(w.Hosts[i].Addr + " " + p.Host + "\n")
		}
		file := filepath.Join(w.Dir, "hosts")
		if err := os.WriteFile(file, []byte(names.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, h := range w.Hosts {
			if out, err := h.Command("mount", "--bind", file, "/etc/hosts").CombinedOutput(); err != nil { // seen by the host alone
				t.Fatalf("%v\n%s", err, out)
			}
		}
		interruptRanks(t, bin, pods, nil, func(rank int, name string, args ...string) *exec.Cmd {
			return w.Hosts[rank].Command(name, args...)
		})
		for i, h := range w.Hosts {
			if sent, received := h.Counters(); sent < 100_000 || received < 100_000 {
				t.Errorf("rank %d sent %d bytes and received %d, too few for gradients", i, sent, received)
			}
		}
	})
}

// interruptRanks starts the pods' ranks, ends one by SIGTERM, starts them again, ends the other, and looks for
// the run's resumption. command makes the command of a rank.
func interruptRanks(t *testing.T, bin string, pods []pod, with map[string]string, command func(rank int, name string, args ...string) *exec.Cmd) {
	t.Helper()
	home := t.TempDir()
	var log string
	for _, victim := range []int{1, 0} {
		logs := make([]string, len(pods))
		ranks := make([]*exec.Cmd, len(pods))
		for i, p := range pods {
			args := []string{"PATH=" + bin + ":/usr/bin:/bin", "GNB_TOKEN=" + strings.Repeat("0123456789abcdef", 4)}
			for name, value := range p.Env {
				args = append(args, name+"="+strings.Replace(cmp.Or(with[name], value), "/home/graphnb/work", home, 1))
			}
			args = append(append(args, p.Command...), "--epochs", "1000000")
			c := command(i, "env", args...)
			logs[i] = filepath.Join(home, p.Host+".log")
			f, err := os.Create(logs[i])
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			c.Stdout, c.Stderr = f, f
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Process.Kill() }()
			ranks[i] = c
		}
		read := func(rank int) string {
			b, err := os.ReadFile(logs[rank])
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		for end := time.Now().Add(2 * time.Minute); !strings.Contains(read(0), "epoch "); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("rank 0 trains no epoch:\n%s\nrank 1:\n%s", read(0), read(1))
			}
		}
		if err := ranks[victim].Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for i, c := range ranks {
			ended := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
			_ = c.Wait()
			ended.Stop()
			if status := c.ProcessState.ExitCode(); status != multigpu.ExitResumable {
				t.Fatalf("SIGTERM for rank %d: rank %d ended with %v, want status %d:\n%s", victim, i, c.ProcessState, multigpu.ExitResumable, read(i))
			}
		}
		if said := read(1); said != "" {
			t.Errorf("rank 1 printed\n%s", said)
		}
		log = read(0)
	}
	if !strings.Contains(log, "resuming run ") {
		t.Errorf("started again, the ranks did not resume:\n%s", log)
	}
}
