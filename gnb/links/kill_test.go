package links_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// killEnv tells a worker when to kill what: "RANK PASSES PID". The worker of this rank sends SIGKILL to the
// process, 0 for itself, at its forward pass of this number, counted from 1.
const killEnv = "LINKS_TEST_KILL"

// mortal is a GraphSAGE that kills its process, or the cell, as killEnv says.
type mortal struct {
	Convs  []*nn.SAGEConv
	left   int // passes until the kill, or 0
	victim int
}

var mortalModel = gnb.Model("test.mortal", func(s gnb.ModelConfig) *mortal {
	m := &mortal{Convs: nn.Stack(s, nn.NewSAGE)}
	var rank, passes, victim int
	if n, _ := fmt.Sscan(os.Getenv(killEnv), &rank, &passes, &victim); n == 3 && slices.Contains(os.Args, "-gnb.worker="+strconv.Itoa(rank)) {
		m.left, m.victim = passes, victim
	}
	return m
})

// halfLoss is the binary cross-entropy with edges of twice the weight of a negative.
var halfLoss = links.DeclareLoss("test.half", func(b *links.Batch, scores *nn.Tensor) *nn.Loss {
	return pairs.LossOptions{PosWeight: 2}.BCE(scores, b.PerEdge)
})

func (m *mortal) NumLayers() int { return len(m.Convs) }

func (m *mortal) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if i == 0 && m.left > 0 {
		if m.left--; m.left == 0 {
			victim := m.victim
			if victim == 0 {
				victim = os.Getpid()
			}
			_ = syscall.Kill(victim, syscall.SIGKILL) // the cell may have ended already
		}
	}
	h = m.Convs[i].Forward(f, b, h)
	if i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.2)
	}
	return h
}

// cellOptions are the options of the cell "links".
type cellOptions struct {
	Dir, Resume  string
	Own          *linkstest.Setting // nil means links.Train
	FullGraph    bool
	OwnLoss      string
	PosWeight    float64
	Parts        string // the dataset's directory of parts, of which each worker has its own alone
	Rank, Passes int    // the kill
	Cell         bool
}

// runCell trains, and prints nothing.
func runCell(raw []byte) error {
	var o cellOptions
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	if o.Passes > 0 {
		victim := 0
		if o.Cell {
			victim = os.Getpid()
		}
		if err := os.Setenv(killEnv, fmt.Sprint(o.Rank, o.Passes, victim)); err != nil {
			return err
		}
	}
	ctx := context.Background()
	cache := ""
	if o.Parts != "" {
		cache = "10%"
	}
	ds, err := gnb.Load(ctx, cmp.Or(o.Parts, planted))
	if err != nil {
		return err
	}
	// Checkpoints lie between the ends of epochs too.
	const every = 3
	if o.Own != nil {
		_, err = gnb.Launch(ctx, linkstest.Program, *o.Own, gnb.LaunchOptions{Data: ds, Workers: 2, Threads: 1, Seed: 3, PlaneOptions: gnb.PlaneOptions{Cache: cache}, CheckpointEvery: every, RunDir: o.Dir, Resume: o.Resume, Quiet: true})
		return err
	}
	t := links.Options{Model: mortalModel, FullGraph: o.FullGraph, PosWeight: o.PosWeight, KeepSource: true, EvalNegatives: 4, LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 3, PlaneOptions: gnb.PlaneOptions{Cache: cache}, CheckpointEvery: every, RunDir: o.Dir, Resume: o.Resume, Quiet: true}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 8, Batch: 200}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.2}, EvaluationOptions: gnb.EvaluationOptions{Metric: "mrr", Patience: 6}}
	if o.FullGraph {
		t.Epochs, t.EvalEvery, t.Patience = 60, 2, 0
	}
	if t.OwnLoss = o.OwnLoss; o.OwnLoss == "" {
		t.LabelSmoothing = 0.1
	}
	_, err = links.Train(ctx, ds, t)
	return err
}

// A run that is killed at random steps resumes each time and ends with the weights, losses and metrics of a
// run that nothing disturbed, to the bit. Kills are of one rank and of the cell in turns: four, or ten with GNB_SOAK.
func TestKilledRunsResumeExactly(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	points := 4
	if envknob.Soak.On() {
		points = 10
	}
	divide := func(o divided.Options) string {
		return dividedtest.PartsBy(t, load(t, planted), 2, func(v int32) int { return sample.Owner(v, 2) }, o).Dir()
	}
	cells := map[string]cellOptions{
		"Train":             {PosWeight: 2.5},
		"Train, full graph": {FullGraph: true, OwnLoss: halfLoss},
		"Train, on parts":   {Parts: divide(divided.Options{})},
		"a loop of its own": {Own: &linkstest.Setting{
			Model: "test.mortal", Labor: gnb.Labor{Fanouts: gnb.Fanouts{5, 3}, BatchDependency: 4}, Negatives: links.NegativeOptions{PerEdge: 2, From: links.InBatch}, Batch: 100, Hidden: 8, Epochs: 4, NoDigest: true,
		}},
	}
	if envknob.Soak.On() {
		cells["Train, where no machine has the whole graph"] = cellOptions{Parts: divide(divided.Options{NoTopology: true})}
	}
	for name, o := range cells {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := func(o cellOptions) (*runtest.Cell, error) {
				c := runtest.StartCell(t, "links", filepath.Join(dir, "runs"), o)
				err := c.Wait(2 * time.Minute)
				c.Gone(20 * time.Second)
				return c, err
			}
			o.Dir = filepath.Join(dir, "whole")
			if c, err := start(o); err != nil {
				t.Fatalf("%v\n%s", err, c.Out.String())
			}
			whole, err := runs.Open(o.Dir)
			if err != nil {
				t.Fatal(err)
			}
			losses, err := whole.Losses()
			if err != nil || len(losses) < 30 {
				t.Fatalf("%d steps, %v; want 30 or more, so that kills come at different steps", len(losses), err)
			}
			random := rand.New(rand.NewPCG(17, uint64(len(losses))))
			o.Dir = filepath.Join(dir, "killed")
			for i := range points {
				o.Rank, o.Cell = random.IntN(2), i%2 == 1
				// The bound leaves steps for the kills to come: a run resumes at most three steps, and an
				// evaluation, before the kill.
				o.Passes = 1 + random.IntN(max(4, 2*len(losses)/(points+1)-3))
				c, err := start(o)
				if err == nil {
					t.Logf("kill %d: the run ended before pass %d", i, o.Passes)
					break
				}
				if _, err := os.Stat(filepath.Join(o.Dir, "config.json")); err != nil {
					t.Fatalf("kill %d came before the run began: %v\n%s", i, err, c.Out.String())
				}
				if killed := strings.Contains(c.Out.String(), "killed") || strings.Contains(err.Error(), "killed"); !killed {
					t.Fatalf("kill %d: the cell ended with %v:\n%s", i, err, c.Out.String())
				}
				t.Logf("kill %d: rank %d at its pass %d (the cell instead: %v)", i, o.Rank, o.Passes, o.Cell)
				o.Resume = o.Dir
			}
			o.Passes = 0
			if r, err := runs.Open(o.Dir); err != nil || r.Result.State != runs.StateDone {
				if c, err := start(o); err != nil {
					t.Fatalf("%v\n%s", err, c.Out.String())
				}
			}
			killed, err := runs.Open(o.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(weights(t, killed), weights(t, whole)) {
				t.Error("the killed run has other weights than the undisturbed one")
			}
			if got, err := killed.Losses(); err != nil || !slices.Equal(got, losses) {
				t.Errorf("the killed run has other losses than the undisturbed one (%d and %d, %v)", len(got), len(losses), err)
			}
			a, err1 := os.ReadFile(whole.BestWeights())
			b, err2 := os.ReadFile(killed.BestWeights())
			if err := errors.Join(err1, err2); err != nil || !bytes.Equal(a, b) {
				t.Errorf("the killed run has other best weights than the undisturbed one: %v", err)
			}
			if got, want := evaluations(t, killed), evaluations(t, whole); got != want || want == "" {
				t.Errorf("the killed run recorded the evaluations\n%swant\n%s", got, want)
			}
			sameValues(t, "killed", killed, whole)
		})
	}
}

// evaluations returns what a run recorded at its evaluations, a line each.
func evaluations(t *testing.T, run *runs.Run) string {
	t.Helper()
	var out strings.Builder
	if err := run.Events(func(e runs.Event) {
		if e.Kind == runs.KindMetrics {
			fmt.Fprintln(&out, e.Epoch, e.Total, e.Values)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
