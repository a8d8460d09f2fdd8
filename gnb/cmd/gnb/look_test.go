package main

import (
	"os"
	"path/filepath"
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

// Of many graphs it shows sizes, classes and targets of each split, and graphs that are in two splits.
func TestDataShowOfGraphs(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"graphs.csv": "graph,class,y,split\na,u,1.5,train\nb,v,2.5,train\nc,v,,val\nd,u,2.25,test\n",
		"nodes.csv":  "graph,id,x\na,1,1\na,2,2\nb,1,3\nb,2,4\nc,1,5\nd,1,3\nd,2,4\n",
		"edges.csv":  "graph,source,target\na,1,2\nb,1,2\nd,1,2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result(t, dir, "data", "convert", ".", "out", "--kinds", "y=target", "--undirected")
	status, text, stderr := gnbRun(t, dir, "data", "show", "out")
	for _, want := range []string{
		"graphs: 4, with 1 to 2 nodes each (median 2) and 0 to 2 edges (median 2); without nodes: 0; without edges: 1",
		"classes in train: 2 of 2, with 1 to 1 graphs each", "target y: 1.5 to 2.5, mean 2.083", "1 of 4 unknown", "target y in val: no known value",
		"graphs equal to an earlier one: 1 of 4", "leak: 1 graphs of test equal one of train, 1 of them with another label",
	} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	_, r := result(t, dir, "data", "show", "out")
	if leaks := r["duplicates"].(map[string]any)["leaks"].([]any); len(leaks) != 1 || r["graph_sizes"].(map[string]any)["without_edges"] != 1.0 || len(r["targets_of_splits"].([]any)) != 4 {
		t.Errorf("the result is %v", r)
	}
}
