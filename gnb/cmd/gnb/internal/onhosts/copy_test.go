package onhosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/divided/dividedtest"
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
