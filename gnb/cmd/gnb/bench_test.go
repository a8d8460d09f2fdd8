package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
)

// benchRunHere runs "gnb bench" in this process and returns the result.
func benchRunHere(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var o, e bytes.Buffer
	args = append(append([]string{"bench"}, args...), "--limits=false", "--json")
	if status := dispatch(t.Context(), args, &o, &e); status != cli.StatusOK {
		t.Fatalf("gnb %s: status %d: %s", strings.Join(args, " "), status, e.String())
	}
	var r map[string]any
	if err := json.Unmarshal(o.Bytes(), &r); err != nil || r["event"] != "result" {
		t.Fatalf("gnb %s: %v, %q", strings.Join(args, " "), err, o.String())
	}
	return r
}

func TestBenchReports(t *testing.T) {
	small := []string{"--dataset", "planted?nodes=600&features=16&classes=4", "--steps", "4"}
	for _, tc := range []struct {
		args []string
		rate string
	}{
		{[]string{"gemm", "--m", "33", "--n", "17", "--k", "9", "--steps", "5"}, "gflops"},
		{[]string{"gemm", "--m", "33", "--n", "17", "--k", "9", "--trans-a", "--trans-b", "--steps", "5"}, "gflops"},
		{append([]string{"spmm", "--columns", "5"}, small...), "gb_per_second"},
		{append([]string{"spmm", "--columns", "5", "--backward"}, small...), "edges_per_second"},
		{append([]string{"gather", "--batch", "64"}, small...), "gb_per_second"},
		{append([]string{"sample", "--batch", "64", "--fanout", "3,full"}, small...), "edges_per_second"},
		{[]string{"allreduce", "--elements", "1000", "--workers", "3", "--steps", "10"}, "gb_per_second"},
		{[]string{"allreduce", "--elements", "1000", "--workers", "3", "--steps", "10", "--transport", "tcp"}, "gb_per_second"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			r := benchRunHere(t, tc.args...)
			has(t, r, "seconds", "steps", "median_seconds", "threads", tc.rate)
			if v, _ := r[tc.rate].(float64); !(v > 0) {
				t.Errorf("%s is %v", tc.rate, r[tc.rate])
			}
		})
	}
}

func TestBenchTrainAndInfer(t *testing.T) {
	dir := t.TempDir()
	data := []string{"--dataset", "planted?nodes=600&features=16&classes=4", "--hidden", "8", "--limits=false"}
	_, r := result(t, dir, append([]string{"bench", "train", "--fanout", "4,3", "--batch", "100", "--windows", "2", "--steps", "3", "--warmup", "1", "--workers", "2"}, data...)...)
	has(t, r, "seconds", "stages", "hops", "allocs_per_step", "peak_rss_bytes", "work")
	if r["steps"] != 6.0 || r["workers"] != 2.0 || len(r["window_seconds"].([]any)) != 2 {
		t.Errorf("result %v", r)
	}
	hops := r["hops"].([]any)
	if first := hops[0].(map[string]any); len(hops) != 2 || first["dst"] != 50.0 {
		t.Errorf("hops %v: want two, the first with 50 seeds per worker", hops)
	}
	sum := 0.0
	for _, s := range r["stages"].(map[string]any) {
		sum += s.(float64) * 6
	}
	if s := r["seconds"].(float64); math.Abs(sum-s) > 0.1*s {
		t.Errorf("the stages add up to %v s of %v", sum, s)
	}
	if r["precision"] != "float32" {
		t.Errorf("precision %v", r["precision"])
	}
	_, r = result(t, dir, append([]string{"bench", "train", "--fanout", "4,3", "--batch", "100", "--windows", "1", "--steps", "2", "--precision", "bf16"}, data...)...)
	if r["precision"] != "bf16" || r["steps"] != 2.0 {
		t.Errorf("result %v", r)
	}
	_, r = result(t, dir, append([]string{"bench", "train", "--full-graph", "--fanout", "1,1", "--windows", "1", "--steps", "2"}, data...)...)
	hops = r["hops"].([]any)
	if whole := hops[1].(map[string]any); len(hops) != 2 || whole["dst"] != 600.0 || whole["src"] != 600.0 || r["work"] == nil {
		t.Errorf("result %v: want every layer of all 600 nodes", r)
	}
	_, r = result(t, dir, append([]string{"bench", "infer", "--layers", "2", "--steps", "2"}, data...)...)
	has(t, r, "seconds", "edges_per_second", "work")
	if r["steps"] != 2.0 {
		t.Errorf("result %v", r)
	}
}

// Training reuses the memory of its steps: after the first steps, a step allocates little,
// independent of the sizes of its batches. Allocations are tested because times would vary.
func TestTrainingStepAllocatesLittle(t *testing.T) {
	const maxAllocs, maxBytes = 200, 50_000
	_, r := result(t, t.TempDir(), "bench", "train", "--dataset", "planted?nodes=20000&features=32&classes=8", "--fanout", "10,5", "--batch", "256",
		"--hidden", "64", "--threads", "2", "--warmup", "20", "--windows", "2", "--steps", "50", "--limits=false")
	allocs, bytes := r["allocs_per_step"].(float64), r["allocated_bytes_per_step"].(float64)
	if t.Logf("%.0f allocations of %.0f bytes per step", allocs, bytes); allocs > maxAllocs || bytes > maxBytes {
		t.Errorf("a step makes %.0f allocations of %.0f bytes in total, want at most %d of %d", allocs, bytes, maxAllocs, maxBytes)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"gem"},
		{"gemm", "--m", "0"},
		{"gemm", "--m", "16777216", "--n", "16777216"},
		{"gemm", "--steps", "-1"},
		{"spmm", "--columns", "0"},
		{"limits", "--row-bytes", "1"},
		{"allreduce", "--workers", "0"},
		{"allreduce", "--transport", "pigeon"},
		{"allreduce", "--transport", "tcp", "--workers", "33"},
		{"sample", "--dataset", "karate", "--batch", "0"},
		{"sample", "--dataset", "karate", "--fanout", "full"},
		{"gather", "--dataset", "rmat?scale=6&features=0"},
		{"train", "--windows", "0"},
		{"infer", "--steps", "0"},
	} {
		var o, e bytes.Buffer
		if status := dispatch(t.Context(), append([]string{"bench"}, args...), &o, &e); status != cli.StatusUsage {
			t.Errorf("gnb bench %q: status %d, %s", args, status, e.String())
		}
	}
}
