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
*gcn*"--device cuda"*) echo '{"event":"epoch","loss":2}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2]}';;
*gat*"--device cuda"*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu"}';;
*"--device cuda"*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2]}';;
*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu"}';;
esac`)
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
	if md := r.markdown(); !strings.Contains(md, "| bad | 0 | 1 | 0 |") || !strings.Contains(md, "| Copy | 5 ns/op |") {
		t.Error(md)
	}
}
