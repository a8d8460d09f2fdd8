package repotest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// gpuReport is what the tests here read of a report of internal/cuda/internal/gpucheck.
type gpuReport struct {
	file string

	Date        time.Time
	Commit      string
	Device      string
	Interpreted bool
	Measures    []gpuMeasure `json:"benchmarks"`
	Runs        []struct {
		Name    string
		Median  float64 `json:"median_seconds"`
		Steps   int
		Seconds []float64 `json:"epoch_seconds"`
		Failed  string
	} `json:"epochs"`
	Peers []struct {
		Name   string
		Median float64 `json:"median_seconds"`
	}
	Accuracy []struct {
		Name        string
		Device, CPU float64
	}
}

// gpuMeasure is a benchmark's result, by unit.
type gpuMeasure struct {
	Name   string
	Values map[string]float64
}

// gpuReports returns the recorded reports of a GPU in which has holds, the newest first.
func gpuReports(t *testing.T, has func(gpuReport) bool) []gpuReport {
	t.Helper()
	var all []gpuReport
	for _, name := range glob(t, "bench/results/gpu-*.json") {
		r := gpuReport{file: filepath.Base(name)}
		if err := json.Unmarshal([]byte(read(t, "bench", "results", r.file)), &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !r.Interpreted && has(r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b gpuReport) int { return b.Date.Compare(a.Date) })
	return all
}

// The table of epochs in docs/gpu-performance.md is that of the newest recorded report with PyTorch Geometric's epochs for each GPU.
func TestGPUEpochs(t *testing.T) {
	reports := gpuReports(t, func(r gpuReport) bool { return len(r.Runs) > 0 && len(r.Peers) > 0 && r.Peers[0].Median > 0 })
	if len(reports) == 0 {
		t.Fatal("no report in bench/results has epochs of GraphNB and of PyTorch Geometric")
	}
	seen := map[string]bool{}
	var b strings.Builder
	for _, r := range reports {
		if seen[r.Device] {
			continue
		}
		seen[r.Device] = true
		fmt.Fprintf(&b, "\n%s, from [one run of `gpucheck`](../bench/results/%s) of commit %.8s:\n\n| epoch of | steps | GraphNB | PyTorch Geometric |\n|---|---:|---:|---:|\n", r.Device, strings.TrimSuffix(r.file, ".json")+".md", r.Commit)
		peer := ""
		for _, x := range r.Runs {
			if x.Failed != "" {
				t.Errorf("%s: %s: %s", r.file, x.Name, x.Failed)
			}
			times := ""
			graph, _, _ := strings.Cut(x.Name, ", ")
			for _, p := range r.Peers {
				name, engine, _ := strings.Cut(p.Name, ", ")
				if name == graph && p.Median > 0 && x.Name == graph+", in memory" {
					times = fmt.Sprintf("%.3f s, %.1f times", p.Median, p.Median/x.Median)
					peer = engine
				}
			}
			// A run's steps are those of all its epochs.
			fmt.Fprintf(&b, "| %s | %d | %.3f s | %s |\n", x.Name, x.Steps/max(1, len(x.Seconds)), x.Median, times)
		}
		fmt.Fprintf(&b, "\nThe peer is %s.\n", peer)
	}
	compare(t, "gpu-performance.md", "epochs", b.String())
}

// The table of accuracies on a GPU and on the CPU is that of the newest recorded report.
func TestGPUAccuracy(t *testing.T) {
	reports := gpuReports(t, func(r gpuReport) bool { return len(r.Accuracy) > 0 })
	if len(reports) == 0 {
		t.Fatal("no report in bench/results has accuracies")
	}
	r := reports[0]
	var b strings.Builder
	fmt.Fprintf(&b, "| test accuracy | %s | CPU |\n|---|---:|---:|\n", r.Device)
	for _, a := range r.Accuracy {
		fmt.Fprintf(&b, "| %s | %.4f | %.4f |\n", a.Name, a.Device, a.CPU)
	}
	compare(t, "gpu-performance.md", "accuracies", b.String())
}

// The table of operations has the newest recorded benchmark of each on the GPU of the newest one.
func TestGPUOperations(t *testing.T) {
	const prefix = "Operations/"
	reports := gpuReports(t, func(r gpuReport) bool {
		return slices.ContainsFunc(r.Measures, func(m gpuMeasure) bool { return strings.HasPrefix(m.Name, prefix) })
	})
	if len(reports) == 0 {
		t.Fatal("no report in bench/results has benchmarks of operations")
	}
	device, newest := reports[0].Device, map[string]gpuMeasure{}
	var names []string // in the order of the oldest report
	for _, r := range reports {
		if r.Device != device {
			continue
		}
		var of []string
		for _, m := range r.Measures {
			if name, ok := strings.CutPrefix(m.Name, prefix); ok {
				if _, ok := newest[name]; !ok {
					newest[name] = m
				}
				of = append(of, name)
			}
		}
		for _, name := range names {
			if !slices.Contains(of, name) {
				of = append(of, name)
			}
		}
		names = of
	}
	var moved, products strings.Builder
	for _, name := range names {
		v, label := newest[name].Values, strings.ReplaceAll(name, "_", " ")
		if v["TFLOP/s"] > 0 {
			fmt.Fprintf(&products, "| %s | %.1f |\n", label, v["TFLOP/s"])
		} else {
			fmt.Fprintf(&moved, "| %s | %.0f | %.0f %% |\n", label, v["GB/s"], 100*v["GB/s"]/newest["copy"].Values["GB/s"])
		}
	}
	compare(t, "gpu-performance.md", "operations", fmt.Sprintf("| operation, %s | GB/s | of a copy's |\n|---|---:|---:|\n%s\n| product | TFLOP/s |\n|---|---:|\n%s", device, &moved, &products))
}
