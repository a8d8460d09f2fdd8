package gnb_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/atomicfile/powercut"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// GNB_TEST_OPS names a file to which a cell's processes, including workers, write their changes to
// the disk. This runs before TestMain, in which a worker is entered.
func init() {
	name := os.Getenv("GNB_TEST_OPS")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	atomicfile.Observe(func(op atomicfile.Op) {
		line, err := json.Marshal(op)
		if err == nil {
			_, err = f.Write(append(line, '\n'))
		}
		if err != nil {
			panic(err)
		}
	})
}

// After a power cut at any moment of a run, each of its files is complete or missing, and if a
// checkpoint exists, so do the run's configuration and the metrics of all steps before it.
func TestPowerCutDuringARun(t *testing.T) {
	testneed.NotShort(t, "it resumes a run after each simulated power cut")
	dir := filepath.Join(t.TempDir(), "run")
	log := filepath.Join(t.TempDir(), "ops")
	t.Setenv("GNB_TEST_OPS", log)
	c := startCell(t, "plain", cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 3, Every: 4})
	if err := c.wait(60 * time.Second); err != nil {
		t.Fatalf("%v\n%s", err, c.out.String())
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ops []atomicfile.Op
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var op atomicfile.Op
		if err := json.Unmarshal(sc.Bytes(), &op); err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	ends := stepEnds(t, dir)
	if bad := powerCuts(ops, dir, ends); len(bad) > 0 {
		t.Errorf("%d states of %d operations are wrong:\n%s", len(bad), len(ops), strings.Join(bad[:min(5, len(bad))], "\n"))
	}
	saved := slices.IndexFunc(ops, func(o atomicfile.Op) bool {
		return o.Kind == atomicfile.OpRename && filepath.Dir(o.To) == filepath.Join(dir, "checkpoints")
	})
	if saved < 0 {
		t.Fatal("no checkpoint was written")
	}
	// The check detects a missing sync of each kind.
	for what, drop := range map[string]func(i int, o atomicfile.Op) bool{
		"syncing metrics": func(_ int, o atomicfile.Op) bool {
			return o.Kind == atomicfile.OpSync && filepath.Base(o.Path) == "metrics.jsonl"
		},
		"syncing the configuration": func(_ int, o atomicfile.Op) bool {
			return o.Kind == atomicfile.OpSync && strings.HasPrefix(filepath.Base(o.Path), ".config.json")
		},
		"syncing the first directory": func(i int, o atomicfile.Op) bool {
			return o.Kind == atomicfile.OpSyncDir && o.Path == dir && i < saved
		},
		"syncing the first checkpoint": func(i int, o atomicfile.Op) bool {
			return o.Kind == atomicfile.OpSync && o.Path == ops[saved].Path
		},
	} {
		var rest []atomicfile.Op
		for i, o := range ops {
			if !drop(i, o) {
				rest = append(rest, o)
			}
		}
		if len(rest) == len(ops) || len(powerCuts(rest, dir, ends)) == 0 {
			t.Errorf("without %s the check finds no wrong state; it applies %d of %d operations", what, len(rest), len(ops))
		}
	}
}

// stepEnds returns, for each step, the offset after its line in a run's metrics.
func stepEnds(t *testing.T, dir string) map[int64]int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	ends, at := map[int64]int64{}, int64(0)
	for line := range bytes.Lines(b) {
		at += int64(len(line))
		var e struct {
			Records []struct {
				Total int64 `json:"total"`
			} `json:"records"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			ends[r.Total] = at
		}
	}
	if len(ends) < 10 {
		t.Fatalf("the metrics have %d steps", len(ends))
	}
	return ends
}

// powerCuts returns the wrong states in which a power cut can leave a run's directory.
func powerCuts(ops []atomicfile.Op, dir string, ends map[int64]int64) (wrong []string) {
	var d powercut.Disk
	files := map[string]bool{}
	for i, op := range ops {
		d.Apply(op)
		if op.Kind == atomicfile.OpRename {
			files[op.To] = true
		}
		say := func(path string, s powercut.State) {
			line, _ := json.Marshal(s)
			wrong = append(wrong, op.String()+" ("+string(rune('0'+i%10))+"): "+path+" can be "+string(line))
		}
		for path := range files {
			there := false
			for _, s := range d.States(path) {
				if !s.Missing && !s.Whole() {
					say(path, s)
				}
				there = there || !s.Missing
			}
			var step int64
			if !there || filepath.Dir(path) != filepath.Join(dir, "checkpoints") {
				continue
			}
			for n := range ends {
				if checkpoint.Path(filepath.Dir(path), n) == path {
					step = n
				}
			}
			for _, s := range d.States(filepath.Join(dir, "config.json")) {
				if !s.Whole() {
					say("beside "+path+" config.json", s)
				}
			}
			for _, s := range d.States(filepath.Join(dir, "metrics.jsonl")) {
				if s.Missing || s.Bytes < ends[step] {
					say("beside "+path+" metrics.jsonl", s)
				}
			}
		}
	}
	return wrong
}

// Closing the terminal interrupts a run: the run writes a checkpoint and leaves no worker behind,
// and the next execution resumes it.
func TestClosedTerminalInterrupts(t *testing.T) {
	testneed.Raced(t, "it waits for a run to end")
	testneed.Hangups(t)
	for range moments(t) {
		dir := filepath.Join(t.TempDir(), "run")
		o := cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 3, Every: 1 << 30, SlowMS: 10}
		c := startCell(t, "plain", o)
		c.waitSteps(dir, 5)
		for _, pid := range slices.Sorted(maps.Values(c.workers())) { // the signal goes to the terminal's whole process group
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if err := c.wait(10 * time.Second); err == nil {
			t.Error("an interrupted cell ended without an error")
		}
		c.gone(5 * time.Second)
		if out := c.out.String(); !strings.Contains(out, "interrupted") || !strings.Contains(out, "its checkpoint is") {
			t.Errorf("the cell said:\n%s", out)
		}
		r, err := runs.Open(dir)
		if err != nil || r.Result.State != runs.StateInterrupted {
			t.Fatalf("%v, %v", r, err)
		}
		if _, step, _, err := checkpoint.Latest(filepath.Join(dir, "checkpoints")); err != nil || step < 4 {
			t.Errorf("the checkpoint has step %d, %v", step, err)
		}
		c = startCell(t, "plain", o)
		if err := c.wait(60 * time.Second); err != nil {
			t.Fatalf("%v\n%s", err, c.out.String())
		}
		if got, all := steps(dir), 3*steps1(t); got != all {
			t.Errorf("%d steps in all, want %d", got, all)
		}
	}
}

// A run whose directory is removed or replaced soon ends with an error that names the directory,
// and does not create it again.
func TestRemovedDirectoryEndsTheRun(t *testing.T) {
	testneed.NotShort(t, "it waits for a run to notice")
	for what, remove := range map[string]func(dir string) error{
		"removed": func(dir string) error {
			for os.RemoveAll(dir) != nil { // the run may write into the directory at the same time
				time.Sleep(time.Millisecond)
			}
			return nil
		},
		"moved":    func(dir string) error { return os.Rename(dir, dir+"-elsewhere") },
		"replaced": func(dir string) error { return os.Rename(dir, dir+"-elsewhere") },
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			c := startCell(t, "plain", cellOptions{Dir: dir, Workers: 2, Threads: 1, Epochs: 100000, Every: 4, SlowMS: 5})
			c.waitSteps(dir, 5)
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if what == "replaced" {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.wait(30 * time.Second); err == nil {
				t.Error("the run ended without an error")
			}
			c.gone(5 * time.Second)
			if out := c.out.String(); !strings.Contains(out, "the run's directory "+dir+" was removed") {
				t.Errorf("the cell said:\n%s", out)
			}
			left, err := os.ReadDir(dir)
			// A checkpoint's directory may still be created in a directory that replaced the run's.
			if what == "replaced" && (err != nil || len(left) > 1) || what != "replaced" && err == nil {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}
