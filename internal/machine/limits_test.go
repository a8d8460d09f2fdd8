package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if l, ok := knownIn(dir); ok {
		t.Errorf("an empty directory gives the limits %+v", l)
	}
	measured := 0
	as := func(l Limits) func(int) Limits {
		return func(threads int) Limits {
			measured += threads
			return l
		}
	}
	first, err := measureIn(dir, as(Limits{GFLOPS: 100, CopyGBs: 10, RowGBs: 5}))
	if err != nil || measured < 1 || first.Machine != Name() {
		t.Fatalf("%+v (%v) on %d threads", first, err, measured)
	}
	if l, ok := knownIn(dir); !ok || l != first {
		t.Errorf("%+v was kept, want %+v", l, first)
	}
	// A measurement on a busy machine lowers no recorded limit.
	second, err := measureIn(dir, as(Limits{GFLOPS: 50, CopyGBs: 12, RowGBs: 4}))
	if want := (Limits{Name(), 100, 12, 5}); err != nil || second != want {
		t.Errorf("%+v (%v), want %+v", second, err, want)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v (%v), want one file", files, err)
	}
	for _, bad := range []string{"", "{", `{"machine":"another","gflops":1,"copy_gb_per_second":1,"random_row_gb_per_second":1}`, `{"machine":"` + Name() + `"}`} {
		if err := os.WriteFile(files[0], []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if l, ok := knownIn(dir); ok {
			t.Errorf("a file with the content %q gives the limits %+v", bad, l)
		}
	}
}

func TestNowhereToKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file} {
		if l, err := measureIn(dir, func(int) Limits { t.Error("the limits were measured nevertheless"); return Limits{} }); err == nil || l != (Limits{}) {
			t.Errorf("in %q: %+v, error %v", dir, l, err)
		}
	}
	l, err := keepIn(file, Limits{GFLOPS: 1, CopyGBs: 2, RowGBs: 3})
	if err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") || l.GFLOPS != 1 {
		t.Errorf("%+v, error %v", l, err)
	}
}

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a second")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l, err := Measure(func(int) float64 { return 7 })
	if err != nil || l.GFLOPS != 7 || !(l.CopyGBs > 0 && l.RowGBs > 0) {
		t.Errorf("measured %+v (%v)", l, err)
	}
	if k, ok := Known(); !ok || k != l {
		t.Errorf("the recorded limits are %+v, want %+v", k, l)
	}
}
