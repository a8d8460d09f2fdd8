package main

import (
	"os"
	"strings"
	"testing"
)

func TestKernelUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--no-such"}} {
		if status, _, stderr := runFor(t, runKernel, args...); status != statusUsage {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	// A guard removes only the directory of a kernel.
	dir := t.TempDir()
	if status, _, stderr := runFor(t, runKernel, "--guard="+dir); status == statusOK {
		t.Errorf("--guard of another directory: status 0, %s", stderr)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the guard removed a directory that is not a kernel's")
	}
	status, stdout, _ := runFor(t, runKernel, "--help")
	if status != statusOK || !strings.Contains(stdout, "usage: gnb ") {
		t.Errorf("--help: status %d, %q", status, stdout)
	}
}
