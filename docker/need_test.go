package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// commands makes programs, each a shell script, in a directory of which PATH is made, with what the scripts
// themselves take of the system.
func commands(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"bash", "sh", "sed", "sort", "head", "dirname", "printf", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script runs one of scripts/ with these commands and no others.
func script(t *testing.T, path, name string, args ...string) (status int, out string) {
	t.Helper()
	c := exec.Command("bash", append([]string{filepath.Join(root, "scripts", name)}, args...)...)
	c.Env = []string{"PATH=" + path, "HOME=" + t.TempDir()}
	b, err := c.CombinedOutput()
	if err != nil && c.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(b)
}

// fakePython returns a python3 that says it is of a version, with or without its venv module.
func fakePython(version string, venv bool) string {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		panic(err)
	}
	return fmt.Sprintf(`case "$*" in
*version_info*) exit %d ;;
*ensurepip*) exit %d ;;
-V) echo Python %s ;;
esac`, btoi(minor < 10), btoi(!venv), version)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An older Python or Go, or none, gets a sentence with the way out.
func TestNeed(t *testing.T) {
	fakeGo := func(installed, toolchain, fetched string) string {
		return fmt.Sprintf("case \"$*\" in\nversion) echo go version go%s linux/amd64 ;;\n'env GOTOOLCHAIN') echo %s ;;\n'env GOVERSION') %s ;;\nesac", installed, toolchain, fetched)
	}
	for _, tc := range []struct {
		name, what string
		commands   map[string]string
		status     int
		says       []string
	}{
		{"no Python", "python", nil, 1, []string{"no python3 on PATH", "apt install python3 python3-venv"}},
		{"an old Python", "python", map[string]string{"python3": fakePython("3.9.18", true)}, 1, []string{"3.10 or newer (this is Python 3.9.18)", "uv python install"}},
		{"an old Python, a newer one beside it", "python", map[string]string{"python3": fakePython("3.9.18", true), "python3.12": fakePython("3.12.1", true)}, 0, nil},
		{"no venv", "python", map[string]string{"python3": fakePython("3.11.2", false)}, 1, []string{"venv module", "apt install python3-venv"}},
		{"a Python", "python", map[string]string{"python3": fakePython("3.10.12", true)}, 0, nil},
		{"no Go", "go", nil, 1, []string{"no go command on PATH", "https://go.dev/dl/"}},
		{"a Go", "go", map[string]string{"go": fakeGo("1.26.8", "local", "exit 1")}, 0, nil},
		{"Debian's Go", "go", map[string]string{"go": fakeGo("1.19.8", "", "exit 1")}, 1, []string{"this is 1.19.8", "from 1.21 on", "https://go.dev/dl/"}},
		{"a Go that fetches", "go", map[string]string{"go": fakeGo("1.24.0", "auto", "echo go: downloading go1.26.0 >&2; echo go1.26.0")}, 0, nil},
		{"a Go that may not", "go", map[string]string{"go": fakeGo("1.24.0", "local", "echo go1.24.0")}, 1, []string{"GOTOOLCHAIN keeps it", "go env -w GOTOOLCHAIN=auto"}},
		{"a Go that cannot", "go", map[string]string{"go": fakeGo("1.24.0", "auto", "echo 'dial tcp: no such host' >&2; exit 1")}, 1, []string{"could not fetch a newer one: dial tcp: no such host", "GOPROXY"}},
		{"no make", "make", nil, 1, []string{"apt install make"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, out := script(t, commands(t, tc.commands), "need.sh", tc.what)
			if status != tc.status || status == 0 && out != "" {
				t.Errorf("status %d, want %d:\n%s", status, tc.status, out)
			}
			for _, want := range tc.says {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		})
	}
}

// Environments are made with python3, or with a newer one beside it where that is too old or lacks venv.
func TestPythonIsChosen(t *testing.T) {
	for _, tc := range []struct {
		name string
		have map[string]string
		want string
	}{
		{"the usual", map[string]string{"python3": fakePython("3.11.2", true), "python3.13": fakePython("3.13.0", true)}, "python3"},
		{"an old one", map[string]string{"python3": fakePython("3.8.18", true), "python3.11": fakePython("3.11.0", true), "python3.13": fakePython("3.13.0", true)}, "python3.13"},
		{"without venv", map[string]string{"python3": fakePython("3.12.3", false), "python3.10": fakePython("3.10.1", true)}, "python3.10"},
		{"none that serves", map[string]string{"python3": fakePython("3.8.18", true)}, ""},
	} {
		dir := commands(t, tc.have)
		status, out := script(t, dir, "python.sh")
		want := ""
		if tc.want != "" {
			want = filepath.Join(dir, tc.want) + "\n"
		}
		if out != want || (status == 0) != (want != "") {
			t.Errorf("%s: status %d, %q; want %q", tc.name, status, out, want)
		}
	}
}
