package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gnb explain says what an answer rests on, as text, JSON and a picture.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	_, trained := result(t, dir, "train", "karate", "--epochs", "20", "--workers", "1")
	run := trained["run"].(string)
	status, text, stderr := gnbRun(t, dir, "explain", run, "33", "--picture", "x.png")
	for _, want := range []string{"node 33 of karate", "hops away", "with them alone"} {
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: it prints\n%s\nwithout %q", status, stderr, text, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.png")); err != nil {
		t.Error(err)
	}
	_, r := result(t, dir, "explain", run, "0", "33", "--method", "mask", "--epochs", "20")
	all := r["explanations"].([]any)
	if len(all) != 2 || all[1].(map[string]any)["node"] != "33" || len(all[1].(map[string]any)["edges"].([]any)) == 0 {
		t.Errorf("the result is %v", r)
	}
	for want, args := range map[string][]string{
		"is no node of karate":       {"explain", run, "99"},
		`there is no method "magic"`: {"explain", run, "1", "--method", "magic"},
		"--picture is of one node":   {"explain", run, "1", "2", "--picture", "y.png"},
	} {
		if status, _, stderr := gnbRun(t, dir, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("gnb %v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}
