package gnb_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
)

// Tests of whole processes re-execute the test binary as a "cell": a process
// that launches a run as a notebook's cell does, with GNB_TEST_CELL naming what
// to do. Workers are the same binary again, and enter through flag.Parse.
func TestMain(m *testing.M) {
	flag.Parse()
	if name := os.Getenv("GNB_TEST_CELL"); name != "" {
		var o cellOptions
		if err := json.Unmarshal([]byte(os.Getenv("GNB_TEST_OPTIONS")), &o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(runCell(name, o))
	}
	os.Exit(m.Run())
}

// cellOptions are what a cell of these tests is told.
type cellOptions struct {
	Dir      string // of the run
	Resume   string
	Workers  int
	Virtual  int
	Threads  int
	Epochs   int
	Every    int // steps between checkpoints
	FailRank int
	FailStep int
	SlowMS   int  // sleep in each step
	Hold     bool // of a sweep: only its first two trials begin before an interrupt
}

func runCell(name string, o cellOptions) int {
	ctx := context.Background()
	if name == "sweep" {
		if err := runSweepCell(o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	ds, err := gnb.Load(ctx, smallSet)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if name == "train" {
		_, err := gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{
			Workers: o.Workers, Threads: o.Threads, Epochs: o.Epochs, CheckpointEvery: o.Every, RunDir: o.Dir, Resume: o.Resume, Hidden: 8, Quiet: true,
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	run, err := gnb.Launch(ctx, loop, loopArgs{Kind: name, Epochs: o.Epochs, FailRank: o.FailRank, FailStep: o.FailStep, SlowMS: o.SlowMS}, gnb.LaunchOptions{
		Data: ds, Workers: o.Workers, VirtualRanks: o.Virtual, Threads: o.Threads, Seed: 7,
		RunDir: o.Dir, Resume: o.Resume, CheckpointEvery: o.Every, Quiet: true,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(run.Dir)
	return 0
}

// cell is a running cell.
type cell struct {
	t    *testing.T
	tmp  string // its TMPDIR
	cmd  *exec.Cmd
	mark string
	out  bytes.Buffer
	done chan error
}

// startCell starts a cell whose processes, workers included, can be found by a
// mark in their environment.
func startCell(t *testing.T, name string, o cellOptions) *cell {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	c := &cell{t: t, tmp: t.TempDir(), mark: "GNBTEST_MARK=" + hex.EncodeToString(id[:]), done: make(chan error, 1)}
	c.cmd = exec.Command("/proc/self/exe", "-test.run=^$")
	c.cmd.Env = append(os.Environ(), "GNB_TEST_CELL="+name, "GNB_TEST_OPTIONS="+string(raw), c.mark, "TMPDIR="+c.tmp, "GNB_RUNS="+filepath.Join(filepath.Dir(o.Dir), "runs"))
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.WaitDelay = 2 * time.Second
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.done <- c.cmd.Wait() }()
	t.Cleanup(func() {
		for _, p := range c.processes() {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	})
	return c
}

// wait waits for the cell's end.
func (c *cell) wait(limit time.Duration) error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(limit):
		c.t.Fatalf("the cell was still running after %v; it said:\n%s", limit, c.out.String())
		return nil
	}
}

// processes are the live processes with the cell's mark in their environment.
func (c *cell) processes() []int {
	var out []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte(c.mark)) {
			out = append(out, pid)
		}
	}
	return out
}

// workers are the cell's worker processes, by rank.
func (c *cell) workers() map[int]int {
	out := map[int]int{}
	for _, pid := range c.processes() {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		for _, a := range strings.Split(string(args), "\x00") {
			if r, ok := strings.CutPrefix(a, "-gnb.worker="); ok {
				if rank, err := strconv.Atoi(r); err == nil {
					out[rank] = pid
				}
			}
		}
	}
	return out
}

// gone waits until nothing of the cell is left: no process, no temporary file, no
// shared memory with a name.
func (c *cell) gone(limit time.Duration) {
	c.t.Helper()
	defer func() {
		for _, pattern := range []string{c.tmp + "/*", "/dev/shm/*gnb*"} {
			if left, _ := filepath.Glob(pattern); len(left) > 0 {
				c.t.Errorf("files are left after the end: %v", left)
			}
		}
	}()
	deadline := time.Now().Add(limit)
	for {
		left := c.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d processes are left %v after the end: %v\n%s", len(left), limit, left, c.out.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// steps is how many steps the run in dir has reported.
func steps(dir string) int {
	r, err := runs.Open(dir)
	if err != nil {
		return 0
	}
	s, err := r.Steps()
	if err != nil {
		return 0
	}
	return len(s)
}

// waitSteps waits until the run in dir has reported n steps.
func (c *cell) waitSteps(dir string, n int) {
	c.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for steps(dir) < n {
		select {
		case err := <-c.done:
			c.done <- err
			c.t.Fatalf("the cell ended before step %d: %v\n%s", n, err, c.out.String())
		default:
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the run did not reach step %d in a minute; it said:\n%s", n, c.out.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}
