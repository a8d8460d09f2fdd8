package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// --resume keeps a run's task and goes on with a damaged result; --from starts with a run's weights in a new directory.
func TestResumeOrFrom(t *testing.T) {
	testneed.NotShort(t, "it builds the command")
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gnb := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const ds = "planted?nodes=300&classes=3&features=6"
	for _, c := range []struct {
		name string
		args []string
		want string // of the error; "" for none
		says string
	}{
		{"nodes", []string{"train", ds, "--epochs", "2", "--run", "runs/nodes"}, "", ""},
		{"links", []string{"train", ds, "--task", "links", "--epochs", "2", "--run", "runs/links"}, "", ""},
		{"embeddings", []string{"embed", ds, "--epochs", "1", "--dim", "4", "--run", "runs/embed"}, "", ""},
		{"nodes as links", []string{"train", "--resume", "nodes", "--task", "links"}, "predicts nodes, and --task is links", ""},
		{"links as nodes", []string{"train", "--resume", "links", "--task", "nodes"}, "predicts links, and --task is nodes", ""},
		{"links as nodes, changed", []string{"train", "--resume", "links", "--task", "nodes", "--resume-changed"}, "predicts links, and --task is nodes", ""},
		{"links as links", []string{"train", "--resume", "links", "--task", "links"}, "", ""},
		{"links as embeddings", []string{"embed", "--resume", "links"}, "is a run of program", ""},
		{"embeddings as nodes", []string{"train", "--resume", "embed"}, "resume it by gnb embed --resume", ""},
		{"from a run", []string{"train", ds, "--from", "nodes", "--epochs", "1", "--run", "runs/second"}, "", "6 of 6 parameters"},
		{"from a run into its directory", []string{"train", ds, "--from", "nodes", "--run", "runs/nodes"}, "already holds a run", ""},
		{"from a run that is resumed", []string{"train", "--resume", "nodes", "--from", "links"}, "give one of them", ""},
		{"from nothing", []string{"train", ds, "--from", "runs/nothing"}, "nothing is not a run's directory", ""},
		{"what it started with", []string{"runs", "show", "second"}, "", "started with the weights of run"},
	} {
		out, err := gnb(c.args...)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v\n%s", c.name, err, out)
		case c.want != "" && (err == nil || !strings.Contains(out, c.want)):
			t.Errorf("%s gave %v, want %q:\n%s", c.name, err, c.want, out)
		case !strings.Contains(out, c.says):
			t.Errorf("%s does not say %q:\n%s", c.name, c.says, out)
		}
	}
	for _, run := range []string{"nodes", "links", "embed"} { // a damaged result does not keep a run from going on
		path := filepath.Join(dir, "runs", run, "result.json")
		if err := os.WriteFile(path, []byte(`{"state":`), 0o600); err != nil {
			t.Fatal(err)
		}
		command := map[string]string{"embed": "embed"}[run]
		if command == "" {
			command = "train"
		}
		if out, err := gnb(command, "--resume", run); err != nil {
			t.Errorf("%s: %v\n%s", run, err, out)
		}
		if out, err := gnb("runs", "show", run); err != nil {
			t.Errorf("%s: %v\n%s", run, err, out)
		}
	}
}

// What a run prints at its end is the loss of its result: after training, resumed without anything to do, and with more epochs.
func TestPrintedLossIsTheResults(t *testing.T) {
	dir := t.TempDir()
	last := regexp.MustCompile(`done, epoch (\d+)/\d+, loss (\S+),`)
	for _, args := range [][]string{
		{"planted?nodes=300&classes=3&features=6", "--epochs", "20", "--batch", "64", "--run", "runs/a"},
		{"--resume", "a"},
		{"--resume", "a", "--epochs", "25", "--resume-changed"},
		{"--resume", "a"},
	} {
		status, stdout, stderr := gnbRun(t, dir, append([]string{"train"}, args...)...)
		if status != 0 {
			t.Fatalf("%v: %s%s", args, stdout, stderr)
		}
		var r struct {
			Epochs int
			Loss   float64
		}
		b, err := os.ReadFile(filepath.Join(dir, "runs", "a", "result.json"))
		if err := errors.Join(err, json.Unmarshal(b, &r)); err != nil {
			t.Fatal(err)
		}
		if m := last.FindStringSubmatch(stdout + stderr); m == nil || m[1] != strconv.Itoa(r.Epochs) || m[2] != fmt.Sprintf("%.3f", r.Loss) {
			t.Errorf("%v: the result is epoch %d, loss %v, and the output %s%s", args, r.Epochs, r.Loss, stdout, stderr)
		}
	}
}
