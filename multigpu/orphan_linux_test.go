package multigpu

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// If the launcher, or its daemon on one machine, is killed, the run ends with the status of an
// interrupted one and leaves no rank behind. Rank 0 names the launcher.
func TestRanksNoticeTheLaunchersEnd(t *testing.T) {
	testneed.Raced(t, "it starts launchers")
	script := func(t *testing.T) *exec.Cmd {
		path := filepath.Join(t.TempDir(), "torchrun")
		text := "#!/bin/sh\nRANK=0 LOCAL_RANK=0 \"$1\" &\nRANK=1 LOCAL_RANK=1 \"$1\" &\nwait\n"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, os.Args[0])
		cmd.Env = append(os.Environ(), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID="+t.Name()+strconv.Itoa(os.Getpid()), "GNB_LAUNCHER=torchrun")
		return cmd
	}
	for _, c := range []struct {
		name, killed string
		start        func(t *testing.T) *exec.Cmd
		want         []string // one of these texts: the launcher may end the ranks itself
	}{
		{"torchrun", "torchrun", script, []string{"has lost its launcher: torchrun (pid "}},
		{"slurmstepd", "slurmstepd", func(t *testing.T) *exec.Cmd { return clustertest.Slurm(t).Command("srun", "-n", "2", os.Args[0]) }, []string{"has lost its launcher: slurmstepd"}},
		{"orted of another host", "orted", func(t *testing.T) *exec.Cmd {
			hosts := clustertest.Hosts(t, 2)
			cmd := clustertest.OpenMPI(t).RunOn(hosts, 1, os.Args[0])
			cmd.Env = append(cmd.Env, "GNB_RENDEZVOUS="+hosts.Hosts[0].Addr+":29511", "GNB_TOKEN=a secret of these tests")
			return cmd
		}, []string{"rank 1 (host2) has lost its launcher: orted (pid ", "the run was interrupted at epoch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := json.Marshal([]testJob{{Kind: "announce", Steps: 1e6}})
			if err != nil {
				t.Fatal(err)
			}
			result := filepath.Join(t.TempDir(), "result")
			cmd := c.start(t)
			cmd.Env = append(cmd.Env, envRanks+"="+string(spec), envResult+"="+result, "GOMAXPROCS=2")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			heard := map[string]bool{}
			lines := bufio.NewScanner(out)
			for len(heard) < 2 && lines.Scan() {
				if strings.HasPrefix(lines.Text(), "running ") {
					heard[lines.Text()] = true
				}
			}
			if len(heard) < 2 {
				t.Fatalf("the ranks do not run: %s", said.String())
			}
			ours := ranksWith(envResult + "=" + result)
			killed := false
			for _, pid := range ours {
				if above := parentNamed(pid, c.killed); above > 0 && !killed {
					killed = syscall.Kill(above, syscall.SIGKILL) == nil
				}
			}
			if len(ours) != 2 || !killed {
				t.Fatalf("ranks %v; %s was killed: %v", ours, c.killed, killed)
			}
			for end := time.Now().Add(time.Minute); len(ranksWith(envResult+"="+result)) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the ranks do not end: %v", ranksWith(envResult+"="+result))
				}
			}
			var r rankResult
			b, err := os.ReadFile(result)
			if err == nil {
				err = json.Unmarshal(b, &r)
			}
			if err != nil {
				t.Fatal(err, said.String())
			}
			found := false
			for _, want := range c.want {
				found = found || strings.Contains(r.Err, want)
			}
			if !found || r.Status != ExitResumable {
				t.Errorf("status %d: %s; want %q", r.Status, r.Err, c.want)
			}
			t.Log(r.Err)
		})
	}
}

// ranksWith returns the running processes of this program that have a variable in their
// environment.
func ranksWith(variable string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || procState(pid) == 'Z' {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+variable+"\x00") {
			continue
		}
		if exe, err := os.Readlink("/proc/" + e.Name() + "/exe"); err == nil && filepath.Base(exe) == filepath.Base(os.Args[0]) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentNamed returns the nearest ancestor of a process whose name begins with name, or 0.
func parentNamed(pid int, name string) int {
	for pid > 1 {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			return 0
		}
		f := map[string]string{}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			f[key] = strings.TrimSpace(value)
		}
		if strings.HasPrefix(f["Name"], name) {
			return pid
		}
		if pid, err = strconv.Atoi(f["PPid"]); err != nil {
			return 0
		}
	}
	return 0
}
