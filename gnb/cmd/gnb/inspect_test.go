package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
)

func TestInspectCommand(t *testing.T) {
	dir := t.TempDir()
	png := filepath.Join(dir, "batch.png")
	_, r := result(t, dir, "inspect", "karate", "--fanout", "3,2", "--seeds", "0,33", "--draw", "1", "--png", png)
	has(t, r, "hops", "spans", "around", "seeds", "device")
	if r["seeds"] != 2.0 || r["around"].(map[string]any)["seed"] != 33.0 || len(r["hops"].([]any)) != 2 {
		t.Errorf("result %v", r)
	}
	if data, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
		t.Errorf("the picture has %d bytes (%v)", len(data), err)
	}
	for _, args := range [][]string{{"inspect", "karate", "--seeds", "x"}, {"inspect", "karate", "--seeds", "-3"}} {
		var o, e bytes.Buffer
		if status := dispatch(t.Context(), args, &o, &e); status != cli.StatusUsage {
			t.Errorf("gnb %q: status %d, %s", args, status, e.String())
		}
	}
	var o, e bytes.Buffer
	if status := dispatch(t.Context(), []string{"inspect", "karate", "--seeds", "99"}, &o, &e); status != cli.StatusFailed || !strings.Contains(e.String(), "seed 99 is not a node") {
		t.Errorf("status %d, %s", status, e.String())
	}
}
