package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A run on two hosts that is certain not to fit into the memory of one of them ends on every rank, with one sentence that names
// the host and the sizes, whichever of them it is, on a dataset of which each host has its own part and none has the whole graph.
func TestTrainOnHostsRefusesWhatDoesNotFit(t *testing.T) {
	testneed.NotShort(t, "it makes hosts")
	exe := command(t)
	dir := filepath.Join(t.TempDir(), "parts")
	if status, out, problems := gnbRun(t, t.TempDir(), "partition", "planted?nodes=6000&features=64", "--parts", "2", "--no-topology", "--out", dir); status != 0 {
		t.Fatalf("%s%s", out, problems)
	}
	w := clustertest.Hosts(t, 2)
	data := giveParts(t, w, w.Hosts, dir, 2)
	const limit = 96 << 20
	enter := memoryGroup(t, limit)
	for small, want := range []string{`gnb: sage on .* takes about`, `gnb: on the machine of rank 1 \(host2\), sage on .* takes about`} {
		limited := filepath.Join(w.Dir, "limited")
		text := fmt.Sprintf("#!/bin/sh\nif [ $RANK = %d ]; then echo $$ > %s || exit 9; fi\nexec \"$@\"\n", small, enter)
		if err := os.WriteFile(limited, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := w.Torchrun([]int{1, 1}, limited, exe, "train", data, "--device", "cpu", "--hidden", "1024", "--batch", "6000", "--fanout", "10,10", "--epochs", "1", "--run", filepath.Join(t.TempDir(), "run"))
		out, ended := startBoth(t, cmd)
		select {
		case err := <-ended:
			if err == nil {
				t.Fatalf("with %d bytes on host %d it trained: %s", limit, small+1, out)
			}
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Fatalf("with %d bytes on host %d ranks wait for others: %s", limit, small+1, out)
		}
		said := regexp.MustCompile(want + ` .* MiB of memory \(.* for each of 1 worker.*\), and .* of the 96.0 MiB of the control group are free; take fewer Workers`)
		if n := len(said.FindAllString(out.String(), -1)); n != 1 {
			t.Errorf("with %d bytes on host %d the sentence appears %d times, in %s", limit, small+1, n, out)
		}
		if strings.Contains(out.String(), "goroutine") {
			t.Errorf("a rank panicked: %s", out)
		}
	}
}

// startBoth starts a command and returns what it prints, and a channel that gets its end.
func startBoth(t *testing.T, cmd *exec.Cmd) (out *bytes.Buffer, ended <-chan error) {
	t.Helper()
	out = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return out, done
}
