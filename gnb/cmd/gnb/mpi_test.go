package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
)

// The command, built for Open MPI and for MPICH, trains under mpirun with the samples, the losses and
// the weights of its own workers.
func TestTrainThroughMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds gnb with -tags mpi")
	}
	open, mpich := clustertest.OpenMPI(t), clustertest.MPICH(t)
	plain := filepath.Join(t.TempDir(), "gnb")
	if out, err := exec.Command("go", "build", "-o", plain, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[int]trained{}
	for _, ranks := range []int{2, 4} {
		want[ranks] = trainRanks(t, exec.Command(plain), "--workers", fmt.Sprint(ranks), "--virtual-ranks", fmt.Sprint(8/ranks))
	}
	if want[2].weights != want[4].weights {
		t.Error("own workers: 2 × 4 and 4 × 2 virtual ranks give different weights")
	}
	for _, m := range []*clustertest.MPI{open, mpich} {
		t.Run(m.Name, func(t *testing.T) {
			exe := buildWithMPI(t, m)
			for ranks, want := range want {
				got := trainRanks(t, m.Run(ranks, exe), "--virtual-ranks", fmt.Sprint(8/ranks))
				if want.digest != got.digest || want.losses != got.losses || want.weights != got.weights {
					t.Errorf("%d ranks: %+v, want %+v", ranks, got, want)
				}
				if !strings.HasPrefix(got.note, fmt.Sprintf("%d ranks of %s, connected by %s ", ranks, m.Name, m.Name)) {
					t.Errorf("%d ranks: the run's note is %q", ranks, got.note)
				}
			}
			if m == open {
				namesMPI(t, exe, open, mpich)
			}
		})
	}
}

// trained is what a run of 204 steps of 8 virtual ranks leaves.
type trained struct {
	digest, losses string // of the samples; of the first 10 steps
	weights        string
	note           string
	dir            string
}

func trainRanks(t *testing.T, cmd *exec.Cmd, args ...string) (got trained) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	got.dir = dir
	cmd.Args = append(cmd.Args, "train", "planted?nodes=6000&classes=8", "--epochs", "34", "--batch", "512", "--eval", "none", "--digest", "--json", "--run", dir)
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
	if steps != 204 || got.digest == "" {
		t.Errorf("%d steps, digest %q", steps, got.digest)
	}
	return got
}

// namesMPI: the command says for which library it is built, and the doctor finds the mpirun of another
// one on PATH.
func namesMPI(t *testing.T, exe string, open, mpich *clustertest.MPI) {
	out, err := open.Run(1, exe, "version", "--json").Output()
	var b build
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil || !strings.HasPrefix(b.MPI, "Open MPI ") {
		t.Errorf("gnb version: %v: %s", err, out)
	}
	for m, want := range map[*clustertest.MPI]bool{open: true, mpich: false} {
		out, _ := open.Run(1, "env", "PATH="+m.Bin+":"+os.Getenv("PATH"), exe, "doctor", "--json").Output() // other checks may fail
		var result struct{ Checks []check }
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
			t.Errorf("gnb doctor has no finding about MPI: %s", out)
		}
	}
}

// buildWithMPI builds gnb for a library of MPI.
func buildWithMPI(t *testing.T, m *clustertest.MPI) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs a C compiler")
	}
	exe := filepath.Join(t.TempDir(), "gnb")
	cmd := exec.Command("bash", "-c", `. ../../../scripts/mpi-env.sh && go build -tags mpi -o "$1" .`, "build", exe)
	cmd.Env = m.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v: %s", m.Name, err, out)
	}
	return exe
}
