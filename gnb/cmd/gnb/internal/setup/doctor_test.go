package setup

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/testneed"
)

// writeProgram makes an executable shell script.
func writeProgram(t *testing.T, file, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorJSON(t *testing.T) {
	_, stdout, _ := runFor(t, doctor, "--json", "--name", "no-such-kernel")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var result struct {
		Event  string
		Checks []map[string]any
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || result.Event != "result" {
		t.Fatalf("last line %q: %v", lines[len(lines)-1], err)
	}
	if len(result.Checks) != len(examinations) {
		t.Errorf("%d checks, want %d", len(result.Checks), len(examinations))
	}
	for _, c := range result.Checks {
		ok, isBool := c["ok"].(bool)
		if c["name"] == "" || c["detail"] == "" || !isBool || ok == (c["fix"] != "") {
			t.Errorf("check %v: want a name, a detail, and a fix if and only if it failed", c)
		}
		if c["name"] == "kernel" && ok {
			t.Errorf("a kernel that is not installed passed: %v", c)
		}
	}
}

func TestDoctorFailsWhenACheckDoes(t *testing.T) {
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("JUPYTER_DATA_DIR", t.TempDir())
	status, stdout, stderr := runFor(t, doctor)
	if status != cli.StatusFailed || !strings.Contains(stdout, "FAIL  kernel") || !strings.Contains(stderr, "kernel") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// ask.Run returns even if a program leaves behind a process that holds its output, or never ends.
func TestAskReturns(t *testing.T) {
	testneed.NotShort(t, "it waits five seconds")
	dir := t.TempDir()
	const child = `while [ -e "$0" ]; do sleep 0.1; done &`
	left, stuck := filepath.Join(dir, "left"), filepath.Join(dir, "stuck")
	writeProgram(t, left, child+"\necho go1.26.1")
	writeProgram(t, stuck, child+"\nwait")
	if b, err := ask.Run(t.Context(), left, "env"); err != nil || string(b) != "go1.26.1\n" {
		t.Errorf("a program that left a process behind gave %q, %v", b, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := ask.Run(ctx, stuck); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it does not answer") {
		t.Errorf("a program that does not end gave %v", err)
	}
	if c := checkGo(ctx, patient{}); c.OK || !strings.Contains(c.Detail, "does not answer") {
		t.Errorf("the check: %+v", c)
	}
}

func TestCheckGo(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if c := checkGo(t.Context(), patient{}); c.OK || !strings.Contains(c.Detail, "no go command") {
		t.Errorf("without go: %+v", c)
	}
	for version, ok := range map[string]bool{"go1.25.9": false, "go1.26.0": true, "go1.27rc1": true, "go1.26.1 X:exp": true} {
		writeProgram(t, filepath.Join(bin, "go"), "echo "+version)
		if c := checkGo(t.Context(), patient{}); c.OK != ok || !strings.Contains(c.Detail, version) {
			t.Errorf("%s: %+v", version, c)
		}
	}
	mod, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "go.mod"))
	if err != nil || !strings.Contains(string(mod), "\ngo "+strings.TrimPrefix(minGo, "go")) {
		t.Errorf("minGo %s differs from go.mod's version (%v)", minGo, err)
	}
}

func TestCheckPythonAndJupyter(t *testing.T) {
	prefix := t.TempDir()
	p := patient{jupyter: []string{filepath.Join(prefix, "share", "jupyter")}}
	exe := filepath.Join(prefix, "bin", "python3")
	for version, ok := range map[string]bool{"3.9.2": false, "3.10.0": true, "3.13.1": true} {
		writeProgram(t, exe, "echo go"+version)
		if c := checkPython(t.Context(), p); c.OK != ok || !strings.Contains(c.Detail, version) {
			t.Errorf("Python %s: %+v", version, c)
		}
	}
	t.Setenv("PATH", t.TempDir())
	writeProgram(t, exe, "exit 0")
	if c := checkJupyter(t.Context(), p); c.OK || c.Fix == "" {
		t.Errorf("without Jupyter: %+v", c)
	}
	writeProgram(t, exe, "echo nbclient 1.0; echo jupyter_client 8.0")
	if c := checkJupyter(t.Context(), p); !c.OK {
		t.Errorf("with Jupyter: %+v", c)
	}
}

func TestCheckKernel(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "graphnb", "bin")
	p := patient{kernelName: kernelName, jupyter: []string{dir}}
	expect := func(ok bool, detail string) {
		t.Helper()
		if c := checkKernel(t.Context(), p); c.OK != ok || !strings.Contains(c.Detail, detail) {
			t.Errorf("want ok %t with %q: %+v", ok, detail, c)
		}
	}
	expect(false, "no kernel")
	file := filepath.Join(dir, "kernels", kernelName, "kernel.json")
	spec := newSpec(installOptions{display: "Go (GraphNB)"}, bin, filepath.Join(dir, "nowhere"))
	if err := writeSpec(file, spec); err != nil {
		t.Fatal(err)
	}
	expect(false, "does not exist")
	writeProgram(t, filepath.Join(bin, "gnb"), "exit 0")
	writeProgram(t, filepath.Join(bin, "gonb"), "exit 1")
	expect(false, "go.mod")
	root, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	spec.Metadata["graphnb_module"] = root
	if err := writeSpec(file, spec); err != nil {
		t.Fatal(err)
	}
	expect(false, "does not run")
	writeProgram(t, filepath.Join(bin, "gonb"), "exit 0")
	expect(false, "gonb") // the file runs, but is not GoNB
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(false, "damaged")
}
