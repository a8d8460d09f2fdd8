package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// built is the directory of binary, once it has been built.
var built string

// binary builds the command once and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gnb-cli-test-")
	if err != nil {
		return "", err
	}
	built = dir
	bin := filepath.Join(dir, "gnb")
	out, err := exec.Command("go", "build", "-ldflags=-s", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return bin, nil
})

// command returns the path of the built command, which it skips the test for in -short mode.
func command(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "monitor" {
		// The test binary serves as its own helper process, as the command does.
		os.Exit(dispatch(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(status)
}

// gnbRun runs the command in dir and returns its exit status and output.
func gnbRun(t *testing.T, dir string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	bin := command(t)
	var o, e bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &o, &e
	cmd.Env = append(os.Environ(), "GNB_RUNS="+filepath.Join(dir, "runs"))
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// result runs the command with --json. It returns the events and the fields of the last event, the
// result, and fails the test if the command fails.
func result(t *testing.T, dir string, args ...string) (events []map[string]any, last map[string]any) {
	t.Helper()
	status, stdout, stderr := gnbRun(t, dir, append(args, "--json")...)
	if status != 0 {
		t.Fatalf("gnb %s: exit status %d\n%s%s", strings.Join(args, " "), status, stdout, stderr)
	}
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("gnb %s: a line of its output is not JSON: %v: %s", strings.Join(args, " "), err, line)
		}
		events = append(events, e)
	}
	last = events[len(events)-1]
	if last["event"] != "result" {
		t.Fatalf("gnb %s: the last event is %v, want the result", strings.Join(args, " "), last)
	}
	return events, last
}

func has(t *testing.T, r map[string]any, fields ...string) {
	t.Helper()
	for _, f := range fields {
		if _, ok := r[f]; !ok {
			t.Errorf("the result has no field %q: %v", f, r)
		}
	}
}

func TestTrainReports(t *testing.T) {
	dir := t.TempDir()
	events, r := result(t, dir, "train", "planted?nodes=2000", "--workers", "2", "--epochs", "4", "--fanout", "6,full", "--batch", "128", "--seed", "3", "--digest", "--best-by", "loss", "--patience", "4")
	has(t, r, "loss", "val_accuracy", "val_loss", "test_accuracy", "eval", "epochs", "epoch_seconds", "sampled_edges", "unique_edges", "peak_rss_bytes", "workers", "device", "precision", "run", "digest")
	if r["epochs"] != 4.0 || r["workers"] != 2.0 || r["device"] != "cpu" || r["eval"] != "full" {
		t.Errorf("result %v", r)
	}
	if a := r["test_accuracy"].(float64); a < 0.8 {
		t.Errorf("test accuracy %v, want at least 0.8", a)
	}
	if s, u := r["sampled_edges"].(float64), r["unique_edges"].(float64); !(u > 0 && u < s) {
		t.Errorf("two workers sampled %v unique edges of %v", u, s)
	}
	epochs := 0
	for _, e := range events {
		if e["event"] != "epoch" {
			continue
		}
		epochs++
		has(t, e, "epoch", "loss", "seconds", "stages", "val_accuracy")
		sum := 0.0
		for _, s := range e["stages"].(map[string]any) {
			sum += s.(float64)
		}
		if s := e["seconds"].(float64); sum < 0.95*s || sum > 1.05*s {
			t.Errorf("epoch %v: the stages add up to %v s of %v s", e["epoch"], sum, s)
		}
	}
	if epochs != 4 {
		t.Errorf("%d epoch events, want 4", epochs)
	}

	// infer uses the last run by default.
	_, i := result(t, dir, "infer", "planted?nodes=2000", "--out", "logits.npy", "--workers", "2")
	has(t, i, "nodes", "seconds", "accuracy")
	if i["nodes"] != 2000.0 || i["accuracy"].(float64) < 0.8 {
		t.Errorf("infer: %v", i)
	}
	if info, err := os.Stat(filepath.Join(dir, "logits.npy")); err != nil || info.Size() < 2000*4*5 {
		t.Errorf("logits.npy: %v, %v", info, err)
	}
	_, named := result(t, dir, "infer", "planted?nodes=2000", "--run", filepath.Base(r["run"].(string)), "--out", "named.npy")
	if named["accuracy"] != i["accuracy"] {
		t.Errorf("infer of the run by its name: %v", named)
	}
}

func TestRunsCommand(t *testing.T) {
	dir := t.TempDir()
	for _, hidden := range []string{"8", "16"} {
		result(t, dir, "train", "karate", "--workers", "1", "--epochs", "2", "--hidden", hidden)
	}
	_, r := result(t, dir, "runs", "list")
	list := r["runs"].([]any)
	if len(list) != 2 {
		t.Fatalf("%d runs, want 2", len(list))
	}
	a, b := list[0].(map[string]any)["id"].(string), list[1].(map[string]any)["id"].(string)
	_, r = result(t, dir, "runs", "list", "--filter", "hidden>8 state=done", "--sort", "-val_accuracy")
	if list := r["runs"].([]any); len(list) != 1 || list[0].(map[string]any)["id"] != b || list[0].(map[string]any)["fields"].(map[string]any)["model"] != "sage" {
		t.Errorf("filtered: %v, want %s alone", list, b)
	}
	if status, stdout, stderr := gnbRun(t, dir, "runs", "list", "--sort=-hidden", "--columns", "hidden,state"); status != 0 || stdout != "Hidden  state\n16      done\n8       done\n" {
		t.Errorf("list: status %d\n%s%s", status, stdout, stderr)
	}
	for want, args := range map[string][]string{"not a comparison": {"list", "--filter", "x"}, `no run has a field "speed"`: {"list", "--sort", "speed"}, "are flags of runs list": {"show", "--filter", "a=b"}} {
		if status, _, stderr := gnbRun(t, dir, append([]string{"runs"}, args...)...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	result(t, dir, "runs", "export", a, b, "--tensorboard", "tb")
	if found, err := filepath.Glob(filepath.Join(dir, "tb", "*", "events.out.tfevents.*")); err != nil || len(found) != 2 {
		t.Errorf("the export wrote %v (%v), want two files", found, err)
	}
	for _, args := range [][]string{{"export"}, {"show", "--tensorboard", "tb"}, {"export", a, b, "--tensorboard", "tb", "--follow"}} {
		if status, _, stderr := gnbRun(t, dir, append([]string{"runs"}, args...)...); status != 2 {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	status, stdout, stderr := gnbRun(t, dir, "runs", "compare", a, b, "--png", "c.png", "--follow")
	if info, err := os.Stat(filepath.Join(dir, "c.png")); err != nil || info.Size() < 1000 {
		t.Errorf("the picture's file is %v, %v", info, err)
	}
	if status != 0 || !strings.Contains(stdout, "args.Hidden") || strings.Contains(stdout, "args.LR") {
		t.Errorf("compare: status %d\n%s%s", status, stdout, stderr)
	}
	if status, stdout, _ := gnbRun(t, dir, "runs", "show"); status != 0 || !strings.Contains(stdout, b) {
		t.Errorf("show: status %d, want the last run, %s\n%s", status, b, stdout)
	}
	if status, stdout, stderr := gnbRun(t, dir, "runs", "attach"); status != 0 || !strings.Contains(stdout, b) {
		t.Errorf("runs attach: status %d, %s%s", status, stdout, stderr)
	}
	if status, _, stderr := gnbRun(t, dir, "runs", "show", "nothing"); status != 1 || !strings.Contains(stderr, "not a run") {
		t.Errorf("runs show without runs: status %d\n%s", status, stderr)
	}
	if status, _, _ := gnbRun(t, dir, "runs", "compare", a); status != 2 {
		t.Errorf("runs compare with one run: status %d, want 2", status)
	}
}

func TestSampleDigest(t *testing.T) {
	var want any
	for _, workers := range []string{"1", "3"} {
		_, r := result(t, t.TempDir(), "sample", "planted?nodes=2000", "--fanout", "7,3", "--batch", "100", "--seed", "5", "--epoch", "2", "--workers", workers)
		has(t, r, "batches", "edges", "nodes", "seconds", "edges_per_second", "digest")
		if want == nil {
			want = r["digest"]
		}
		if r["digest"] != want || want == "" {
			t.Errorf("%s workers: digest %v, want %v", workers, r["digest"], want)
		}
	}
}

func TestDataCommands(t *testing.T) {
	dir := t.TempDir()
	_, r := result(t, dir, "data", "generate", "planted?nodes=500", "d")
	if r["nodes"] != 500.0 {
		t.Errorf("generate: %v", r)
	}
	for _, what := range []string{"info", "check"} {
		if _, r := result(t, dir, "data", what, "d"); r["nodes"] != 500.0 || r["classes"] != 5.0 {
			t.Errorf("%s: %v", what, r)
		}
	}
	// check refuses a damaged directory, and train refuses it before it starts training.
	labels := filepath.Join(dir, "d", "labels.npy")
	raw, err := os.ReadFile(labels)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] = 0x7f
	if err := os.WriteFile(labels, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"data", "check", "d"}, {"train", "d"}} {
		status, _, stderr := gnbRun(t, dir, args...)
		if status != 1 || !strings.Contains(stderr, "labels.npy") {
			t.Errorf("gnb %s on damaged labels: status %d\n%s", strings.Join(args, " "), status, stderr)
		}
	}
}

// info prints the types of a knowledge graph that convert has read, with the edges of each relation.
func TestDataInfoOfTypes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "kg"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"train.txt": "a\tknows\tb\nb\tlikes\tc\n", "test.txt": "b\tknows\ta\n"} {
		if err := os.WriteFile(filepath.Join(dir, "kg", file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, r := result(t, dir, "data", "convert", "kg", "d"); r["relations"] != 2.0 || r["format"] != "triples" {
		t.Errorf("convert: %v", r)
	}
	_, stdout, _ := gnbRun(t, dir, "data", "info", "d")
	for _, line := range []string{
		"kg: 3 nodes of 1 type, 3 edges of 2 relations, edges split into train, test",
		"  entity              3      none     none",
		"  entity:knows:entity           2",
		"  entity:likes:entity           1",
		"  split test   1 edges",
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("info prints\n%s\nwithout %q", stdout, line)
		}
	}
	_, r := result(t, dir, "data", "info", "d")
	if got := fmt.Sprint(r["relations"], r["edge_splits"], r["node_types"]); got != "[map[dst:entity edges:2 name:knows src:entity] map[dst:entity edges:1 name:likes src:entity]] map[test:1 train:2] [map[count:3 name:entity]]" {
		t.Errorf("the result has %s", got)
	}
}

// A published dataset is found among the raw files of GNB_DATA, verified and converted once, and
// from then on available by its name.
func TestDataGet(t *testing.T) {
	testneed.RealData(t, "planetoid/ind.cora.graph")
	dir := t.TempDir()
	t.Setenv("GNB_DATA", testneed.DataDir())
	t.Setenv("GNB_HOME", filepath.Join(dir, "home"))
	_, r := result(t, dir, "data", "get", "cora")
	if r["nodes"] != 2708.0 || r["edges"] != 10556.0 || r["features"] != 1433.0 || r["classes"] != 7.0 {
		t.Errorf("get: %v", r)
	}
	_, r = result(t, dir, "data", "list")
	found := false
	for _, x := range r["datasets"].([]any) {
		l := x.(map[string]any)
		found = found || l["name"] == "cora" && l["dir"] != nil
	}
	if !found {
		t.Errorf("list does not show cora as present: %v", r)
	}
	_, r = result(t, dir, "train", "cora", "--model", "gcn", "--hidden", "16", "--input-dropout", "0.5", "--weight-decay", "5e-4",
		"--epochs", "60", "--eval-every", "2", "--fanout", "full", "--workers", "1")
	if a := r["test_accuracy"].(float64); a < 0.75 {
		t.Errorf("a GCN on Cora has an accuracy of %v after 60 epochs, want at least 0.75", a)
	}
}

// Wrong usage and bad input give the right exit status and one line, and leave no file behind.
func TestBadInput(t *testing.T) {
	cases := []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"no dataset", []string{"train"}, 2, "DATASET"},
		{"unknown flag", []string{"train", "karate", "--fanuot", "3"}, 2, "fanuot"},
		{"fanout of words", []string{"train", "karate", "--fanout", "many"}, 2, "fanout"},
		{"unknown dataset", []string{"train", "nowhere"}, 1, "karate"},
		{"unknown generator option", []string{"train", "planted?size=3"}, 1, "size"},
		{"unknown model", []string{"train", "karate", "--model", "gnn"}, 2, "sage"},
		{"cuda without cuda", []string{"train", "karate", "--device", "cuda"}, 1, "GPU"},
		{"two batches", []string{"train", "karate", "--batch", "3", "--batch-per-worker", "3"}, 1, "not both"},
		{"negative workers", []string{"train", "karate", "--workers", "-1"}, 2, "--workers is -1"},
		{"dropout of 1", []string{"train", "karate", "--dropout", "1"}, 1, "Dropout"},
		{"learning rate below 0", []string{"train", "karate", "--lr", "-1"}, 2, "--lr is -1"},
		{"unknown eval", []string{"train", "karate", "--eval", "some"}, 1, "Eval"},
		{"resume nothing", []string{"train", "karate", "--resume", "nothing"}, 1, "not a run"},
		{"unknown split", []string{"sample", "karate", "--split", "valid"}, 1, "val"},
		{"no out", []string{"infer", "karate"}, 2, "--out"},
		{"no runs", []string{"infer", "karate", "--out", "x.npy"}, 1, "no runs"},
		{"unknown data command", []string{"data", "draw", "karate"}, 2, "info"},
		{"get nothing", []string{"data", "get", "nothing"}, 1, "gnb data list"},
		{"generate over something", []string{"data", "generate", "karate", "."}, 1, "exists"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			status, _, stderr := gnbRun(t, dir, tc.args...)
			if status != tc.status {
				t.Errorf("exit status %d, want %d\n%s", status, tc.status, stderr)
			}
			if !strings.Contains(stderr, tc.want) {
				t.Errorf("the reason does not contain %q:\n%s", tc.want, stderr)
			}
			if strings.Contains(stderr, "goroutine ") {
				t.Errorf("a stack trace:\n%s", stderr)
			}
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				t.Errorf("%s was left behind", e.Name())
			}
		})
	}
}
