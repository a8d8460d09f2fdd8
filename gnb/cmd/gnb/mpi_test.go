package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// The command, built for Open MPI (with GNB_SOAK=1 for MPICH too), trains under mpirun with the samples, losses and
// weights of workers that it starts itself: on one machine, where ranks share memory, and on several
// hosts, and on nodes of an allocation of Slurm, whose ranks exchange data through MPI.
func TestTrainThroughMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gnb with -tags mpi")
	}
	open, mpich := clustertest.OpenMPI(t), clustertest.MPICH(t)
	plain := command(t)
	want := map[int]trained{}
	divided := []int{2, 4}
	if envknob.Soak.On() {
		divided = append(divided, 8)
	}
	for _, ranks := range divided {
		want[ranks] = trainRanks(t, exec.Command(plain), "--workers", fmt.Sprint(ranks), "--virtual-ranks", fmt.Sprint(8/ranks))
	}
	if want[2].weights != want[divided[len(divided)-1]].weights || want[2].weights != want[4].weights {
		t.Errorf("without MPI, %d workers × 8 virtual ranks among them give different weights", divided)
	}
	libraries := []*clustertest.MPI{open}
	if envknob.Soak.On() { // package mpi tests the exchange through both
		libraries = append(libraries, mpich)
	}
	for _, m := range libraries {
		t.Run(m.Name, func(t *testing.T) {
			exe := m.Build(t, "build")
			hosts := clustertest.Hosts(t, 2)
			type division struct {
				ranks int
				cmd   *exec.Cmd
				note  string
			}
			divisions := []division{
				{2, m.Run(2, exe), ""},
				{4, m.RunOn(hosts, 2, exe), fmt.Sprintf("4 ranks of %s, connected by %s ", m.Name, m.Name)},
			}
			if envknob.Soak.On() {
				note := fmt.Sprintf("8 ranks of %s, connected by %s ", m.Name, m.Name)
				divisions = append(divisions,
					division{8, m.Run(8, exe), ""},
					division{8, m.RunOn(clustertest.Hosts(t, 2), 4, exe), note},
					division{8, m.RunOn(clustertest.Hosts(t, 4), 2, exe), note},
					division{8, m.RunIn(clustertest.Slurm(t), 2, 4, exe), note},
				)
			}
			for _, c := range divisions {
				want, got := want[c.ranks], trainRanks(t, c.cmd, "--virtual-ranks", fmt.Sprint(8/c.ranks))
				if want.digest != got.digest || want.losses != got.losses || want.weights != got.weights {
					t.Errorf("%d ranks: %+v, want %+v", c.ranks, got, want)
				}
				if !strings.HasPrefix(got.note, c.note) || (got.note == "") != (c.note == "") {
					t.Errorf("%d ranks: the run's note is %q, want %q", c.ranks, got.note, c.note)
				}
			}
			for _, h := range hosts.Hosts {
				if sent, received := h.Counters(); sent < 1<<20 || received < 1<<20 {
					t.Errorf("%s has sent %d and received %d bytes", h.Name, sent, received)
				}
			}
			if m == open {
				namesMPI(t, exe, open, mpich)
			}
		})
	}
}

// trainedSteps is the number of steps of trainRanks: ten epochs of six.
const trainedSteps = 60

// trained holds the results of a run of trainedSteps steps with 8 virtual ranks.
type trained struct {
	digest, losses string // digest of the samples; losses of the first 10 steps
	weights        string
	note           string
	dir            string
}

func trainRanks(t *testing.T, cmd *exec.Cmd, args ...string) (got trained) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	got.dir = dir
	cmd.Args = append(cmd.Args, "train", "planted?nodes=6000&classes=8", "--epochs", fmt.Sprint(trainedSteps/6), "--batch", "512", "--eval", "none", "--digest", "--json", "--run", dir)
	cmd.Args = append(cmd.Args, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	for line := range strings.Lines(out.String()) {
		var e struct{ Event, Text, Digest string }
		if json.Unmarshal([]byte(line), &e) == nil {
			if e.Event == "start" && strings.Contains(e.Text, "connected") {
				got.note = e.Text
			}
			got.digest += e.Digest
		}
	}
	metrics, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for line := range bytes.Lines(metrics) {
		var e struct{ Records []struct{ Loss json.Number } }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			if steps++; steps <= 10 {
				got.losses += r.Loss.String() + " "
			}
		}
	}
	weights, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	got.weights = fmt.Sprintf("%x", sha256.Sum256(weights))
	if steps != trainedSteps || got.digest == "" {
		t.Errorf("%d steps, digest %q", steps, got.digest)
	}
	return got
}

// namesMPI checks that the command names the MPI library for which it is built, and that the doctor
// finds the mpirun of another library on PATH.
func namesMPI(t *testing.T, exe string, open, mpich *clustertest.MPI) {
	out, err := open.Run(1, exe, "version", "--json").Output()
	var b struct{ MPI string }
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil || !strings.HasPrefix(b.MPI, "Open MPI ") {
		t.Errorf("gnb version: %v: %s", err, out)
	}
	for m, want := range map[*clustertest.MPI]bool{open: true, mpich: false} {
		out, _ := open.Run(1, "env", "PATH="+m.Bin+":"+os.Getenv("PATH"), exe, "doctor", "--json").Output() // other checks may fail
		var result struct {
			Checks []struct {
				Name, Detail string
				OK           bool
			}
		}
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatalf("gnb doctor: %v: %s", err, out)
		}
		found := false
		for _, c := range result.Checks {
			if c.Name == "mpi" {
				found = true
				if c.OK != want || !strings.Contains(c.Detail, "built for Open MPI") || !strings.Contains(c.Detail, "that of "+m.Name+" ") {
					t.Errorf("with the mpirun of %s: %+v", m.Name, c)
				}
			}
		}
		if !found {
			t.Errorf("gnb doctor reports no check about MPI: %s", out)
		}
	}
}

// The network between two hosts is cut while MPI transfers the sums: all ranks end within a bounded
// time, rank 0 names the silent rank, and the last checkpoint is complete. mpirun itself may wait
// until the network is back.
func TestCutThroughMPI(t *testing.T) {
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "it builds gnb for two libraries, and waits for ranks to give each other up")
	}
	for _, m := range []*clustertest.MPI{clustertest.OpenMPI(t), clustertest.MPICH(t)} {
		t.Run(m.Name, func(t *testing.T) {
			exe, dir := m.Build(t, "build"), filepath.Join(t.TempDir(), "run")
			train := []string{"train", "planted?nodes=6000&classes=8", "--batch", "512", "--eval", "none", "--checkpoint-every", "20", "--run", dir}
			w := clustertest.Hosts(t, 2)
			cmd := m.RunOn(w, 1, exe, append(train, "--epochs", "2000")...)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.WaitDelay = 10 * time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			await := func(what string, limit time.Duration, ok func() bool) {
				t.Helper()
				for start := time.Now(); !ok(); time.Sleep(50 * time.Millisecond) {
					if time.Since(start) > limit {
						_ = cmd.Process.Kill()
						t.Fatalf("%s: did not happen within %v: %s", what, limit, out.String())
					}
				}
			}
			await("a checkpoint", time.Minute, func() bool {
				files, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*.safetensors"))
				return len(files) > 0
			})
			time.Sleep(2 * time.Second) // rank 1 tells where it is every tenth of a second, on a busy machine later
			w.Hosts[1].Cut()
			cut := time.Now()
			await("the end of all ranks", time.Minute, func() bool {
				links, _ := filepath.Glob("/proc/[0-9]*/exe")
				return !slices.ContainsFunc(links, func(l string) bool { to, _ := os.Readlink(l); return to == exe })
			})
			t.Logf("all ranks had ended %v after the cut", time.Since(cut).Round(100*time.Millisecond))
			w.Hosts[1].Join()
			if err := cmd.Wait(); err == nil {
				t.Errorf("mpirun ended well")
			}
			if !regexp.MustCompile(`rank 1 \(pid \d+ on host2\) failed at epoch \d+, step \d+, stage \S+: it is silent: rank 0 \(host1\)`).MatchString(out.String()) {
				t.Errorf("rank 0 did not name rank 1: %s", out.String())
			}
			if _, step, damaged, err := checkpoint.Latest(filepath.Join(dir, "checkpoints")); err != nil || step == 0 || len(damaged) > 0 {
				t.Errorf("the last checkpoint has step %d, the damaged ones are %v: %v", step, damaged, err)
			}
		})
	}
}
