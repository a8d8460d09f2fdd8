package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/envknob"

	"go.uber.org/goleak"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script returns a helper made of shell lines. The helper writes its process id to a file beside
// it.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gnb")
	text := "#!/bin/sh\necho $$ >> " + file + ".pid\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// pids returns the ids of all processes that ran a script.
func pids(t *testing.T, file string) []int {
	t.Helper()
	b, err := os.ReadFile(file + ".pid")
	if err != nil {
		return nil
	}
	var out []int
	for _, w := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(w)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

// watch watches until enough accepts a sample, then checks that no process of the helper is left.
func watch(t *testing.T, helper string, enough func(Sample) bool) Sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last Sample
	err := Watch(ctx, WatchOptions{Interval: MinInterval, Helper: helper}, func(s Sample) {
		if ctx.Err() == nil {
			if last = s; enough(s) {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; the last sample is %+v", err, last)
	}
	for _, pid := range pids(t, helper) {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d of the helper still runs: %v", pid, err)
		}
	}
	if !last.Host.CPU.Known() {
		t.Errorf("the host is missing: %+v", last)
	}
	return last
}

func noteHas(want string) func(Sample) bool {
	return func(s Sample) bool { return strings.Contains(s.Note, want) }
}

const (
	hello   = `echo '{"event":"hello","protocol":1}'`
	aGPU    = `echo '{"event":"gpus","driver":"1","gpus":[{"index":0,"name":"a GPU","uuid":"u","power_w":300,"temperature_c":null}]}'`
	untilIn = `cat >/dev/null`
)

func TestWatch(t *testing.T) {
	// The helper runs until its input ends, and each sample holds its latest line.
	s := watch(t, script(t, hello, aGPU, untilIn), func(s Sample) bool { return len(s.GPUs) > 0 })
	if g := s.GPUs[0]; g.Name != "a GPU" || g.PowerW != 300 || g.TemperatureC.Known() || g.Error != "" || s.Note != "" {
		t.Errorf("%+v", s)
	}
}

func TestHelpersThatAreOfNoUse(t *testing.T) {
	testneed.NotShort(t, "it waits two seconds")
	for name, c := range map[string]struct {
		helper string
		want   string
	}{
		"of another version":   {script(t, `echo '{"event":"hello","protocol":99}'`, untilIn), "it speaks protocol 99, and this library 1"},
		"of an older one":      {script(t, `echo 'gnb: there is no command "monitor"; see' >&2`, "exit 2"), "is an older release"},
		"another program":      {script(t, `echo usage: gnb is not building`, untilIn), "is not GraphNB's gnb"},
		"without a greeting":   {script(t, aGPU, untilIn), "of another version"},
		"without a driver":     {script(t, hello, `echo '{"event":"gpus","gpus":[],"note":"no driver","final":true}'`, untilIn), "no driver"},
		"that ignores its end": {script(t, hello, `echo '{"event":"gpus","gpus":[],"note":"no driver","final":true}'`, "while :; do sleep 1; done"), "no driver"},
		"that is not there":    {filepath.Join(t.TempDir(), "gnb"), "no such file"},
		"that fails":           {script(t, hello, `echo 'gnb monitor: out of luck' >&2`, "exit 1"), "out of luck"},
		"that ends":            {script(t, hello), "ended"},
		"with a line too long": {script(t, hello, aGPU, `head -c 5000000 /dev/zero | tr '\0' x`, untilIn), "wrote a line of more than 4194304 bytes, which is not a reading of GPUs; set GNB_HELPER to the gnb of this release; trying again in 1s"},
		"that crashes":         {script(t, hello, aGPU, `echo 'SIGSEGV: segmentation violation' >&2`, `kill -SEGV $$`), "NVIDIA's library crashed the process that asks it (SIGSEGV: segmentation violation); trying again in 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := watch(t, c.helper, noteHas(c.want))
			for _, g := range s.GPUs {
				if g.PowerW.Known() || g.Error == "" {
					t.Errorf("a sample still has figures of a helper that has ended: %+v", g)
				}
			}
			if strings.Contains(s.Note, "\n") {
				t.Errorf("the note has several lines: %q", s.Note)
			}
		})
	}
}

// A helper that ends is restarted after increasing delays; one whose last message is final is not
// restarted.
func TestHelpersAreStartedAgain(t *testing.T) {
	testneed.NotShort(t, "it waits for helpers to restart")
	file := script(t, hello, `[ -e "$0.once" ] || { touch "$0.once"; exit 3; }`, aGPU, untilIn)
	s := watch(t, file, func(s Sample) bool { return len(s.GPUs) > 0 && s.GPUs[0].PowerW.Known() })
	if s.Note != "" || len(pids(t, file)) != 2 {
		t.Errorf("%d processes, %+v", len(pids(t, file)), s)
	}
	file = script(t, hello, `echo '{"event":"gpus","gpus":[],"note":"no driver","final":true}'`)
	n := 0
	watch(t, file, func(s Sample) bool {
		if strings.Contains(s.Note, "no driver") {
			n++
		}
		return n == 15 // 15 samples take 1.5 s, in which a restart would have happened
	})
	if len(pids(t, file)) != 1 {
		t.Errorf("%d processes, want 1", len(pids(t, file)))
	}
}

// A helper that hangs is ended; its earlier figures count as stale and are marked as such.
func TestAHelperThatStandsStill(t *testing.T) {
	testneed.NotShort(t, "it waits two seconds")
	file := script(t, hello, aGPU, "exec sleep 1000")
	h := newHelper(file, MinInterval)
	h.quiet, h.pause = 2*time.Second, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(ctx)
	}()
	old := false
	deadline := time.Now().Add(time.Minute)
	for {
		r := h.reading()
		if len(r.GPUs) > 0 && strings.HasPrefix(r.GPUs[0].Error, "no reading for ") && !r.GPUs[0].PowerW.Known() {
			old = true
		}
		if strings.Contains(r.Note, "wrote nothing for 2s and was ended") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", r)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !old {
		t.Error("stale figures were shown as current")
	}
	cancel()
	<-done
	if err := syscall.Kill(pids(t, file)[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the helper still runs: %v", err)
	}
}

func TestFindingTheHelper(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(envknob.Helper.Name, "")
	if _, err := findHelper(); err == nil || !strings.Contains(err.Error(), "there is no gnb beside this program or on PATH") || !strings.Contains(err.Error(), envknob.Helper.Name) {
		t.Error(err)
	}
	t.Setenv(envknob.Helper.Name, "/nowhere/gnb")
	if _, err := findHelper(); err == nil || !strings.Contains(err.Error(), "GNB_HELPER is /nowhere/gnb, which cannot be run") {
		t.Error(err)
	}
	file := script(t, hello, aGPU, untilIn)
	t.Setenv(envknob.Helper.Name, file)
	if got, err := findHelper(); err != nil || got != file {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv(envknob.Helper.Name, "")
	t.Setenv("PATH", filepath.Dir(file))
	if got, err := findHelper(); err != nil || got != file {
		t.Errorf("%q, %v", got, err)
	}
	// Without a helper, the sample has the host's figures and the reason why there are no others.
	t.Setenv("PATH", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	err := Watch(ctx, WatchOptions{Interval: MinInterval}, func(s Sample) {
		if !s.Host.CPU.Known() || !strings.Contains(s.Note, "GPUs are not shown: there is no gnb beside this program or on PATH") {
			t.Errorf("%+v", s)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := Watch(t.Context(), WatchOptions{Interval: time.Millisecond}, nil); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Error(err)
	}
}

// The command beside the program takes precedence over the one on PATH. A program that happens to
// be called gnb does not count as the command.
func TestFindCommand(t *testing.T) {
	t.Setenv(envknob.Helper.Name, "")
	put := func(dir, name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	here, onPath := t.TempDir(), t.TempDir()
	t.Setenv("PATH", onPath)
	self := put(here, "program")
	if got, err := findCommand(self); !errors.Is(err, ErrNoCommand) {
		t.Errorf("%q, %v", got, err)
	}
	second := put(onPath, "gnb")
	if got, err := findCommand(self); err != nil || got != second {
		t.Errorf("with the command on PATH: %q, %v", got, err)
	}
	first := put(here, "gnb")
	if got, err := findCommand(self); err != nil || got != first {
		t.Errorf("with the command beside the program: %q, %v", got, err)
	}
	if got, err := findCommand(first); err != nil || got != second {
		t.Errorf("for a program called gnb: %q, %v", got, err)
	}
	if got, err := findCommand(second); !errors.Is(err, ErrNoCommand) {
		t.Errorf("for a program called gnb that is on PATH: %q, %v", got, err)
	}
	if got, err := findCommand(""); err != nil || got != second {
		t.Errorf("for a program whose file is unknown: %q, %v", got, err)
	}
	t.Setenv(envknob.Helper.Name, first)
	if got, err := findCommand(self); err != nil || got != first {
		t.Errorf("with the environment variable: %q, %v", got, err)
	}
}

func TestHelperEnv(t *testing.T) {
	got := fmt.Sprint(helperEnv([]string{"A=1", "GNB_WORKER=1", "GONB_PIPE=x", "GNB_RUNS=r"}))
	if got != "[A=1 GNB_RUNS=r]" {
		t.Error(got)
	}
}
