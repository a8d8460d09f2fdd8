package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScalingCommand(t *testing.T) {
	dir := t.TempDir()
	_, r := result(t, dir, "scaling", "planted?nodes=2000", "--workers", "1,2", "--repeats", "2", "--steps", "3", "--warmup", "1", "--fanout", "4,4", "--batch", "200", "--hidden", "16", "--png", "curve.png")
	has(t, r, "dataset", "model", "unit", "weak", "cores", "threads", "device", "steps", "repeats")
	points := r["points"].([]any)
	if len(points) != 2 {
		t.Fatalf("result %v", r)
	}
	for i, p := range points {
		p := p.(map[string]any)
		has(t, p, "workers", "cores", "batch", "items_per_second", "seeds_per_second", "speedup", "ideal", "efficiency", "step_seconds", "stages", "repeated_edges", "repeated_rows")
		if again := p["repeated_edges"].(float64); p["workers"] != float64(i+1) || i == 0 && again != 1 || i == 1 && again <= 1 {
			t.Errorf("point %v", p)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "curve.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
	status, stdout, stderr := gnbRun(t, dir, "scaling", "planted?nodes=2000", "--weak", "--batch-per-worker", "100", "--workers", "1", "--repeats", "1", "--steps", "2", "--fanout", "4,4")
	if status != 0 || !strings.Contains(stdout, "weak scaling of sage on planted") || !strings.Contains(stdout, "speed-up") {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	for want, args := range map[string][]string{"whole numbers": {"--workers", "1,two"}, "--repeats is 0": {"--repeats", "0"}} {
		if status, _, stderr := gnbRun(t, dir, append([]string{"scaling", "karate"}, args...)...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
	for _, c := range []struct{ unit, task, data string }{{"graphs", "graphs", "molecules?graphs=100"}, {"links", "links", "planted?nodes=500"}} {
		status, stdout, stderr := gnbRun(t, dir, "scaling", c.data, "--task", c.task, "--workers", "1", "--repeats", "1", "--steps", "2", "--batch", "50", "--hidden", "8")
		if c.task == "graphs" { // the molecules have labels and targets
			if status == 0 || !strings.Contains(stderr, "--predict") {
				t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
			}
			status, stdout, stderr = gnbRun(t, dir, "scaling", c.data, "--task", c.task, "--predict", "labels", "--workers", "1", "--repeats", "1", "--steps", "2", "--batch", "50", "--hidden", "8")
		}
		if status != 0 || !strings.Contains(stdout, c.unit+"/s") {
			t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
		}
	}
	if status, _, stderr := gnbRun(t, dir, "scaling", "karate", "--pool", "sum"); status != 2 || !strings.Contains(stderr, "add --task graphs") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("it left %v", left)
	}
}
