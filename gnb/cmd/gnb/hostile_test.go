package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Escape sequences in the names of datasets, directories and runs do not reach a terminal.
func TestNothingPrintedHasEscapes(t *testing.T) {
	dir := t.TempDir()
	const evil = "evil\x1b]0;pwned\x07\x1b[31m\u009b2J\u202e"
	evilDir := "d\x1b[2J"
	ds, err := gnb.Load(t.Context(), "planted?nodes=300&seed=2")
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.Write(filepath.Join(dir, evilDir), ds); err != nil {
		t.Fatal(err)
	}
	dividedtest.Undigested(t, filepath.Join(dir, evilDir), func(m map[string]any) { m["name"], m["source"] = evil, evil })
	run := "runs/r\x1b[5m"
	for _, args := range [][]string{
		{"data", "info", evilDir},
		{"data", "check", evilDir},
		{"data", "list"},
		{"train", evilDir, "--epochs", "1", "--workers", "1", "--run", run},
		{"train", evilDir, "--epochs", "1", "--workers", "1", "--seed", "2"},
		{"runs", "list"},
		{"runs", "show", run, "--json"},
		{"runs", "show", run},
		{"runs", "compare", run, run},
		{"inspect", evilDir},
		{"partition", evilDir},
		{"infer", evilDir, "--run", run, "--out", "x\x1b[1m.npy"},
		{"sweep", evilDir, "--trials", "1", "--epochs", "1", "--param", "lr=0.01,0.1"},
		{"runs", "show", "no\x1b[1m"},
		{"data", "info", "no\x1b[1m"},
	} {
		status, stdout, stderr := gnbRun(t, dir, args...)
		for _, text := range []string{stdout, stderr} {
			if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == '\u202e' }); i >= 0 {
				t.Errorf("gnb %q prints %q", args, text[max(0, i-40):min(len(text), i+40)])
			}
		}
		if strings.Contains(stdout+stderr, "PANIC") || status == 2 || status != 0 && !strings.HasPrefix(args[len(args)-1], "no") {
			t.Errorf("gnb %q: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

// A kernel's name is a single directory name beside those of other kernels.
func TestInstallStaysInItsPlace(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "a", "b")
	for _, name := range []string{"..", ".", "...", ".hidden", "../x", ""} {
		status, _, stderr := gnbRun(t, dir, "install", "--prefix", prefix, "--name", name)
		if status != 2 || !strings.Contains(stderr, "--name") {
			t.Errorf("--name %q: status %d, %s", name, status, stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}

// Pictures and results are written to the given path. A pipe at that path receives the bytes and
// remains a pipe.
func TestOutputsIntoPipes(t *testing.T) {
	dir := t.TempDir()
	for _, run := range []string{"one", "two"} {
		if status, _, stderr := gnbRun(t, dir, "train", "planted?nodes=300", "--epochs", "2", "--workers", "1", "--run", run); status != 0 {
			t.Fatal(stderr)
		}
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link.npy")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"runs", "compare", "one", "two", "--png", pipe},
		{"inspect", "planted?nodes=300", "--png", link},
		{"scaling", "planted?nodes=300", "--workers", "1", "--png", pipe},
		{"infer", "planted?nodes=300", "--run", "one", "--out", link},
	} {
		got := make(chan []byte)
		go func() {
			b, _ := os.ReadFile(pipe)
			got <- b
		}()
		status, stdout, stderr := gnbRun(t, dir, args...)
		if status != 0 {
			t.Errorf("gnb %s: status %d\n%s%s", strings.Join(args, " "), status, stdout, stderr)
			if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close() // releases the waiting reader
			}
		}
		if b := <-got; !bytes.HasPrefix(b, []byte("\x89PNG")) && !bytes.HasPrefix(b, []byte("\x93NUMPY")) {
			t.Errorf("gnb %s: the pipe received %.20q", strings.Join(args, " "), b)
		}
		for path, kind := range map[string]os.FileMode{pipe: os.ModeNamedPipe, link: os.ModeSymlink} {
			if info, err := os.Lstat(path); err != nil || info.Mode().Type() != kind {
				t.Errorf("after gnb %s the file %s is %v, %v", strings.Join(args, " "), path, info, err)
			}
		}
	}
}

// Closing the terminal interrupts a run, except under nohup.
func TestHangup(t *testing.T) {
	testneed.Hangups(t)
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, ignored := range []bool{false, true} {
		dir := t.TempDir()
		run := filepath.Join(dir, "run")
		epochs := "100000"
		if ignored {
			epochs = "200"
		}
		args := []string{bin, "train", "planted?nodes=300", "--epochs", epochs, "--workers", "2", "--run", run, "--json"}
		script := `exec "$@"`
		if ignored {
			script = `trap "" HUP; exec "$@"`
		}
		cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if r, err := runs.Open(run); err == nil && r.Result.Epochs > 3 {
				break
			}
			if time.Now().After(deadline) {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				t.Fatalf("no epoch in a minute:\n%s", out.String())
			}
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP); err != nil { // the kernel signals the whole group too
			t.Fatal(err)
		}
		err := cmd.Wait()
		r, opened := runs.Open(run)
		if opened != nil {
			t.Fatal(opened)
		}
		switch {
		case ignored && (err != nil || r.Result.State != runs.StateDone):
			t.Errorf("under nohup: %v, the run is %s\n%s", err, r.Result.State, tail(out.String()))
		case !ignored && (err == nil || r.Result.State != runs.StateInterrupted):
			t.Errorf("without a terminal: %v, the run is %s\n%s", err, r.Result.State, tail(out.String()))
		}
	}
}

// tail returns the end of a long output.
func tail(s string) string { return s[max(0, len(s)-2000):] }
