package main

import (
	"strings"
	"testing"
)

// The command's plan is the plan of a run with the same flags.
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	_, p := result(t, dir, "plan", "planted?nodes=2000", "--fanout", "5,4", "--batch", "100", "--workers", "2", "--hidden", "8")
	if p["batch"] != 100.0 || p["workers"] != 2.0 || p["model"] != "sage" || p["total_bytes"].(float64) < 2*p["worker_bytes"].(float64) || p["step_seconds"].(float64) <= 0 || p["fit"] != "fits" {
		t.Errorf("%v", p)
	}
	if hops := p["hops"].([]any); len(hops) != 2 || hops[0].(map[string]any)["destinations"] != 50.0 {
		t.Errorf("hops %v: want 50 seeds, a worker's share", hops)
	}
	if status, out, err := gnbRun(t, dir, "plan", "planted?nodes=2000"); status != 0 || !strings.Contains(out, "ways to run") {
		t.Errorf("status %d, %s%s", status, out, err)
	}
	if status, _, err := gnbRun(t, dir, "plan", "karate", "--model", "nope"); status == 0 || !strings.Contains(err, "nope") {
		t.Errorf("status %d, %s", status, err)
	}
}
