package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
)

func TestSpec(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernels", "graphnb", "kernel.json")
	if err := writeSpec(file, newSpec(installOptions{display: "Go (GraphNB)", data: "/d", headless: true, rawError: true}, "/bin", "/mod")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var spec kernelSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/bin/gnb", "kernel", "/bin/gonb", "{connection_file}", "-raw_error=true", "-go_work=/mod"} {
		if !slices.Contains(spec.Argv, want) {
			t.Errorf("argv %q lacks %q", spec.Argv, want)
		}
	}
	if spec.Language != "go" || spec.InterruptMode != "message" || spec.Env["GNB_DATA"] != "/d" || spec.Env["GNB_HEADLESS"] != "1" {
		t.Errorf("%+v", spec)
	}
	// Settings that may change after the installation are read when a kernel starts.
	for name := range spec.Env {
		if strings.HasPrefix(name, "GO") || name == "PATH" {
			t.Errorf("%s is fixed in kernel.json", name)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("the files beside kernel.json are %v, %v", entries, err)
	}
}

func TestJupyterDir(t *testing.T) {
	prefix, active := t.TempDir(), t.TempDir()
	t.Setenv("VIRTUAL_ENV", active)
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("JUPYTER_DATA_DIR", "/users/jupyter")
	for _, tc := range []struct {
		prefix string
		user   bool
		want   string
	}{
		{prefix, false, filepath.Join(prefix, "share", "jupyter")},
		{"", false, filepath.Join(active, "share", "jupyter")},
		{"", true, "/users/jupyter"},
		{filepath.Join(prefix, "missing"), false, ""},
	} {
		got, err := jupyterDir(tc.prefix, tc.user)
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("prefix %q, user %t: %q, %v; want %q", tc.prefix, tc.user, got, err, tc.want)
		}
	}
}

func TestIsModule(t *testing.T) {
	if err := isModule(filepath.Join("..", "..", "..", "..", "..")); err != nil {
		t.Error(err)
	}
	other := t.TempDir()
	if isModule(other) == nil {
		t.Error("a directory without go.mod passed")
	}
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := isModule(other); err == nil || !strings.Contains(err.Error(), kernel.ModulePath) {
		t.Errorf("another module gave %v", err)
	}
}

func TestInstallUsage(t *testing.T) {
	for _, args := range [][]string{{"--name", "a b"}, {"--name", "../up"}, {"--name="}, {"extra"}} {
		if status, _, stderr := runFor(t, install, args...); status != cli.StatusUsage {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	prefix := t.TempDir()
	if status, _, stderr := runFor(t, install, "--prefix", prefix, "--dev", prefix); status != cli.StatusFailed || !strings.Contains(stderr, "go.mod") {
		t.Errorf("a directory without a module: status %d, %s", status, stderr)
	}
}
