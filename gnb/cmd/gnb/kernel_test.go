package main

import (
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
)

func TestKernelUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--no-such"}} {
		if status, said := say(t, append([]string{"kernel"}, args...)...); status != cli.StatusUsage {
			t.Errorf("%q: status %d, %s", args, status, said)
		}
	}
	// A guard removes only the directory of a kernel.
	dir := t.TempDir()
	if status, said := say(t, "kernel", "--guard="+dir); status == cli.StatusOK {
		t.Errorf("--guard of another directory: status 0, %s", said)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the guard removed a directory that is not a kernel's")
	}
	status, said := say(t, "kernel", "--help")
	if status != cli.StatusOK || !strings.Contains(said, "usage: gnb ") {
		t.Errorf("--help: status %d, %q", status, said)
	}
}
