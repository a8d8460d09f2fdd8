//go:build cuda && linux && cgo

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu"
)

// rankEnv holds, as JSON, the rankJob of a process that is a rank of a launcher.
const rankEnv = "GNB_TEST_RANK_JOB"

// rankJob is a program that trains once.
type rankJob struct {
	Data  string
	Train gnb.TrainOptions
}

func trainRank(raw []byte) error {
	var j rankJob
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	ctx := context.Background()
	ds, err := gnb.Load(ctx, j.Data)
	if err != nil {
		return err
	}
	_, err = gnb.Train(ctx, ds, gnb.SAGE, j.Train)
	gnb.Must(0, err) // Must also ends the other ranks
	return nil
}

// rank is a process that is a rank of a launcher.
type rank struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan error
}

// place says where the ranks of a job run: host[r] is the host of rank r, and extra[r] holds
// additional variables of rank r. Without a network, all ranks are on this machine.
type place struct {
	w     *clustertest.Network
	host  []int
	extra map[int][]string
}

// ranks starts a job with torchrun's variables.
func (p place) ranks(t *testing.T, j rankJob) []*rank {
	t.Helper()
	raw, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	count, local := map[int]int{}, map[int]int{}
	for _, h := range p.host {
		count[h]++
	}
	id := fmt.Sprint(t.Name(), os.Getpid(), time.Now().UnixNano())
	var all []*rank
	for i, h := range p.host {
		x := &rank{cmd: exec.Command(exe), done: make(chan error, 1)}
		if x.cmd.Env = os.Environ(); p.w != nil {
			x.cmd = p.w.Hosts[h].Command(exe)
			x.cmd.Env = append(x.cmd.Env, "MASTER_ADDR="+p.w.Hosts[p.host[0]].Addr, "MASTER_PORT=29501", "GNB_TOKEN=a secret of these tests")
		}
		x.cmd.Env = append(x.cmd.Env, fmt.Sprint("RANK=", i), fmt.Sprint("WORLD_SIZE=", len(p.host)), fmt.Sprint("LOCAL_RANK=", local[h]), fmt.Sprint("LOCAL_WORLD_SIZE=", count[h]),
			"TORCHELASTIC_RUN_ID="+id, "GNB_LAUNCHER=torchrun", rankEnv+"="+string(raw))
		x.cmd.Env = append(x.cmd.Env, p.extra[i]...)
		local[h]++
		x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.out
		if err := x.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.cmd.Process.Kill() })
		go func() { x.done <- x.cmd.Wait() }()
		all = append(all, x)
	}
	return all
}

// wait waits for a rank's end and returns its exit status.
func (r *rank) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(2 * time.Minute):
		t.Fatalf("a rank does not end; its output:\n%s", r.cmd.Stdout)
		return -1
	}
}

// succeed waits until all ranks have ended without an error, checks that only rank 0 printed, and
// returns its output.
func succeed(t *testing.T, all []*rank) string {
	t.Helper()
	for i, r := range all {
		if status := r.wait(t); status != 0 {
			t.Fatalf("rank %d ended with status %d: %s\nrank 0: %s", i, status, r.out.String(), all[0].out.String())
		}
		if i > 0 && r.out.Len() > 0 {
			t.Errorf("rank %d printed %q", i, r.out.String())
		}
	}
	return all[0].out.String()
}

// sameRun checks that two runs have the same losses and weights, bit for bit.
func sameRun(t *testing.T, got, want string) {
	t.Helper()
	open := func(dir string) (*runs.Run, []runs.Step) {
		r, err := runs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Steps()
		if err != nil {
			t.Fatal(err)
		}
		return r, s
	}
	x, p := open(got)
	y, q := open(want)
	if a, b := x.Result.Weights["model.safetensors"], y.Result.Weights["model.safetensors"]; a == "" || a != b {
		t.Errorf("the weights are %q, want %q", a, b)
	}
	if len(p) != len(q) || len(p) == 0 {
		t.Fatalf("%d steps, want %d", len(p), len(q))
	}
	for i := range p {
		if p[i].Loss != q[i].Loss {
			t.Fatalf("step %d has the loss %v, want %v", i, p[i].Loss, q[i].Loss)
		}
	}
}

// Ranks that a launcher starts, on one machine and on several, take GPUs by their local ranks, join
// NCCL with rank 0's id, and have the bits of workers that GraphNB starts itself.
func TestRanksHaveTheBitsOfOwnWorkers(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	const data = "karate"
	o := small
	o.Quiet, o.Epochs = true, 2
	ds := load(t, data)
	want := map[int]string{}
	cluster(t, 4, machine{})
	own := func(workers int) string {
		o.Workers, o.RunDir = workers, filepath.Join(t.TempDir(), "own")
		if _, err := gnb.Train(t.Context(), ds, gnb.SAGE, o); err != nil {
			t.Fatal(err)
		}
		return o.RunDir
	}
	for _, n := range []int{2, 4} {
		want[n] = own(n)
	}
	o.Cooperative = true
	together := own(4)
	o.Cooperative = false
	for _, c := range []struct {
		name  string
		hosts int
		place []int
		soak  bool
		coop  bool
	}{
		{"2 on one machine", 0, []int{0, 0}, false, false},
		{"4 on one machine", 0, []int{0, 0, 0, 0}, true, false},
		{"1 on each of two hosts", 2, []int{0, 1}, true, false},
		{"2 on each of two hosts", 2, []int{0, 0, 1, 1}, false, false},
		{"cooperative on two hosts", 2, []int{0, 0, 1, 1}, false, true},
	} {
		if c.soak && !envknob.Soak.On() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var w *clustertest.Network
			if c.hosts > 0 {
				w = clustertest.Hosts(t, c.hosts)
			}
			log := cluster(t, 4/max(c.hosts, 1), machine{})
			o := o
			o.Workers, o.RunDir = 0, filepath.Join(t.TempDir(), "ranks")
			o.Quiet, o.Cooperative = false, c.coop
			out := succeed(t, place{w, c.place, nil}.ranks(t, rankJob{data, o}))
			if !strings.Contains(out, "on PTX interpreter") || !strings.Contains(out, "added up by NCCL") {
				t.Errorf("rank 0 does not name its device and NCCL:\n%s", out)
			}
			if lines := devices(t, log); len(lines) != len(c.place) {
				t.Errorf("%d of %d devices were closed", len(lines), len(c.place))
			}
			if c.coop {
				sameRun(t, o.RunDir, together)
				return
			}
			sameRun(t, o.RunDir, want[len(c.place)])
		})
	}
}

// Ranks that real launchers start (mpirun, srun) have the bits of workers that GraphNB starts
// itself.
func TestLaunchersHaveTheBitsOfOwnWorkers(t *testing.T) {
	testneed.NotShort(t, "it starts a Slurm")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const data = "karate"
	o := small
	o.Quiet, o.Epochs, o.Workers, o.RunDir = true, 2, 4, filepath.Join(t.TempDir(), "own")
	cluster(t, 4, machine{})
	if _, err := gnb.Train(t.Context(), load(t, data), gnb.SAGE, o); err != nil {
		t.Fatal(err)
	}
	want := o.RunDir
	for name, command := range map[string]func(*testing.T) *exec.Cmd{
		"mpirun of Open MPI": func(t *testing.T) *exec.Cmd { return clustertest.OpenMPI(t).Run(4, exe) },
		"mpirun of MPICH":    func(t *testing.T) *exec.Cmd { return clustertest.MPICH(t).Run(4, exe) },
		"srun on two nodes":  func(t *testing.T) *exec.Cmd { return clustertest.Slurm(t).Command("srun", "-N2", "-n4", exe) },
	} {
		if name == "mpirun of MPICH" && !envknob.Soak.On() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			cluster(t, 4, machine{})
			o := o
			o.Workers, o.RunDir = 0, filepath.Join(t.TempDir(), "ranks")
			raw, err := json.Marshal(rankJob{data, o})
			if err != nil {
				t.Fatal(err)
			}
			cmd := command(t)
			if cmd.Env == nil {
				cmd.Env = os.Environ()
			}
			cmd.Env = append(cmd.Env, rankEnv+"="+string(raw), machineEnv+"="+os.Getenv(machineEnv), "GNB_NVIDIA_PROC="+os.Getenv("GNB_NVIDIA_PROC"),
				"GNB_LIBCUBLAS="+os.Getenv("GNB_LIBCUBLAS"), "GNB_LIBNCCL="+os.Getenv("GNB_LIBNCCL"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			sameRun(t, o.RunDir, want)
		})
	}
}

// With Device "auto", all ranks use the CPU if one has no device, and rank 0 prints the reason.
// With "cuda", the run ends with an error that names the rank and its host.
func TestARankWithoutDevice(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	cluster(t, 1, machine{})
	none := map[int][]string{}
	for r := range 2 {
		none[r] = []string{"GNB_NVIDIA_PROC=" + t.TempDir()}
	}
	broken := machine{Config: fakegpu.Config{Missing: "libcuda.so.1: not there"}}
	text, err := json.Marshal(broken)
	if err != nil {
		t.Fatal(err)
	}
	driver := []string{machineEnv + "=" + string(text)}
	for _, c := range []struct {
		name, device string
		extra        map[int][]string
		words        []string
	}{
		{"auto, rank 1 has no GPU", "auto", map[int][]string{1: none[1]}, []string{"on the CPU: ", "rank 1 (host2)", "no GPU"}},
		{"auto, rank 0 has no GPU", "auto", map[int][]string{0: none[0]}, []string{"all ranks are on the CPU", "rank 0 (host1)", "no GPU"}},
		{"auto, rank 1 has no driver", "auto", map[int][]string{1: driver}, []string{"on the CPU: ", "rank 1 (host2)", "libcuda.so.1: not there"}},
		{"cuda, rank 1 has no GPU", "cuda", map[int][]string{1: none[1]}, []string{"rank 1", "on host2", "no GPU"}},
		{"cuda, rank 0 has no GPU", "cuda", map[int][]string{0: none[0]}, []string{`Device is "cuda" and there is none`, "rank 0", "host1", "no GPU"}},
		{"cuda, rank 1 has no driver", "cuda", map[int][]string{1: driver}, []string{"rank 1", "on host2", "libcuda.so.1: not there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := small
			o.Device, o.Epochs, o.RunDir = c.device, 1, filepath.Join(t.TempDir(), "run")
			all := place{w, []int{0, 1}, c.extra}.ranks(t, rankJob{"karate", o})
			status, _ := all[0].wait(t), all[1].wait(t)
			if want := map[string]int{"auto": 0, "cuda": 1}[c.device]; status != want {
				t.Errorf("rank 0 ended with status %d, want %d", status, want)
			}
			for _, word := range c.words {
				if !strings.Contains(all[0].out.String(), word) {
					t.Errorf("rank 0 does not say %q:\n%s\nrank 1: %s", word, all[0].out.String(), all[1].out.String())
				}
			}
			t.Log(all[0].out.String())
		})
	}
}

// A fault between the ranks' devices ends the run in bounded time, with an error that names the
// rank where it began, its host and the position in the run. The faults are a lost connection that
// NCCL reports, a failed start of NCCL, and a rank that hangs and is killed.
func TestNCCLFaultsOfRanks(t *testing.T) {
	testneed.NotShort(t, "it starts hosts")
	w := clustertest.Hosts(t, 2)
	for _, c := range []struct {
		name, plan string
		kill       bool
		words      []string
		soak       bool
		status     int
	}{
		{"a connection is lost", "async:1:3", false, []string{"on host", "at epoch ", "step ", "stage ", "communication of 2 ranks by NCCL", "remote process exited"}, false, multigpu.ExitLost},
		{"NCCL does not start", "init", false, []string{"at stage start", "joining the group of 2 ranks by NCCL", "no socket interface found", "on host"}, true, 1},
		{"a rank is killed", "hang:1:3", true, []string{"rank 1", "on host2", "at epoch ", "its process or its connection has ended without a word"}, false, multigpu.ExitLost},
	} {
		if c.soak && !envknob.Soak.On() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			cluster(t, 1, machine{Config: fakegpu.Config{Quiet: true}})
			t.Setenv("FAKE_NCCL", c.plan)
			t.Setenv("TMPDIR", t.TempDir())
			o := small
			o.RunDir = filepath.Join(t.TempDir(), "run")
			all := place{w: w, host: []int{0, 1}}.ranks(t, rankJob{"karate", o})
			if c.kill { // kill the rank while the others wait for it on their devices
				waitForSteps(t, o.RunDir, 1)
				time.Sleep(500 * time.Millisecond)
				if err := all[1].cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if status := all[0].wait(t); status != c.status {
				t.Errorf("rank 0 ended with status %d, want %d", status, c.status)
			}
			all[1].wait(t)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("the run ended after %v", took)
			}
			text := all[0].out.String()
			for _, word := range c.words {
				if !strings.Contains(text, word) {
					t.Errorf("rank 0 does not say %q:\n%s\nrank 1: %s", word, text, all[1].out.String())
				}
			}
			t.Log(text)
		})
	}
}

// waitForSteps waits until the run has n steps.
func waitForSteps(t *testing.T, dir string, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if r, err := runs.Open(dir); err == nil {
			if s, err := r.Steps(); err == nil && len(s) >= n {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no steps")
		}
	}
}
