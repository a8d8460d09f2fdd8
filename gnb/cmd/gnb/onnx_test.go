package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gnb onnx writes a model and the inputs of nodes, and says what they are.
func TestONNX(t *testing.T) {
	dir := t.TempDir()
	_, trained := result(t, dir, "train", "karate", "--epochs", "2", "--workers", "1", "--model", "gcn")
	run := trained["run"].(string)
	status, text, stderr := gnbRun(t, dir, "onnx", run, "5", "33", "-o", "m.onnx", "--example", "x.npz")
	for _, want := range []string{"m.onnx", "num_dst_1  int64[1]", "in_degree  float32[nodes]", "probabilities  float32[destinations_1, 2]"} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	for file, want := range map[string]string{"m.onnx": "ScatterElements", "x.npz": "expected_probabilities.npy"} {
		if content, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Contains(content, []byte(want)) {
			t.Errorf("%s: %v, without %s", file, err, want)
		}
	}
	_, r := result(t, dir, "onnx", run)
	if _, err := os.Stat(filepath.Join(dir, r["model"].(string))); err != nil || !slices.Contains(r["inputs"].([]any), any("src_0")) {
		t.Errorf("the result is %v (%v)", r, err)
	}
	for want, args := range map[string][]string{
		"name some behind the run": {"onnx", run, "--example", "y.npz"},
		"--example is missing":     {"onnx", run, "5"},
		"is no node of karate":     {"onnx", run, "99", "--example", "y.npz"},
		"has the layers 1 to":      {"onnx", run, "--layer", "7"},
	} {
		if status, _, stderr := gnbRun(t, dir, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("gnb %v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}
