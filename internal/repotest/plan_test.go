package repotest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The table of plans in docs/plan.md equals the measurements of bench/plan, on thirteen configurations.
func TestPlansTable(t *testing.T) {
	var rows []struct {
		Flags          string
		PredictedBytes int64   `json:"predicted_bytes"`
		MeasuredBytes  int64   `json:"measured_bytes"`
		PredictedStep  float64 `json:"predicted_step_seconds"`
		MeasuredStep   float64 `json:"measured_step_seconds"`
		Load           float64 `json:"load_average"`
	}
	if err := json.Unmarshal([]byte(read(t, "bench", "results", "plan.json")), &rows); err != nil {
		t.Fatal(err)
	}
	const want = 13
	if len(rows) != want {
		t.Fatalf("bench/results/plan.json has %d configurations, want %d", len(rows), want)
	}
	var b strings.Builder
	b.WriteString("| `gnb train` | MB predicted | MB measured | | ms a step predicted | ms measured | |\n|---|---:|---:|---:|---:|---:|---:|\n")
	memory, step, load := 0, 0, 0.0
	for _, r := range rows {
		if r.MeasuredBytes <= 0 || r.MeasuredStep <= 0 {
			t.Fatalf("bench/results/plan.json lacks a measurement of %s", r.Flags)
		}
		m, s := float64(r.PredictedBytes)/float64(r.MeasuredBytes)-1, r.PredictedStep/r.MeasuredStep-1
		fmt.Fprintf(&b, "| `%s` | %.0f | %.0f | %+.0f %% | %.2f | %.2f | %+.0f %% |\n", strings.ReplaceAll(r.Flags, "|", "\\|"),
			float64(r.PredictedBytes)/1e6, float64(r.MeasuredBytes)/1e6, 100*m, 1e3*r.PredictedStep, 1e3*r.MeasuredStep, 100*s)
		if math.Abs(m) <= 0.15 {
			memory++
		}
		if math.Abs(s) <= 0.3 {
			step++
		}
		load = max(load, r.Load)
	}
	fmt.Fprintf(&b, "\nMemory is within 15 %% of the measured in %d of %d configurations, the time of a step within 30 %% in %d. The load average, which counts these runs themselves, was up to %.0f on 2 CPUs.\n", memory, want, step, load)
	compare(t, "plan.md", "plans", b.String())
}
