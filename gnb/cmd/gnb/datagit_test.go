package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// gnb data git makes a graph of events of a repository, which data check, info and show read.
func TestDataGit(t *testing.T) {
	testneed.Git(t)
	dir := t.TempDir()
	script := "git init -q repo && cd repo"
	for i := range 30 {
		at := 1_700_000_000 + 3600*i
		script += fmt.Sprintf(" && echo %d > f%d && git add -A && GIT_AUTHOR_DATE='%d +0000' GIT_COMMITTER_DATE='%d +0000' GIT_AUTHOR_EMAIL=a%d@example.org git commit -q -m x", i, i%4+i/25, at, at, i%3)
	}
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=A", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=c@example.org")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, r := result(t, dir, "data", "git", "repo", "events")
	if r["events"] != 30.0 || r["authors"] != 3.0 || r["files"] != 5.0 || r["name"] != "events" {
		t.Fatalf("%v", r)
	}
	result(t, dir, "data", "check", "events")
	_, r = result(t, dir, "data", "show", "events")
	if stats, ok := r["event_stats"].(map[string]any); !ok || stats["train"] != 21.0 || stats["test"] != 5.0 || r["time_unit"] != "s" || r["events"] != 30.0 {
		t.Fatalf("%v", r)
	}
	status, stdout, stderr := gnbRun(t, dir, "data", "show", "events")
	if status != 0 || !strings.Contains(stdout, "events: 30 from 2023-11-14T22:13:20Z to 2023-11-16T03:13:20Z, at 30 times; ") || !strings.Contains(stdout, "surprise ") {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
	_, r = result(t, dir, "data", "git", "repo", "late", "--since", "2023-11-15", "--name", "named", "--committed", "--max-files", "3", "--merges", "--renames", "--ref", "HEAD")
	if r["name"] != "named" || r["events"] != 28.0 {
		t.Errorf("%v", r)
	}
	for args, want := range map[string]string{
		"repo":                      "it takes at least 3 arguments",
		"repo events":               "choose another directory",
		"nowhere new":               "does not exist; give the directory of a clone",
		"repo new --since tomorrow": `Since (--since) is "tomorrow"; write a date such as 2024-05-01`,
	} {
		status, stdout, stderr := gnbRun(t, dir, append([]string{"data", "git"}, strings.Fields(args)...)...)
		if status == 0 || !strings.Contains(stdout+stderr, want) {
			t.Errorf("data git %s: %d, %s%s, want %s", args, status, stdout, stderr, want)
		}
	}
}

// A table with a column of times is read as events, which is said; a flag says otherwise, or that its ends are of two kinds.
func TestConvertEvents(t *testing.T) {
	dir := t.TempDir()
	text := "author,file,ts\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d,%d\n", i%3, i%5, 1_700_000_000+i)
	}
	if err := os.WriteFile(filepath.Join(dir, "e.csv"), []byte(text+"0,0,1700000000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "folder", "events.csv"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := gnbRun(t, dir, "data", "convert", "e.csv", "one")
	if status != 0 || !strings.Contains(stderr, "its rows are events, because a column has times by its name; the result is a graph of events; --format edgelist reads edges") || !strings.Contains(stdout, "41 edges with times, 41 of them events") {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
	_, r := result(t, dir, "data", "convert", "e.csv", "two", "--bipartite")
	if r["events"] != 41.0 || r["nodes"] != 8.0 {
		t.Errorf("bipartite: %v", r)
	}
	if _, r = result(t, dir, "data", "info", "two"); r["events"] != 41.0 || r["time_unit"] != "s" {
		t.Errorf("info: %v", r)
	}
	if _, r = result(t, dir, "data", "convert", "folder", "three"); r["events"] != 40.0 || r["nodes"] != 5.0 {
		t.Errorf("a folder: %v", r)
	}
	if _, r = result(t, dir, "data", "convert", "e.csv", "four", "--format", "edgelist"); r["events"] != nil {
		t.Errorf("edges: %v", r)
	}
	status, stdout, stderr = gnbRun(t, dir, "data", "convert", "e.csv", "five", "--events", "--edge-features", "all")
	if status == 0 || !strings.Contains(stdout+stderr, "--edge-features is not for tables") {
		t.Errorf("%d, %s%s", status, stdout, stderr)
	}
}
