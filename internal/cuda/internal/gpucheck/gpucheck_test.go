package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestParseBenchmarks(t *testing.T) {
	got := parseBenchmarks("goos: linux\nBenchmarkOperations/gather_f32-16  \t 100\t 1234 ns/op\t 3900 GB/s\t 0.81 of-copy\nPASS\n")
	if len(got) != 1 || got[0].Name != "Operations/gather_f32" || got[0].Values["GB/s"] != 3900 || got[0].Values["of-copy"] != 0.81 {
		t.Errorf("%+v", got)
	}
}

// gpu makes this machine appear to have a GPU, or none.
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

// bundle returns a directory of scripts in place of programs.
func bundle(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, body := range scripts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "COMMIT"), []byte("abc123\nsources\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns the one report in a directory.
func read(t *testing.T, out string) (r report, name string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, "gpu-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if md, err := os.ReadFile(strings.TrimSuffix(files[0], ".json") + ".md"); err != nil || string(md) != r.markdown() {
		t.Errorf("the Markdown report: %v, %s", err, md)
	}
	return r, filepath.Base(files[0])
}

// trainer is a script in place of gnb: GCN's loss on the device differs from that on the CPU, and
// GAT runs on the CPU.
const trainer = `
case "$*" in
doctor) echo ok gpu;;
"data generate"*) mkdir "$4";;
*planted*gcn*"--device cuda"*) echo '{"event":"epoch","loss":2}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2]}';;
*planted*gat*"--device cuda"*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu"}';;
*"--device cuda"*)
	[ -n "$GNB_CUDA_TRACE" ] && printf 'launch compute adam_f32\nlaunch compute spmm_f32\nwait compute 3\nfetch copy 40\nlaunch sampling pick\nlaunch compute adam_f32\nmemory taking 2 MB\nlaunch compute late\n' >"$GNB_CUDA_TRACE"
	echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cuda","epoch_seconds":[3,1,2],"steps":193,"test_accuracy":0.75}';;
*) echo '{"event":"epoch","loss":1}'; echo '{"event":"result","device":"cpu","test_accuracy":0.749}';;
esac`

// Each piece writes its own report, with the bundle's commit and the names of failed items.
func TestPieces(t *testing.T) {
	dir := bundle(t, map[string]string{
		"good.test":       `[ "$GNB_GPU_CHECK" = 1 ] && echo '--- PASS: TestA (0.00s)' && echo '    --- SKIP: TestA/b (0.00s)'`,
		"bad.test":        `case "$*" in *bench=.*) echo 'BenchmarkCopy/from_pinned-2 10 5 ns/op 55000 MB/s'; exit 0;; esac; echo '--- FAIL: TestB (0.00s)'; exit 1`,
		"skips.test":      `echo '--- SKIP: TestC (0.00s)'`,
		"gnb":             trainer,
		"productslike":    `for last; do :; done; mkdir "$last" && echo {} >"$last/metadata.json" && echo made >>"$0.log"`,
		"env/bin/python3": `[ -f "$1" ] && [ -d "$2" ] && echo a warning && echo '{"epoch_seconds":[9,4,5,6],"version":"2.8","torch":"2.11","workers":12}'`,
	})
	gpu(t, true)
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
	data := t.TempDir()
	piece := func(name string) (report, string) {
		t.Helper()
		out := t.TempDir()
		err := run(dir, options{out: out, data: data, only: []string{name}, budget: time.Minute, quick: true, commit: "abc"})
		r, file := read(t, out)
		if !strings.HasSuffix(file, "-"+name+".json") || r.Commit != "abc123" || len(r.Pieces) != 1 || r.Pieces[0].Name != name || r.Pieces[0].Failed != "" {
			t.Errorf("%s: %+v", file, r.Pieces)
		}
		if err != nil {
			return r, err.Error()
		}
		return r, ""
	}
	if r, failed := piece("preflight"); failed != "" || !strings.Contains(r.Doctor, "ok gpu") || len(r.Parity) != 1 {
		t.Errorf("preflight: %s %+v", failed, r)
	}
	if r, failed := piece("tests"); !strings.HasPrefix(failed, "2 failures") || !strings.Contains(failed, "bad TestB") || !strings.Contains(failed, "skips: no test passed") ||
		len(r.Suites) != 3 || r.Suites[1].Passed != 1 || r.Suites[1].Skipped != 1 {
		t.Errorf("tests: %s %+v", failed, r.Suites)
	}
	if r, failed := piece("parity"); !strings.HasPrefix(failed, "2 failures") || !strings.Contains(failed, "planted, GCN on the device and the CPU: epoch 0 has loss 2") ||
		!strings.Contains(failed, "planted, GAT on the device and the CPU: it ran on cpu") || len(r.Parity) != 9 {
		t.Errorf("parity: %s %+v", failed, r.Parity)
	}
	if r, failed := piece("ranks"); failed != "" || len(r.Parity) != 3 || r.Parity[0].Name != "1 rank, torchrun's variables" || len(r.Parity[2].Device) != 1 {
		t.Errorf("ranks: %s %+v", failed, r.Parity)
	}
	if r, failed := piece("bench"); failed != "" || !strings.Contains(r.markdown(), "| from pinned memory of the host | 55 |") {
		t.Errorf("bench: %s %+v", failed, r.Measures)
	}
	for range 2 { // the graph is made once
		r, failed := piece("epochs")
		if failed != "" || len(r.Runs) != 13 || r.Runs[0].Median != 2 || r.Runs[0].Steps != 193 || len(r.Peers) != 2 || r.Peers[1].Median != 5 ||
			r.Peers[1].Name != "arxiv-like, PyTorch Geometric 2.8 on PyTorch 2.11, 12 sampling processes" {
			t.Errorf("epochs: %s %+v %+v", failed, r.Runs, r.Peers)
		}
	}
	if made, err := os.ReadFile(filepath.Join(dir, "productslike.log")); err != nil || string(made) != "made\n" {
		t.Errorf("productslike's log is %q, want one run (%v)", made, err)
	}
	if r, failed := piece("accuracy"); failed != "" || len(r.Accuracy) != 1 || r.Accuracy[0].Device != 0.75 || r.Accuracy[0].CPU != 0.749 || len(r.Pieces[0].LeftOut) != 1 {
		t.Errorf("accuracy: %s %+v", failed, r.Accuracy)
	}
	r, failed := piece("profile")
	if p := r.Profiles; failed != "" || len(p) < 1 || p[0].Steps != 2 || p[0].Launches != 3 || p[0].Waits != 1 || p[0].Fetched != 40 || p[0].Takes != 1 || len(p[0].Kernels) != 3 {
		t.Errorf("profile: %s %+v", failed, p)
	}
}

// A wrong option is refused before any program runs.
func TestRefused(t *testing.T) {
	gpu(t, true)
	dir := bundle(t, map[string]string{"gnb": "exit 1"})
	for want, o := range map[string]options{
		`no piece "bunch"`:             {only: []string{"bunch"}},
		"is of commit abc123, not 999": {commit: "999"},
	} {
		o.out = t.TempDir()
		if err := run(dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if files, _ := os.ReadDir(o.out); len(files) > 0 {
			t.Errorf("%v remain", files)
		}
	}
	if err := os.Remove(filepath.Join(dir, "COMMIT")); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, options{out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "the bundle's commit is unknown") {
		t.Errorf("a bundle without a commit: %v", err)
	}
}

// A piece ends within its budget: gpucheck ends the running program with its children, leaves out
// the remaining items, and keeps the earlier results.
func TestBudget(t *testing.T) {
	testneed.NotShort(t, "it waits for four seconds")
	gpu(t, true)
	dir := bundle(t, map[string]string{
		"a.test": `echo '--- PASS: TestA (0.00s)'`,
		"b.test": `echo '--- PASS: TestB (0.00s)'; sleep 60 & wait`,
		"c.test": `echo '--- PASS: TestC (0.00s)'`,
	})
	out := t.TempDir()
	start := time.Now()
	err := run(dir, options{out: out, only: []string{"tests"}, budget: least + time.Second})
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	r, _ := read(t, out)
	if err == nil || !strings.Contains(err.Error(), "1 failures: b: it did not end in") || len(r.Suites) != 2 || !r.Suites[0].ok() || r.Suites[1].Passed != 1 ||
		len(r.Pieces[0].LeftOut) != 1 || !strings.HasPrefix(r.Pieces[0].LeftOut[0], "c.test: the piece's time") {
		t.Errorf("%v: %+v %+v", err, r.Pieces, r.Suites)
	}
}

// The report on disk contains each item's result before the next item starts.
func TestWrittenAfterEachItem(t *testing.T) {
	gpu(t, true)
	out := t.TempDir()
	dir := bundle(t, map[string]string{
		"a.test": `echo '--- PASS: TestA (0.00s)'`,
		"b.test": `grep -q '"passed": 1' "` + out + `"/gpu-*.json && echo '--- PASS: TestB (0.00s)'`,
	})
	if err := run(dir, options{out: out, only: []string{"tests"}, budget: time.Minute}); err != nil {
		t.Error(err)
	}
}

// Without a GPU, tests run on the interpreter with -test.short, and training runs need a
// gnb-interpreted in the bundle.
func TestWithoutGPU(t *testing.T) {
	scripts := map[string]string{
		"good.test": `case "$*" in *bench=.*) exit 0;; *test.short*) [ -z "$GNB_GPU_CHECK" ] && echo '--- PASS: TestA (0.00s)';; *) exit 1;; esac`,
		"gnb":       `[ "$1" = doctor ] || exit 1`,
	}
	gpu(t, false)
	t.Setenv("GNB_GPU_CHECK", "")
	out := t.TempDir()
	if err := run(bundle(t, scripts), options{out: out, budget: time.Minute, data: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	r, _ := read(t, out)
	if md := r.markdown(); !r.Interpreted || len(r.Parity)+len(r.Runs) > 0 || !strings.Contains(md, "| good | 1 | 0 | 0 |") || !strings.Contains(md, "no time in this report") || !strings.Contains(md, "no gnb-interpreted") {
		t.Error(md)
	}
	scripts["gnb-interpreted"] = `[ -d "$GNB_NVIDIA_PROC/gpus" ] || exit 1` + strings.ReplaceAll(trainer, "gcn", "nosuchmodel")
	out = t.TempDir()
	err := run(bundle(t, scripts), options{out: out, only: []string{"parity"}, budget: time.Minute})
	if r, _ := read(t, out); err == nil || !strings.HasPrefix(err.Error(), "1 failures") || len(r.Parity) != 9 {
		t.Errorf("%v: %+v", err, r.Parity)
	}
}

// The report keeps the reason why PyTorch Geometric cannot run, and sanitizer finds
// compute-sanitizer under CUDA_HOME.
func TestWhatIsNotThere(t *testing.T) {
	env := bundle(t, map[string]string{
		"bin/python3":           `echo '{"why":"no torch"}'`,
		"bin/compute-sanitizer": `for a; do case "$a" in -test.short) exit 7;; esac; done; echo "========= ERROR SUMMARY: 0 errors"; for a; do case "$a" in *.test) exec "$a";; esac; done`,
		"backend.test":          `echo '--- PASS: TestConformance (0.00s)'; [ "$GNB_CUDA_EXACT" = 1 ]`,
		"sampler.test":          `echo '--- FAIL: TestDigest (0.00s)'; exit 9`,
	})
	t.Setenv("VIRTUAL_ENV", env)
	t.Setenv("PATH", filepath.Join(env, "nowhere"))
	c := &checker{dir: env, scratch: env, deadline: time.Now().Add(time.Minute), piece: &piece{}, save: func() error { return nil }}
	if p, err := c.peers("x", t.TempDir(), 2); err != nil || p.Why != "no torch" || p.Median != 0 {
		t.Errorf("%+v %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(env, "bin/python3"), []byte("#!/bin/sh\necho broken; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := c.peers("x", t.TempDir(), 2); err != nil || !strings.Contains(p.Why, "exit status 1: broken") {
		t.Errorf("%+v %v", p, err)
	}
	if p := sanitizer(); strings.HasPrefix(p, env) {
		t.Errorf("compute-sanitizer is at %s before CUDA_HOME is set", p)
	}
	t.Setenv("CUDA_HOME", env)
	if p := sanitizer(); p != filepath.Join(env, "bin", "compute-sanitizer") {
		t.Errorf("compute-sanitizer is at %q", p)
	}
	var r report
	if err := c.sanitized(&r); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, s := range r.Sanitizer {
		failed += len(s.Failed)
	}
	if len(r.Sanitizer) != 6 || failed != 3 {
		t.Errorf("%+v", r.Sanitizer)
	}
}

// kernelTimes sums the times of Nsight Compute's table by kernel.
func TestKernelTimes(t *testing.T) {
	got := kernelTimes(`==PROF== Connected
a line of the program
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","spmm_f32(float *, long)","gpu__time_duration.sum","ns","1,500"
"0","7","spmm_f32(float *, long)","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","%","80.5"
another line
"1","7","spmm_f32(float *, long)","gpu__time_duration.sum","ns","500"
"2","7","adam_f32","gpu__time_duration.sum","us","9"
"2","7","adam_f32","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","12"
`)
	want := []kernelCounts{{Name: "adam_f32", Launches: 1, Microseconds: 9, Compute: 12}, {Name: "spmm_f32", Launches: 2, Microseconds: 2, Memory: 80.5}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if kernelTimes("no table") != nil {
		t.Error("text without a table gives times")
	}
}
