package setup

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/kernel"
)

// tree returns all files and directories below dir with their contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			files[path] = ""
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const foreignSpec = `{"argv": ["gonb", "--kernel", "{connection_file}"], "display_name": "Go (gonb)", "language": "go",
 "metadata": {"debugger": true}}`

// GraphNB's kernel is installed next to a GoNB kernel, and uninstalling removes all of its files.
func TestInstallAndUninstall(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the kernel's programs")
	}
	prefix := t.TempDir()
	gonb := filepath.Join(prefix, "share", "jupyter", "kernels", "gonb", "kernel.json")
	if err := os.MkdirAll(filepath.Dir(gonb), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gonb, []byte(foreignSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, prefix)
	args := []string{"--prefix", prefix, "--headless", "--dev", filepath.Join("..", "..", "..", "..", "..")}

	status, _, stderr := runFor(t, install, append(args, "--name", "gonb")...)
	if status != cli.StatusFailed || !strings.Contains(stderr, "did not install and does not change") {
		t.Errorf("installing over a GoNB kernel: status %d, %s", status, stderr)
	}
	if !maps.Equal(tree(t, prefix), before) {
		t.Error("the refused installation changed a file")
	}
	for _, name := range []string{"graphnb", "second"} {
		if status, _, stderr := runFor(t, install, append(args, "--name", name)...); status != cli.StatusOK {
			t.Fatalf("install: status %d, %s", status, stderr)
		}
	}
	both := tree(t, prefix)
	for _, want := range []string{"kernels/gonb/kernel.json", "kernels/graphnb/kernel.json", "kernels/second/kernel.json", "graphnb/bin/gonb", "graphnb/bin/goimports", "graphnb/bin/gnb"} {
		if both[filepath.Join(prefix, "share", "jupyter", want)] == "" {
			t.Errorf("after install %s is missing", want)
		}
	}
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"not ours", []string{"--name", "gonb"}, cli.StatusFailed, "is left unchanged"},
		{"one", []string{"--name", "second"}, cli.StatusOK, "second"},
		{"the same again", []string{"--name", "second"}, cli.StatusOK, "no kernel"},
		{"all", nil, cli.StatusOK, "graphnb"},
		{"twice", nil, cli.StatusOK, "nothing"},
	} {
		status, stdout, stderr := runFor(t, uninstall, append([]string{"--prefix", prefix}, tc.args...)...)
		if status != tc.status || !strings.Contains(stdout+stderr, tc.says) {
			t.Errorf("%s: status %d, %s%s", tc.name, status, stdout, stderr)
		}
		_, err := os.Stat(kernel.ToolsDir(filepath.Join(prefix, "share", "jupyter")))
		if last := tc.name == "all" || tc.name == "twice"; (err == nil) == last {
			t.Errorf("%s: the programs: %v; the first kernel needs them until it is uninstalled", tc.name, err)
		}
	}
	if after := tree(t, prefix); !maps.Equal(after, before) {
		t.Errorf("before %q\nafter %q", before, after)
	}
}

// The environment's own pip uninstalls the wheels that install has installed.
func TestUninstallRemovesWheels(t *testing.T) {
	prefix := t.TempDir()
	log := filepath.Join(prefix, "log")
	writeProgram(t, filepath.Join(prefix, "bin", "python3"), `echo "$@" > `+log)
	spec := newSpec(installOptions{prefix: prefix, cudaInclude: "/include", gotWheels: []string{"nvidia-cublas-cu12", "nvidia-nccl-cu12"}}, "/bin", "/mod")
	if err := writeSpec(filepath.Join(prefix, "share", "jupyter", "kernels", cudaKernelName, "kernel.json"), spec); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runFor(t, uninstall, "--prefix", prefix); status != cli.StatusOK {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(log)
	if err != nil || strings.TrimSpace(string(b)) != "-m pip uninstall --yes nvidia-cublas-cu12 nvidia-nccl-cu12" {
		t.Errorf("pip was run with %q (%v)", b, err)
	}
}
