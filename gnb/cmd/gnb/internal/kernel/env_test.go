package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"
)

func TestCellFlags(t *testing.T) {
	for _, tc := range []struct{ user, want string }{
		{"", "-ldflags=-s -tags=grpcnotrace"},
		{"-buildvcs=false", "-ldflags=-s -buildvcs=false -tags=grpcnotrace"},
		{"-mod=mod -tags=cuda --modfile=x.mod", "-ldflags=-s -tags=cuda,grpcnotrace"},
		{"-ldflags=-w -v", "-ldflags=-w -v -tags=grpcnotrace"},
		{"-tags=a,grpcnotrace", "-ldflags=-s -tags=a,grpcnotrace"},
	} {
		if got := CellFlags(tc.user); got != tc.want {
			t.Errorf("CellFlags(%q) = %q, want %q", tc.user, got, tc.want)
		}
	}
}

func TestCellProxy(t *testing.T) {
	const cache = "file:///c/cache/download"
	for _, tc := range []struct{ user, want string }{
		{"https://proxy.example.com,direct", cache + ",https://proxy.example.com,direct"},
		{"off", cache + ",off"},
		{"", cache},
		{cache, cache},
		{cache + ",direct", cache + ",direct"},
	} {
		if got := cellProxy(Settings{GOPROXY: tc.user, GOMODCACHE: "/c"}); got != tc.want {
			t.Errorf("GOPROXY %q: %q, want %q", tc.user, got, tc.want)
		}
	}
}

func TestKernelEnv(t *testing.T) {
	env := Env([]string{"A=1", "GNB_HEADLESS=1", "PATH=/usr/bin", "GOWORK=off", "TMPDIR=/old", "GOFLAGS=-mod=mod", envknob.KernelDir.Name + "=/outer"},
		Settings{GOPROXY: "direct", GOFLAGS: "-mod=mod", GOMODCACHE: "/c"}, "/tools", "/own")
	slices.Sort(env)
	want := []string{"A=1", "GNB_HEADLESS=1", envknob.KernelDir.Name + "=/own", "GOFLAGS=-ldflags=-s -tags=grpcnotrace", "GOPROXY=file:///c/cache/download,direct", "GOWORK=", "PATH=/tools:/usr/bin", "TMPDIR=/own"}
	if slices.Sort(want); !slices.Equal(env, want) {
		t.Errorf("got  %q\nwant %q", env, want)
	}
	// In kernels for interactive use, PATH includes gopls, which completes names.
	for _, e := range []string{"B=1", "GNB_HEADLESS=", "GNB_HEADLESS=0"} {
		if env := Env([]string{e, "PATH=/usr/bin"}, Settings{}, "/tools", "/own"); !slices.Contains(env, "PATH=/tools:/tools/editor:/usr/bin") {
			t.Errorf("with %s: %q", e, env)
		}
	}
}

// The go command's settings are read when a kernel starts, not when it is installed.
func TestGoSettingsAreTheUsersNow(t *testing.T) {
	s, err := GoSettings(t.Context(), append(os.Environ(), "GOPROXY=https://proxy.test", "GOFLAGS=-tags=x"))
	if err != nil {
		t.Fatal(err)
	}
	if s.GOPROXY != "https://proxy.test" || s.GOFLAGS != "-tags=x" || s.GOMODCACHE == "" {
		t.Errorf("%+v", s)
	}
}

func TestSweepTakesOnlyTheDead(t *testing.T) {
	parent := t.TempDir()
	alive, release, err := NewDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	dead, unlock, err := NewDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel was killed: its lock is released, but its files remain.
	if err := os.WriteFile(filepath.Join(dead, "cell"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dead, "lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	making := filepath.Join(parent, dirPrefix+"making")
	abandoned := filepath.Join(parent, dirPrefix+"abandoned")
	other := filepath.Join(parent, "someone-elses")
	for _, d := range []string{making, abandoned, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(abandoned, old, old); err != nil {
		t.Fatal(err)
	}
	SweepDirs(parent)
	for dir, want := range map[string]bool{alive: true, dead: false, making: true, abandoned: false, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: exists %t, want %t", filepath.Base(dir), err == nil, want)
		}
	}
	release()
	if _, err := os.Stat(alive); err == nil {
		t.Error("release left the directory")
	}
	unlock()
}
