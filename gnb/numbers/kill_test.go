package numbers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/runstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// killEnv makes the worker of a rank kill its process at a forward pass: "RANK PASSES", counted from 1.
const killEnv = "NUMBERS_TEST_KILL"

// mortal is a GraphSAGE that kills its process as killEnv says.
type mortal struct {
	Convs []*nn.SAGEConv
	left  int // passes until the kill, or 0
}

var mortalModel = gnb.Model("test.mortal", func(s gnb.ModelConfig) *mortal {
	m := &mortal{Convs: nn.Stack(s, nn.NewSAGE)}
	var rank, passes int
	if n, _ := fmt.Sscan(os.Getenv(killEnv), &rank, &passes); n == 2 && slices.Contains(os.Args, fmt.Sprint("-gnb.worker=", rank)) {
		m.left = passes
	}
	return m
})

func (m *mortal) NumLayers() int { return len(m.Convs) }

func (m *mortal) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if i == 0 && m.left > 0 {
		if m.left--; m.left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	if h = m.Convs[i].Forward(f, b, h); i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.2)
	}
	return h
}

// cellOptions are the options of the cell "numbers".
type cellOptions struct {
	Dir, Resume           string
	Workers, VirtualRanks int
	Edges                 bool // predict numbers of edges
	Rank, Passes          int  // the kill
}

// runCell trains, and prints nothing.
func runCell(raw []byte) error {
	var c cellOptions
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if c.Passes > 0 {
		if err := os.Setenv(killEnv, fmt.Sprint(c.Rank, c.Passes)); err != nil {
			return err
		}
	}
	o := numbers.Options{Model: mortalModel, LossOptions: numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.2, 0.5, 0.8}, Bounded: true}}
	o.Workers, o.VirtualRanks, o.Threads, o.Hidden, o.Dropout, o.Batch, o.Epochs, o.Seed = c.Workers, c.VirtualRanks, 1, 8, 0.2, 40, 8, 3
	o.Metric, o.Patience, o.CheckpointEvery, o.RunDir, o.Resume, o.Quiet = "r2", 6, 3, c.Dir, c.Resume, true
	ds := planted(300, 0.1)
	if c.Edges {
		ds.Targets, ds.Meta.TargetNames = nil, nil
		y := &dataset.Matrix{Rows: 180, Cols: 1}
		at := make([]int64, y.Rows)
		for i := range at {
			at[i] = int64(5 * i)
			y.F32 = append(y.F32, float32(i%7)+ds.Features.F32[i])
		}
		if _, err := ds.SetEdgeTargets(at, y, nil); err != nil {
			return err
		}
		if err := ds.SplitEdges(dataset.EdgeSplitOptions{}); err != nil {
			return err
		}
		o.Batch = 32
	}
	_, err := numbers.Train(context.Background(), ds, o)
	return err
}

// A run that is killed at random steps resumes each time, and ends with the weights, losses and values of one that nothing
// disturbed. So do the runs of 1, 2 and 4 workers with four virtual ranks in all.
func TestKilledRunsResumeExactly(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	t.Run("nodes", func(t *testing.T) { killAndResume(t, false) })
	t.Run("edges", func(t *testing.T) { killAndResume(t, true) })
}

func killAndResume(t *testing.T, edges bool) {
	kills := 3
	if envknob.Soak.On() {
		kills = 10
	}
	dir := t.TempDir()
	start := func(o cellOptions) error {
		c := runtest.StartCell(t, "numbers", filepath.Join(dir, "runs"), o)
		err := c.Wait(2 * time.Minute)
		c.Gone(20 * time.Second)
		if err != nil && (o.Passes == 0 || !strings.Contains(c.Out.String(), "killed")) {
			t.Fatalf("%v\n%s", err, c.Out.String())
		}
		return err
	}
	var whole *runs.Run
	for _, workers := range []int{1, 2, 4} {
		o := cellOptions{Dir: filepath.Join(dir, fmt.Sprint("whole", workers)), Workers: workers, VirtualRanks: 4 / workers, Edges: edges}
		if err := start(o); err != nil {
			t.Fatal(err)
		}
		run := runstest.Open(t, o.Dir)
		if whole == nil {
			whole = run
			continue
		}
		runstest.Same(t, fmt.Sprintf("%d workers", workers), run, whole, 10)
	}
	losses, err := whole.Losses()
	if err != nil || len(losses) < 30 {
		t.Fatalf("%d steps, %v; want 30 or more, so that kills come at different steps", len(losses), err)
	}
	random := rand.New(rand.NewPCG(17, uint64(len(losses))))
	o := cellOptions{Dir: filepath.Join(dir, "killed"), Workers: 2, VirtualRanks: 2, Edges: edges}
	for i := range kills {
		o.Rank = random.IntN(2)
		o.Passes = 1 + random.IntN(max(4, 4*len(losses)/(kills+1))) // a step has two passes of a rank
		if start(o) == nil {
			t.Logf("kill %d: the run ended before pass %d", i, o.Passes)
			break
		}
		t.Logf("kill %d: rank %d at its pass %d", i, o.Rank, o.Passes)
		o.Resume = o.Dir
	}
	o.Passes = 0
	if runstest.Open(t, o.Dir).Result.State != runs.StateDone {
		if err := start(o); err != nil {
			t.Fatal(err)
		}
	}
	runstest.Same(t, "the killed run", runstest.Open(t, o.Dir), whole, 10)
}
