package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestVersion(t *testing.T) {
	for _, word := range []string{"version", "--version", "-version"} {
		var stdout, stderr bytes.Buffer
		if status := dispatch(t.Context(), []string{word}, &stdout, &stderr); status != cli.StatusOK {
			t.Errorf("%s: status %d\n%s", word, status, &stderr)
		}
		first, _, _ := strings.Cut(stdout.String(), "\n")
		for _, want := range []string{"gnb " + gnb.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH} {
			if !strings.Contains(first, want) {
				t.Errorf("%s prints %q without %q", word, first, want)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	dispatch(t.Context(), []string{"version", "--json"}, &stdout, &stderr)
	var got struct{ Event, Version, Go string }
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.Event != "result" || got.Version != gnb.Version || got.Go == "" {
		t.Errorf("%q: %v", stdout.String(), err)
	}
}

// A static binary, like that of a release, works and names the parts that it lacks, and how to get
// them. Unlike a release, it is built without -trimpath, so that the standard library need not be
// compiled again.
func TestStaticBinaryNamesWhatItLacks(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds gnb without cgo, for Linux")
	}
	if !envknob.Soak.On() {
		testneed.Skip(t, testneed.Soak, "it compiles half of the standard library and all that imports package net again")
	}
	exe := filepath.Join(t.TempDir(), "gnb")
	c := exec.Command("go", "build", "-buildvcs=false", "-o", exe, ".")
	c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOGC=800") // the compiler is faster if it rarely collects its garbage
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "lacks GPUs in \"gnb monitor\" (NVML needs cgo)") || !strings.Contains(string(out), "lacks training on GPUs") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = exec.Command(exe, "doctor", "--json").Output()
	if !strings.Contains(string(out), `"name":"gnb"`) || !strings.Contains(string(out), "NVML needs cgo") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = exec.Command(exe, "monitor", "--interval", "100ms", "--duration", "1s").Output()
	if err != nil || !strings.Contains(string(out), "built without a C compiler") || !strings.Contains(string(out), "CPU ") {
		t.Errorf("%v\n%s", err, out)
	}
}
