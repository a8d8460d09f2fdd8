package gnb_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A task of a module outside this one, written with exported names only, has what the library's own tasks have: the same bits
// on one and on two workers, the best epoch and the test at its weights, exact resumption after a kill, a place among the
// runs, sweeps and inference, a plan and a scaling curve.
func TestTaskOfAnotherModule(t *testing.T) {
	testneed.NotShort(t, "it builds a program")
	dir := t.TempDir()
	bin := userProgram(t, dir, "graphs")
	t.Setenv("GNB_RUNS", filepath.Join(dir, "runs"))
	at := func(name string) string { return filepath.Join(dir, "runs", name) }
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(bin, args...)
		c.Dir = dir
		return c
	}
	do := func(args ...string) string {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("graphs %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	weights := func(name string) []byte {
		t.Helper()
		return numbersIn(t, filepath.Join(at(name), "model.safetensors"))
	}
	if said := do("train", at("one"), "1"); !strings.Contains(said, "epoch 30/30") || !strings.Contains(said, "val 0.") {
		t.Errorf("the panel shows\n%s", said)
	}
	do("train", at("two"), "2")
	if !bytes.Equal(weights("one"), weights("two")) {
		t.Error("two workers have other weights than one with two virtual ranks")
	}
	one, err := runs.Open(at("one"))
	if err != nil {
		t.Fatal(err)
	}
	if v := one.Result.Values; !(v["val_accuracy"] >= 0.7) || !(v["test_accuracy"] >= 0.6) || !(v["best_epoch"] > 5) {
		t.Errorf("the run has the values %v", v)
	}

	killed := command("train", at("killed"), "1")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if files, _ := filepath.Glob(filepath.Join(at("killed"), "checkpoints", "*.safetensors")); len(files) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no checkpoint in a minute")
		}
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if said := do("resume", at("killed"), "1"); !strings.Contains(said, "from its checkpoint after step") {
		t.Errorf("resuming said\n%s", said)
	}
	if !bytes.Equal(weights("killed"), weights("one")) {
		t.Error("a run that was killed and resumed has other weights than one that was not")
	}

	do("infer", at("two"), "2")
	answers, err := os.ReadFile(filepath.Join(at("two"), "answers.txt"))
	if err != nil || bytes.Count(answers, []byte("\n")) != 160 {
		t.Errorf("the answers are %s, %v", answers, err)
	}
	if said := do("sweep", at("s"), "1"); !strings.Contains(said, "3 trials") {
		t.Errorf("the sweep said\n%s", said)
	}
	if said := do("plan", at("none"), "2"); !strings.Contains(said, "plan of ") || !strings.Contains(said, " graphs, ") || !strings.Contains(said, "ways to run") {
		t.Errorf("the plan said\n%s", said)
	}
	if said := do("scaling", at("none"), "2"); !strings.Contains(said, "graphs/s") {
		t.Errorf("the scaling curve said\n%s", said)
	}
	listed, err := runs.List(t.Context())
	if err != nil || len(listed) != 3 || listed[0].Config.Program != "toy.graphs" {
		t.Errorf("listed are %v, %v", listed, err)
	}
}
