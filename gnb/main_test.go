package gnb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
)

// Tests of whole processes start the test binary again as a "cell", a process that launches a run
// as a notebook's cell does. GNB_TEST_CELL names the cell to run. Workers are the same binary too;
// they are entered through flag.Parse.
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

// cellOptions holds the options of these tests' cells.
type cellOptions struct {
	Dir      string // directory of the run
	Resume   string
	Workers  int
	Virtual  int
	Threads  int
	Epochs   int
	Every    int // steps between checkpoints
	FailRank int
	FailStep int
	SlowMS   int // milliseconds to sleep in each step
	Restarts int
	Digest   bool
}

func runCell(name string, o cellOptions) int {
	ctx := context.Background()
	ds, err := gnb.Load(ctx, smallSet)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if name == "train" {
		_, err := gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				Workers:         o.Workers,
				VirtualRanks:    o.Virtual,
				Threads:         o.Threads,
				CheckpointEvery: o.Every,
				RunDir:          o.Dir,
				Resume:          o.Resume,
				Quiet:           true,
			},
			OptimizerOptions: gnb.OptimizerOptions{Epochs: o.Epochs},
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	run, err := gnb.Launch(ctx, loop, loopArgs{Kind: name, Epochs: o.Epochs, FailRank: o.FailRank, FailStep: o.FailStep, SlowMS: o.SlowMS, Digest: o.Digest}, gnb.LaunchOptions{
		Data:            ds,
		Workers:         o.Workers,
		VirtualRanks:    o.Virtual,
		Threads:         o.Threads,
		Seed:            7,
		RunDir:          o.Dir,
		Resume:          o.Resume,
		CheckpointEvery: o.Every,
		Restarts:        o.Restarts,
		Quiet:           true,
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
	*runtest.Cell
	t   *testing.T
	tmp string
	out *bytes.Buffer
	cmd *exec.Cmd
}

// startCell starts a cell by its name.
func startCell(t *testing.T, name string, o cellOptions) *cell {
	t.Helper()
	c := runtest.StartCell(t, name, filepath.Join(filepath.Dir(o.Dir), "runs"), o)
	return &cell{c, t, c.Tmp, &c.Out, c.Cmd}
}

func (c *cell) wait(limit time.Duration) error { c.t.Helper(); return c.Wait(limit) }
func (c *cell) workers() map[int]int           { return c.Workers() }
func (c *cell) gone(limit time.Duration)       { c.t.Helper(); c.Gone(limit) }

// Actions on the files of a run.
var (
	within   = runtest.Within
	copyTree = runtest.CopyTree
	plant    = runtest.Plant
	specials = runtest.Specials
	flips    = runtest.Flips
)

// steps returns the number of steps that the run in dir has reported.
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
		case err := <-c.Done:
			c.Done <- err
			c.t.Fatalf("the cell ended before step %d: %v\n%s", n, err, c.out.String())
		default:
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the run did not reach step %d in a minute; it printed:\n%s", n, c.out.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}
