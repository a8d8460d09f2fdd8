package gnb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// wholeFiles fails the test for each file of a run that is incomplete.
func wholeFiles(t *testing.T, dir, after string) {
	t.Helper()
	for _, name := range []string{"config.json", "result.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var v map[string]any
		if err != nil || json.Unmarshal(b, &v) != nil || v["gnb_sha256"] == nil {
			t.Errorf("after %s the file %s has %q, %v", after, name, b, err)
		}
	}
	if _, err := runs.Open(dir); err != nil {
		t.Errorf("after %s: %v", after, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for line := range bytes.Lines(b) {
		if !json.Valid(line) && bytes.HasSuffix(line, []byte("\n")) {
			t.Errorf("after %s the metrics have the line %q", after, line)
		}
	}
	if _, _, damaged, _ := checkpoint.Latest(filepath.Join(dir, "checkpoints")); len(damaged) > 0 {
		t.Errorf("after %s checkpoints are damaged: %v", after, damaged)
	}
	for _, name := range []string{"best.safetensors", "model.safetensors"} {
		_, meta, err := safetensors.ReadFile(filepath.Join(dir, name))
		if !errors.Is(err, os.ErrNotExist) && (err != nil || !safetensors.Sealed(meta)) {
			t.Errorf("after %s %s: %v", after, name, err)
		}
	}
}

// A run that is ended repeatedly, in any way and at random moments, has only complete files and
// resumes to the weights and steps of an undisturbed run. Nothing else is left behind.
func TestKillMatrix(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	o := cellOptions{Workers: 2, Virtual: 2, Threads: 1, Epochs: 40, Every: 2}
	o.Dir = filepath.Join(t.TempDir(), "whole")
	c := startCell(t, "train", o)
	if err := c.wait(120 * time.Second); err != nil {
		t.Fatalf("%v\n%s", err, c.out.String())
	}
	whole, err := runs.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	all := steps(o.Dir)
	ways := []struct {
		name string
		end  func(c *cell) error
	}{
		{"killing the launcher", func(c *cell) error { return c.cmd.Process.Kill() }},
		{"killing rank 0", func(c *cell) error {
			if pid, ok := c.workers()[0]; ok {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
			return c.cmd.Process.Kill()
		}},
		{"an interrupt", func(c *cell) error { return c.cmd.Process.Signal(os.Interrupt) }},
		{"a hangup", func(c *cell) error { return c.cmd.Process.Signal(syscall.SIGHUP) }},
		{"SIGTERM", func(c *cell) error { return c.cmd.Process.Signal(syscall.SIGTERM) }},
	}
	rounds := len(ways)
	if os.Getenv("GNB_SOAK") != "" {
		rounds *= 12
	}
	o.Dir = filepath.Join(t.TempDir(), "runs", "disturbed")
	ended := false
	for i := range rounds {
		way := ways[i%len(ways)]
		c := startCell(t, "train", o)
		// The run ends at a random moment, from the first moment at which it exists until some
		// steps later.
		want := steps(o.Dir) + rand.IntN(max(1, 2*all/rounds))
		deadline := time.Now().Add(60 * time.Second)
		for ; steps(o.Dir) < want || i == 0 && !exists(filepath.Join(o.Dir, "config.json")); time.Sleep(time.Millisecond) {
			select {
			case err := <-c.Done:
				ended = true
				c.Done <- err
			default:
			}
			if ended || time.Now().After(deadline) {
				break
			}
		}
		if !ended {
			if err := way.end(c); err != nil && !strings.Contains(err.Error(), "finished") {
				t.Fatal(err)
			}
		}
		_ = c.wait(30 * time.Second)
		c.gone(10 * time.Second)
		wholeFiles(t, o.Dir, way.name)
		t.Logf("%s after %d steps of %d", way.name, steps(o.Dir), all)
		if r, err := runs.Open(o.Dir); ended || err == nil && r.Result.State == runs.StateDone {
			break
		}
		o.Resume = o.Dir
	}
	if r, err := runs.Open(o.Dir); err != nil || r.Result.State != runs.StateDone {
		c := startCell(t, "train", o)
		if err := c.wait(120 * time.Second); err != nil {
			t.Fatalf("%v\n%s", err, c.out.String())
		}
	}
	r, err := runs.Open(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	wholeFiles(t, o.Dir, "the end")
	if !bytes.Equal(weights(t, whole), weights(t, r)) {
		t.Error("the disturbed run has other weights than the undisturbed one")
	}
	want, err1 := whole.Losses()
	got, err2 := r.Losses()
	if err := errors.Join(err1, err2); err != nil || len(want) != all || !slices.Equal(got, want) {
		t.Errorf("%d losses of %d steps, %v; want the %d of the undisturbed run", len(got), all, err, len(want))
	}
	a, err := os.ReadFile(whole.BestWeights())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(r.BestWeights()); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the best weights differ from the undisturbed run's: %v", err)
	}
	err = filepath.WalkDir(o.Dir, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), "tmp") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
