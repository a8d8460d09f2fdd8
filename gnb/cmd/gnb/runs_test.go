package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/filelock"
)

// twoGoing returns two runs; one of them counts as running, according to its files.
func twoGoing(t *testing.T) (a, b string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GNB_RUNS", dir)
	for i, name := range []string{"a", "b"} {
		config := fmt.Sprintf(`{"id": %q, "program": "gnb.train", "args": {"LR": 0.%d}, "dataset": "planted", "workers": 1}`, name, i+1)
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "b", "result.json"), []byte(`{"state": "done", "epochs": 3, "loss": 0.5}`), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := filelock.Lock(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return "a", "b"
}

// If following is interrupted, the command prints the last state of the comparison, except where
// standard output and standard error are the same file, because there it is already visible.
func TestCompareFollowInterrupted(t *testing.T) {
	a, b := twoGoing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var o, e bytes.Buffer
	picture := filepath.Join(t.TempDir(), "c.png")
	status := dispatch(ctx, []string{"runs", "compare", a, b, "--follow", "--png", picture}, &o, &e)
	if status != cli.StatusFailed || !strings.Contains(o.String(), "state   running  done") || !strings.Contains(o.String(), "args.LR  0.1  0.2") || e.String() != "gnb runs: interrupted\n" {
		t.Errorf("status %d, %q\n%s", status, e.String(), o.String())
	}
	if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
		t.Errorf("the picture's file is %v, %v", info, err)
	}
	o.Reset()
	status = dispatch(ctx, []string{"runs", "compare", a, b, "--follow", "--json"}, &o, &e)
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	if n := len(lines); status != cli.StatusFailed || n < 2 || !strings.HasPrefix(lines[n-2], `{"event":"result",`) || !strings.Contains(lines[n-2], `["0.1","0.2"]`) || lines[n-1] != `{"event":"error","error":"interrupted"}` {
		t.Errorf("as JSON: status %d\n%s", status, o.String())
	}
	both, err := os.Create(filepath.Join(t.TempDir(), "both"))
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	status = dispatch(ctx, []string{"runs", "compare", a, b, "--follow"}, both, both)
	if raw, err := os.ReadFile(both.Name()); err != nil || status != cli.StatusFailed || string(raw) != "gnb runs: interrupted\n" {
		t.Errorf("with both streams in one file: status %d (%v):\n%s", status, err, raw)
	}
}

// An interrupt is reported as such even if the command notices it before its context is cancelled.
func TestInterruptedBeforeContext(t *testing.T) {
	var o, e bytes.Buffer
	c := cli.Command{Name: "runs", Run: func(context.Context, []string, *cli.Output) error {
		return fmt.Errorf("watching: %w", context.Canceled)
	}}
	if status := cli.Run(t.Context(), c, nil, &o, &e); status != cli.StatusFailed || e.String() != "gnb runs: interrupted\n" {
		t.Errorf("status %d, %q", status, e.String())
	}
}
