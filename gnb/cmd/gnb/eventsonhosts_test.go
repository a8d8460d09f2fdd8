package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/envknob"
)

// Models of events on machines of which each has its own parts and the whole graph, and at servers on machines that have nothing but
// their parts, have the losses and weights of the undivided dataset; ranks that have no whole graph are refused, in one sentence.
func TestEventsOnHosts(t *testing.T) {
	exe := command(t)
	plain := func() *exec.Cmd { return exec.Command(exe) }
	dir := t.TempDir()
	var csv strings.Builder
	csv.WriteString("source,target,time,size\n")
	for i := range 600 {
		fmt.Fprintf(&csv, "p%d,q%d,%d,%d\n", i*7%23, i*i%17, i/3, i%5)
	}
	if err := os.WriteFile(filepath.Join(dir, "e.csv"), []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	data, whole, apart := filepath.Join(dir, "data"), filepath.Join(dir, "whole"), filepath.Join(dir, "apart")
	runGNB(t, plain(), "data", "convert", filepath.Join(dir, "e.csv"), data)
	const parts = 4
	runGNB(t, plain(), "partition", data, "--parts", fmt.Sprint(parts), "--out", whole)
	runGNB(t, plain(), "partition", data, "--parts", fmt.Sprint(parts), "--out", apart, "--no-topology")
	train := func(model string, data string, more ...string) []string {
		return slices.Concat([]string{"train", data, "--task", "events", "--model", model, "--hidden", "8", "--batch", "60", "--epochs", "2", "--threads", "1", "--seed", "5"}, more)
	}
	result := func(cmd *exec.Cmd, args []string) (weights []byte, losses []float64) {
		t.Helper()
		run := filepath.Join(t.TempDir(), "run")
		runGNB(t, cmd, append(args, "--run", run)...)
		weights, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return weights, lossesOf(t, run)
	}
	check := func(what string, cmd *exec.Cmd, model, on string, more ...string) {
		t.Helper()
		want, losses := result(plain(), train(model, data, "--workers", "1", "--virtual-ranks", fmt.Sprint(parts)))
		got, of := result(cmd, train(model, on, more...))
		if !bytes.Equal(got, want) || !slices.Equal(of, losses) || len(of) < firstSteps {
			t.Errorf("%s: other weights, or losses: %v, want %v", what, of, losses)
		}
	}
	two := clustertest.Hosts(t, 2)
	check("two machines", two.Torchrun([]int{1, 1}, exe), "counts", giveParts(t, two, two.Hosts, whole, parts))

	three := clustertest.Hosts(t, 3)
	address := serveParts(t, three.Hosts[:2], exe, giveParts(t, three, three.Hosts[:2], apart, parts))
	trainer := three.Hosts[2].Command(exe)
	trainer.Env = append(trainer.Env, envknob.Home.Name+"="+t.TempDir(), envknob.Insecure.Name+"=1")
	check("servers on two machines", trainer, "tgn", address, "--workers", "2")

	none := clustertest.Hosts(t, 2)
	cmd := none.Torchrun([]int{1, 1}, exe)
	cmd.Args = append(cmd.Args, train("counts", giveParts(t, none, none.Hosts, apart, parts), "--run", filepath.Join(t.TempDir(), "run"))...)
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Count(string(out), "each worker needs the events of all nodes") != 1 || !strings.Contains(string(out), "is not on this machine") {
		t.Errorf("without the whole graph: %v: %s", err, out)
	}
}
