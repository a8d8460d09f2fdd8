package main

import (
	"strings"
	"testing"
)

// gnb data show reads a dataset's edges and labels, where they are here.
func TestDataShowLooksAtEdgesAndLabels(t *testing.T) {
	dir := t.TempDir()
	status, text, stderr := gnbRun(t, dir, "data", "show", "karate")
	for _, want := range []string{
		"components: 1, the largest with 34 of 34 nodes; isolated nodes: 0; self-loops: 0; repeated edges: 0",
		"in-degree: mean 4.6, median 3", "largest 17", "(156 edges between nodes with a label)", "classes in train: 2 of 2, with",
	} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	_, r := result(t, dir, "data", "show", "karate")
	h, shape := r["homophily"].(map[string]any), r["shape"].(map[string]any)
	if edge := h["edge"].(float64); edge < 0.8 || edge > 0.9 || h["edges"] != 156.0 || shape["components"] != 1.0 || len(r["classes_of_splits"].([]any)) != 3 {
		t.Errorf("the result has %v, %v and %v", shape, h, r["classes_of_splits"])
	}
	result(t, dir, "data", "generate", "planted?nodes=300", "d")
	result(t, dir, "partition", "d", "--parts", "2", "--no-topology", "--out", "p")
	if status, text, stderr := gnbRun(t, dir, "data", "show", "p"); status != 0 || !strings.Contains(text, "the graph's shape is not read") {
		t.Errorf("of parts without the graph: status %d, %s\n%s", status, stderr, text)
	}
}
