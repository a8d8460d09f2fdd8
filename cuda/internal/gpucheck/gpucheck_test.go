package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseBenchmarks(t *testing.T) {
	got := parseBenchmarks("goos: linux\nBenchmarkOperations/gather_f32-16  \t 100\t 1234 ns/op\t 3900 GB/s\t 0.81 of-copy\nPASS\n")
	if len(got) != 1 || got[0].Name != "Operations/gather_f32" || got[0].Values["GB/s"] != 3900 || got[0].Values["of-copy"] != 0.81 {
		t.Errorf("%+v", got)
	}
}

// gpu makes this machine one with a GPU, or without.
func gpu(t *testing.T, there bool) {
	dir := t.TempDir()
	t.Setenv("GNB_NVIDIA_PROC", dir)
	if !there {
		return
	}
	if err := os.MkdirAll(filepath.Join(dir, "gpus", "0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gpus", "0", "information"), []byte("Model: A GPU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A bundle of scripts in place of programs: one suite fails, training on the device has another loss.
func TestRun(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	script := func(name, body string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("good.test", `[ "$GNB_GPU_CHECK" = 1 ] && echo '--- PASS: TestA (0.00s)' && echo '    --- SKIP: TestA/b (0.00s)'`)
	script("bad.test", `case "$*" in *bench=.*) echo 'BenchmarkCopy-2 10 5 ns/op'; exit 0;; esac; echo '--- FAIL: TestB (0.00s)'; exit 1`)
	script("gnb", `
case "$*" in
doctor) echo ok gpu;;
"data generate"*) mkdir "$4";;
*gcn*"--device cuda"*) echo '{"event":"epoch","loss":2}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2]}';;
*gat*"--device cuda"*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu"}';;
*"--device cuda"*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2]}';;
*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu"}';;
esac`)
	gpu(t, true)
	env := filepath.Join(t.TempDir(), "env")
	t.Setenv("VIRTUAL_ENV", env)
	if err := os.MkdirAll(filepath.Join(env, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script("python3", `[ -f "$1" ] && [ -d "$2" ] && echo a warning && echo '{"epoch_seconds":[9,4,5,6],"version":"2.8","torch":"2.11","workers":12}'`)
	if err := os.Rename(filepath.Join(dir, "python3"), filepath.Join(env, "bin", "python3")); err != nil {
		t.Fatal(err)
	}
	err := run(dir, out, true)
	if err == nil {
		t.Fatal("failures went unnoticed")
	}
	for _, want := range []string{"3 failures", "bad TestB", "planted, GCN on the device and the CPU: epoch 0 has loss 2", "planted, GAT on the device and the CPU: it ran on cpu"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	files, err := filepath.Glob(filepath.Join(out, "gpu-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Suites) != 2 || r.Suites[1].Passed != 1 || r.Suites[1].Skipped != 1 || len(r.Measures) != 1 || len(r.Runs) != 2 || r.Runs[0].Median != 2 {
		t.Errorf("%s", b)
	}
	if len(r.Peers) != 1 || r.Peers[0].Median != 5 || r.Peers[0].Name != "arxiv-like, PyTorch Geometric 2.8 on PyTorch 2.11, 12 sampling processes" {
		t.Errorf("beside it: %+v", r.Peers)
	}
	if md := r.markdown(); !strings.Contains(md, "| bad | 0 | 1 | 0 |") || !strings.Contains(md, "| Copy | 5 ns/op |") {
		t.Error(md)
	}
}

// Without a GPU the tests run on the interpreter, quickly, and nothing else does.
func TestRunWithoutGPU(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for name, body := range map[string]string{
		"good.test": `case "$*" in *bench=.*) exit 3;; *test.short*) [ -z "$GNB_GPU_CHECK" ] && echo '--- PASS: TestA (0.00s)';; *) exit 1;; esac`,
		"gnb":       `[ "$1" = doctor ] || exit 1`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	gpu(t, false)
	t.Setenv("GNB_GPU_CHECK", "")
	if err := run(dir, out, false); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		t.Errorf("%v, %v: there is nothing to keep", files, err)
	}
	md := report{Interpreted: true, Suites: []suite{{Name: "good", Passed: 1}}}.markdown()
	if !strings.Contains(md, "| good | 1 | 0 | 0 |") || !strings.Contains(md, "nothing was measured") || strings.Contains(md, "epoch") {
		t.Error(md)
	}
	t.Setenv("GNB_GPU_CHECK", "not the device")
	if err := run(dir, out, false); err == nil || !strings.Contains(err.Error(), "good") {
		t.Errorf("%v: the test failed", err)
	}
}

// What PyTorch Geometric's Python says where it cannot, is kept; and the checkers are found where they lie.
func TestWhatIsNotThere(t *testing.T) {
	env, data := t.TempDir(), t.TempDir()
	t.Setenv("VIRTUAL_ENV", env)
	t.Setenv("PATH", filepath.Join(env, "nowhere"))
	put := func(path, body string) {
		path = filepath.Join(env, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := checker{dir: env}
	put("bin/python3", `echo '{"why":"no torch"}'`)
	if p := c.peers("x", data, 2); p.Why != "no torch" || p.Median != 0 {
		t.Errorf("%+v", p)
	}
	put("bin/python3", `echo broken; exit 1`)
	if p := c.peers("x", data, 2); !strings.Contains(p.Why, "exit status 1: broken") {
		t.Errorf("%+v", p)
	}
	if p := sanitizer(); strings.HasPrefix(p, env) {
		t.Errorf("a checker at %s", p)
	}
	t.Setenv("CUDA_HOME", env)
	put("bin/compute-sanitizer", `for a; do case "$a" in *.test) exec "$a";; esac; done`)
	put("backend.test", `echo '--- PASS: TestConformance (0.00s)'; [ "$GNB_CUDA_EXACT" = 1 ]`)
	put("sampler.test", `echo '--- FAIL: TestDigest (0.00s)'; exit 9`)
	if p := sanitizer(); p != filepath.Join(env, "bin", "compute-sanitizer") {
		t.Errorf("the checker is at %q", p)
	}
	all := c.sanitized()
	failed := 0
	for _, s := range all {
		failed += len(s.Failed)
	}
	if len(all) != 6 || failed != 3 || (checker{dir: env, quick: true}).sanitized() != nil {
		t.Errorf("%+v", all)
	}
}
