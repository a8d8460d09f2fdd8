package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The check covers the disks to which runs, datasets and temporary files are written; their
// directories need not exist yet.
func TestCheckDisk(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(dir, "a", "runs"))
	t.Setenv("GNB_HOME", filepath.Join(dir, "home"))
	t.Setenv("TMPDIR", dir)
	free := int64(5 * gib)
	room := func(dir string) (int64, error) {
		_, err := freeOn(dir) // freeOn gets a directory that exists
		return free, err
	}
	c := judgeDisks(places(), room)
	for _, want := range []string{"GiB free for runs in " + filepath.Join(dir, "a", "runs"), "for datasets in " + filepath.Join(dir, "home"), "for temporary files in " + dir} {
		if !c.OK || !strings.Contains(c.Detail, want) {
			t.Errorf("the finding lacks %q: %+v", want, c)
		}
	}
	free = gib / 2
	if c := judgeDisks(places(), room); c.OK || !strings.Contains(c.Detail, "which has 512 MiB left") || !strings.Contains(c.Fix, "GNB_RUNS") {
		t.Errorf("the finding for a full disk is %+v", c)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := checkDisk(t.Context(), patient{places: places()}); c.OK || !strings.Contains(c.Detail, "runs cannot go to ") || !strings.Contains(c.Fix, "GNB_RUNS") {
		t.Errorf("the finding for a folder below a file is %+v", c)
	}
	t.Setenv("GNB_RUNS", "/proc/runs")
	if c := checkDisk(t.Context(), patient{places: places()}); c.OK || !strings.Contains(c.Fix, "GNB_RUNS") {
		t.Errorf("the finding for a folder that cannot be written is %+v", c)
	}
}

func TestSharedMemoryOfNCCL(t *testing.T) {
	for _, tc := range []struct {
		name string
		gpus int
		size int64
		err  error
		ok   bool
		says string
	}{
		{"no GPU", 0, 64 << 20, nil, true, "nothing here needs"},
		{"one GPU", 1, 0, errors.New("gone"), true, "nothing here needs"},
		{"two GPUs in a container", 2, 64 << 20, nil, false, "64.0 MiB"},
		{"two GPUs, nothing mounted", 2, 0, errors.New("gone"), false, "gone"},
		{"two GPUs", 2, 2 * gib, nil, true, "2.0 GiB"},
	} {
		if c := judgeShm(tc.gpus, tc.size, tc.err); c.OK != tc.ok || !strings.Contains(c.Detail, tc.says) || c.OK == (c.Fix != "") {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
}
