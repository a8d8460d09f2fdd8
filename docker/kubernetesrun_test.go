package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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
	home := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(home, "gnb"), "../gnb/cmd/gnb").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := trainJob(t)
	var log string
	for _, victim := range []int{1, 0} {
		port, err := nbtest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		logs := make([]string, len(w.Pods))
		ranks := make([]*exec.Cmd, len(w.Pods))
		for i, p := range w.Pods {
			c := exec.Command(p.Command[0], append(slices.Clone(p.Command[1:]), "--epochs", "1000000")...)
			c.Env = []string{"PATH=" + home + ":/usr/bin:/bin", "GNB_TOKEN=" + strings.Repeat("0123456789abcdef", 4)}
			for name, value := range p.Env {
				value = strings.Replace(value, "/home/graphnb/work", home, 1)
				switch {
				case strings.HasSuffix(name, "MASTER_ADDR"):
					value = "127.0.0.1"
				case strings.HasSuffix(name, "MASTER_PORT"):
					value = port
				}
				c.Env = append(c.Env, name+"="+value)
			}
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
