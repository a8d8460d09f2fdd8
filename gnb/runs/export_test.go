package runs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/tbevents/tbread"
)

func TestExportErrors(t *testing.T) {
	dir := fiveRuns(t)
	file := filepath.Join(dir, "file")
	r, err := runs.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for want, call := range map[string]func() error{
		"needs a run":       func() error { return runs.Export(t.Context(), nil, runs.ExportOptions{TensorBoard: dir}) },
		"needs a directory": func() error { return runs.Export(t.Context(), r, runs.ExportOptions{}) },
		"can be written to": func() error { return runs.Export(t.Context(), r, runs.ExportOptions{TensorBoard: file}) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if err := runs.Export(t.Context(), r, runs.ExportOptions{TensorBoard: dir}); err != nil { // the run has no metrics
		t.Error(err)
	}
	if len(tbread.Scalars(t, tbread.File(t, r.Dir))) != 0 {
		t.Error("a run without metrics has scalars")
	}
}

// Runs with the same name are exported to different directories. A run's directory is the same in
// every export, regardless of the working directory.
func TestExportedRunsStayApart(t *testing.T) {
	base := t.TempDir()
	t.Setenv("GNB_RUNS", filepath.Join(base, "runs"))
	t.Chdir(base)
	put := func(dir string) {
		putRun(t, filepath.Join(base, dir), 0, trained(0.1, 8, "sage"), ended("done", 0.5, 0.5))
	}
	for _, dir := range []string{"runs/exp", "runs/s/trial-0001", "exp", "other/exp", "s/trial-0001", "t/s/trial-0001"} {
		put(dir)
	}
	for _, sweep := range []string{"runs/s", "s", "t/s"} {
		if err := os.WriteFile(filepath.Join(base, sweep, "sweep.json"), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "other"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{
		"runs/exp", filepath.Join(base, "runs/exp"), "exp", "./other/../exp", filepath.Join(base, "exp"), "other/exp", "link/exp",
		"runs/s/trial-0001", "s/trial-0001", "t/s/trial-0001",
	} {
		r, err := runs.Open(dir)
		if err == nil {
			err = runs.Export(t.Context(), r, runs.ExportOptions{TensorBoard: "tb"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	if err := fs.WalkDir(os.DirFS("tb"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, regexp.MustCompile(`-[0-9a-f]{8}\b`).ReplaceAllString(filepath.Dir(path), "-*"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"exp", "exp-*", "exp-*", "s/trial-0001", "s-*/trial-0001", "s-*/trial-0001"}; !slices.Equal(slices.Sorted(slices.Values(found)), slices.Sorted(slices.Values(want))) {
		t.Errorf("exported to %q, want %q", found, want)
	}
}
