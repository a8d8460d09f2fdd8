//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Under PyTorch's own torchrun on two hosts, a rank on rank 0's host is killed, or stopped: every rank of the failed run ends
// with a status other than 0, so both agents start their ranks again, these meet, and the run has the weights of one that
// nothing happened to.
func TestRealTorchrun(t *testing.T) {
	testneed.NotShort(t, "it starts launchers, for minutes")
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "torchrun waits 30 s for a stopped rank")
	}
	torchrun := clustertest.RealTorchrun(t)
	exe := command(t)
	train := []string{"train", "planted?nodes=20000&classes=8", "--epochs", "20", "--batch", "256", "--eval", "none", "--checkpoint-every", "20", "--device", "cpu"}
	weights := func(dir string) string {
		b, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	alone := filepath.Join(t.TempDir(), "run")
	if out, err := exec.Command(exe, append(train, "--workers", "2", "--virtual-ranks", "2", "--run", alone)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, fault := range map[string]syscall.Signal{"no fault": 0, "kill": syscall.SIGKILL, "stop": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			w := clustertest.Hosts(t, 2)
			dir, id := filepath.Join(t.TempDir(), "run"), fmt.Sprintf("%s-%d", name, os.Getpid())
			agents, outs := make([]*exec.Cmd, 2), make([]bytes.Buffer, 2)
			for i, h := range w.Hosts {
				args := []string{
					"--nnodes=2", "--nproc_per_node=2", "--max_restarts=3", "--rdzv_backend=c10d", "--rdzv_endpoint=" + w.Hosts[0].Addr + ":29400",
					"--local_addr=" + h.Addr, // the hosts of the test have no names
					"--rdzv_id=" + id, fmt.Sprintf("--rdzv_conf=is_host=%v,last_call_timeout=5", i == 0), "--no_python", "--", exe,
				}
				cmd := h.Command(torchrun, append(append(args, train...), "--run", dir)...)
				cmd.Env = append(cmd.Env, "GNB_TOKEN=a secret of these tests", "GNB_RENDEZVOUS="+w.Hosts[0].Addr+":29600", "OMP_NUM_THREADS=1")
				cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				agents[i] = cmd
			}
			ended := make(chan error, 2)
			for _, cmd := range agents {
				go func() { ended <- cmd.Wait() }()
			}
			if fault != 0 {
				until := time.Now().Add(time.Minute)
				for !hasCheckpoint(dir) {
					if time.Now().After(until) {
						t.Fatalf("no checkpoint: %s\n%s", outs[0].String(), outs[1].String())
					}
					time.Sleep(20 * time.Millisecond)
				}
				if err := syscall.Kill(besideRankZero(t, id), fault); err != nil {
					t.Fatal(err)
				}
			}
			for range agents {
				select {
				case err := <-ended:
					if err != nil {
						t.Errorf("an agent ended with %v", err)
					}
				case <-time.After(4 * time.Minute):
					for _, cmd := range agents {
						_ = cmd.Process.Kill()
					}
					t.Fatal("an agent of torchrun still waits after four minutes")
				}
			}
			said := outs[0].String() + outs[1].String()
			if t.Failed() {
				t.Fatal(said)
			}
			if fault != 0 && !strings.Contains(said, "resuming run") {
				t.Errorf("the run was not resumed: %s", said)
			}
			if weights(dir) != weights(alone) {
				t.Error("the weights differ from those of a run that nothing happened to")
			}
		})
	}
}

func hasCheckpoint(dir string) bool {
	all, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
	return len(all) > 0
}

// besideRankZero returns the process of another rank of torchrun's job on the host of rank 0.
func besideRankZero(t *testing.T, id string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	byGroup, zero := map[string]int{}, ""
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		env := map[string]string{}
		for _, v := range strings.Split(string(b), "\x00") {
			if k, v, ok := strings.Cut(v, "="); ok {
				env[k] = v
			}
		}
		if env["TORCHELASTIC_RUN_ID"] != id || env["RANK"] == "" {
			continue
		}
		if env["RANK"] == "0" {
			zero = env["GROUP_RANK"]
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		byGroup[env["GROUP_RANK"]] = pid
	}
	pid := byGroup[zero]
	if pid == 0 {
		t.Fatalf("no rank beside rank 0 was found (%v, rank 0 is in %q)", byGroup, zero)
	}
	return pid
}
