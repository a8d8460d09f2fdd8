package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// convertRun runs gnb data convert with --json in this process and returns the exit status, the
// last event and the standard error.
func convertRun(t *testing.T, args ...string) (status int, last map[string]any, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	status = dispatch(t.Context(), append([]string{"data", "convert", "--json"}, args...), &o, &e)
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("the last line is not JSON: %v: %s", err, o.String())
	}
	return status, last, e.String()
}

func TestDataConvert(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "0 1\n1 2\n", "b.txt": "0 1\n", "bad.txt": "0 1\n1 x\n", "p.csv": "0,1\n2\n\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dst := filepath.Join(dir, "out")
	status, r, stderr := convertRun(t, filepath.Join(dir, "a.txt"), dst, "--undirected", "--features", "one-hot:"+filepath.Join(dir, "p.csv"), "--format", "edgelist", "--name", "mine")
	if status != 0 || r["event"] != "result" {
		t.Fatalf("status %d: %v %s", status, r, stderr)
	}
	has(t, r, "nodes", "edges", "features", "classes", "peak_rss_bytes", "seconds")
	if r["nodes"] != 3.0 || r["edges"] != 4.0 || r["features"] != 6.0 || r["classes"] != 0.0 || r["name"] != "mine" || r["format"] != "edgelist" {
		t.Errorf("result %v", r)
	}
	var o, e bytes.Buffer
	if status := dispatch(t.Context(), []string{"data", "check", dst}, &o, &e); status != 0 {
		t.Errorf("the converted dataset does not pass the check: %s", e.String())
	}

	for _, tc := range []struct {
		args  []string
		words []string
	}{
		{[]string{filepath.Join(dir, "bad.txt"), filepath.Join(dir, "x")}, []string{"bad.txt", "line 2", `"x"`}},
		{[]string{filepath.Join(dir, "a.txt"), dst}, []string{"exists"}},
		{[]string{dir, filepath.Join(dir, "x"), "--name", "../a"}, []string{"--name"}},
		{[]string{filepath.Join(dir, "a.txt"), filepath.Join(dir, "x"), "--format", "excel"}, []string{"excel", "graphsaint", "edgelist"}},
		{[]string{filepath.Join(dir, "none"), filepath.Join(dir, "x")}, []string{"none", "no such file"}},
	} {
		status, r, stderr := convertRun(t, tc.args...)
		if status != 1 || r["event"] != "error" || strings.Count(strings.TrimSpace(stderr), "\n") != 0 {
			t.Errorf("%v: status %d, %v, %q; want 1 and one line", tc.args, status, r, stderr)
		}
		for _, word := range tc.words {
			if !strings.Contains(stderr, word) {
				t.Errorf("the error of %v is %q; want %q", tc.args, stderr, word)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
			t.Fatalf("%v left the destination behind", tc.args)
		}
	}
	if status, _, _ := convertRun(t, dst); status != 2 {
		t.Errorf("without a destination the status is %d, want 2", status)
	}
	o.Reset()
	if status := dispatch(t.Context(), []string{"data", "convert", "--help"}, &o, &e); status != 0 || !strings.Contains(o.String(), "graphsage") || !strings.Contains(o.String(), "--undirected") {
		t.Errorf("--help has status %d and prints %q", status, o.String())
	}
}
