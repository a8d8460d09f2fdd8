package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/clustertest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Ranks that gnb launch starts have the samples, losses and weights of workers that gnb starts itself: as two groups on this
// machine, and on two hosts joined by a network.
func TestLaunch(t *testing.T) {
	testneed.NotShort(t, "it trains")
	exe := command(t)
	want := trainRanks(t, exec.Command(exe), "--workers", "2", "--virtual-ranks", "2")
	ssh := func(t *testing.T, script string) string {
		path := filepath.Join(t.TempDir(), "ssh")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same := func(t *testing.T, script, hosts string, args ...string) {
		t.Helper()
		got := trainRanks(t, exec.Command(exe, "launch", "--ssh", ssh(t, script), "--hosts", hosts, "--"), args...)
		if want.digest != got.digest || want.losses != got.losses || want.weights != got.weights {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	t.Run("this machine", func(t *testing.T) {
		same(t, `exec sh -c "$2"`, "a,b", "--virtual-ranks", "2")
	})
	t.Run("four ranks", func(t *testing.T) {
		same(t, `exec sh -c "$2"`, "a:3,b")
	})
	t.Run("hosts of their own", func(t *testing.T) {
		w := clustertest.Hosts(t, 2)
		script := "case $1 in\n"
		for i, h := range w.Hosts {
			script += fmt.Sprintf("host%d) SSH_CONNECTION='192.0.2.1 5000 %s 22' exec %s \"$2\" ;;\n", i, h.Addr, strings.Join(h.Command("sh", "-c").Args, " "))
		}
		same(t, script+"esac", "host0,host1", "--virtual-ranks", "2")
		for _, h := range w.Hosts {
			if sent, received := h.Counters(); sent < 100_000 || received < 100_000 {
				t.Errorf("%s sent %d bytes and received %d, too few for gradients", h.Name, sent, received)
			}
		}
	})
}
