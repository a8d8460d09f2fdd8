package onhosts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
)

// Of a dataset in parts, each host gets the parts of its own ranks.
func TestCopiedParts(t *testing.T) {
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 200, Features: 8})
	if err != nil {
		t.Fatal(err)
	}
	dir := dividedtest.PartsBy(t, ds, 4, func(v int32) int { return int(v) % 4 }, divided.Options{}).Dir()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "rsync"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	l := &launcher{hosts: []host{{"a", 1}, {"me@b", 2}, {"::1", 1}}, ssh: []string{"ssh", "-p", "22"}}
	copies, err := l.copies([]string{dir, bin})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0001 0002 0003", "0000 0003", "0000 0001 0002"} {
		args := l.rsync(copies[0], i, l.hosts[i])
		var left []string
		for _, a := range args {
			if name, ok := strings.CutPrefix(a, "--exclude=/part-"); ok {
				left = append(left, name)
			}
		}
		if strings.Join(left, " ") != want {
			t.Errorf("host %d does not get the parts %v, want %s", i, left, want)
		}
		to := []string{"a:", "me@b:", "[::1]:"}[i] + dir + "/"
		if at := slices.Index(args, "-e"); args[at+1] != "ssh -p 22" || !slices.Equal(args[len(args)-3:], []string{"--", dir + "/", to}) {
			t.Errorf("host %d gets %q", i, args)
		}
		if args := l.rsync(copies[1], i, l.hosts[i]); strings.Contains(strings.Join(args, " "), "--exclude") {
			t.Errorf("of another folder, host %d gets %q", i, args)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "part-0003")); err != nil {
		t.Fatal(err)
	}
	for dirs, want := range map[string]string{dir: "::1 needs part 3", filepath.Join(bin, "none"): "no such file", filepath.Join(bin, "rsync"): "it is no folder"} {
		if _, err := l.copies([]string{dirs}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dirs, err, want)
		}
	}
	t.Setenv("PATH", "")
	if _, err := l.copies([]string{bin}); err == nil || !strings.Contains(err.Error(), "rsync, which is not on PATH") {
		t.Errorf("without rsync: %v", err)
	}
}

// A copy that the network ended can be tried again, as one that was interrupted.
func TestStatusOfCopying(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "rsync"), []byte("#!/bin/sh\n[ $STATUS = 0 ] && exec sleep 60\nexit $STATUS\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	l := &launcher{hosts: []host{{"a", 1}, {"b", 1}}, ssh: []string{"ssh"}}
	c := folderCopy{dir: "/data", leave: make([][]string, 2)}
	for status, want := range map[string]int{"1": 1, "11": 1, "23": 1, "12": 69, "30": 69, "35": 69, "255": 69} {
		t.Setenv("STATUS", status)
		if got, err := l.copy(t.Context(), c); got != want || err == nil || !strings.Contains(err.Error(), "copying /data to b: rsync: exit status "+status) {
			t.Errorf("rsync's status %s: %d, want %d (%v)", status, got, want, err)
		}
	}
	t.Setenv("STATUS", "0")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if got, err := l.copy(ctx, c); got != 75 || !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted: %d, %v", got, err)
	}
}

// A host's shell does not read the path.
func TestCopyOfOddPath(t *testing.T) {
	l := &launcher{hosts: []host{{"a", 1}}, ssh: []string{"ssh"}}
	for dir, want := range map[string]bool{"/data/ogb-1.2_x": false, "/daten/größe": false, "/my data": true, "/a;b": true, "/$x": true, "/a'b": true} {
		if got := slices.Contains(l.rsync(folderCopy{dir: dir, leave: make([][]string, 1)}, 0, l.hosts[0]), "-s"); got != want {
			t.Errorf("%s: -s is %v, want %v", dir, got, want)
		}
	}
}
