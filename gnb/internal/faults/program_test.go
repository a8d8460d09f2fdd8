//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/atomicfile"
	_ "github.com/graphnb/graphnb/multigpu"
)

// plan describes the actions of the processes of one run. It reaches them through their
// environment, so that the program's arguments, and with them the run's identity, do not depend on
// it.
type plan struct {
	Case
	Dir      string // directory of the run
	Resume   bool
	Restarts int
	// Struck names a file that a process creates just before the fault, so that the fault happens
	// only once. It is "" in a run without a fault.
	Struck string
	// Settle is the time to wait before the fault, until the other ranks wait for this one and the
	// launching process knows this rank's position.
	Settle time.Duration
}

// The run has two ranks, 2 epochs of 10 steps, and a checkpoint every third step. The fault comes
// at the eighth step, in the evaluation of the first epoch, or in the checkpoint after the sixth
// step.
const (
	epochs    = 2
	steps     = 10
	every     = 3
	faultStep = 7
	savedStep = 6
	dataset   = "planted?nodes=1500&features=64&classes=4&seed=5"
)

// linger returns the time by which a rank makes the others wait.
func (p plan) linger() time.Duration { return 4 * p.Settle }

// happened returns the name of the file that the test creates when it has done the part of a fault
// that no process of the run can do itself.
func (p plan) happened() string { return p.Struck + ".done" }

var planned = sync.OnceValue(func() (p plan) {
	_ = json.Unmarshal([]byte(os.Getenv("GNB_TEST_OPTIONS")), &p) // the variable is empty outside of cells
	return p
})

// hits reports whether the plan's fault comes at a stage of this rank: the victim, or rank 0 if the
// victim is the launcher.
func (p plan) hits(rank int, stage string) bool {
	return p.Stage == stage && p.Struck != "" && (rank == 1) == (p.Victim == Worker)
}

// strike makes the fault happen, once.
func (p plan) strike() {
	f, err := os.OpenFile(p.Struck, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	if p.Victim != Launcher {
		p.suffer()
		return
	}
	sig := syscall.SIGUSR1 // the launcher makes its other faults happen itself
	switch p.Fault {
	case Kill:
		sig = syscall.SIGKILL
	case Stop:
		sig = syscall.SIGSTOP
	case Panic:
		if os.Getenv("OMPI_COMM_WORLD_RANK") != "" {
			sig = syscall.SIGABRT // a C program such as mpirun fails by it
		}
	}
	_ = syscall.Kill(os.Getppid(), sig)
	time.Sleep(p.Settle)
}

// suffer makes the fault happen in this process.
func (p plan) suffer() {
	switch p.Fault {
	case Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(p.Settle) // until all threads have noticed the fault
	case Stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(p.Settle)
	case Cut, ShortCut: // the test cuts the network
		for start := time.Now(); !exists(p.happened()) && time.Since(start) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
	case Panic:
		panic("the fault that the test provokes")
	case Memory:
		_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: unix.RLIM_INFINITY})
		for {
			taken = append(taken, make([]byte, 64<<20))
		}
	case DiskRun:
		fill(p.filler(), 0)
	case DiskCheckpoint:
		fill(p.filler(), 40<<10)
	case Clock:
		step := func(by time.Duration) {
			now := func() time.Time { return time.Now().Round(0).Add(by) } // this clock lacks the monotonic reading
			clock.Store(&now)
		}
		step(time.Hour)
		time.Sleep(p.Settle)
		step(-time.Hour)
	}
}

// taken holds the memory that the fault Memory allocates.
var taken [][]byte

// filler returns the path of the file that fills the disk.
func (p plan) filler() string { return filepath.Join(filepath.Dir(p.Dir), "filler") }

// fill fills a disk with a file and leaves the given number of bytes free.
func fill(path string, leave int64) {
	f, err := os.Create(path)
	if err != nil {
		return
	}
	defer f.Close()
	for block := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(block)
	}
	if size, err := f.Seek(0, io.SeekCurrent); err == nil {
		_ = f.Truncate(size - leave)
	}
}

// later calls strike while the program's goroutine continues.
func (p plan) later() {
	go func() {
		time.Sleep(p.Settle)
		p.strike()
	}()
}

// clock is the clock of the supervisor and of the status page.
//
//go:linkname clock github.com/graphnb/graphnb/multigpu.clock
var clock atomic.Pointer[func() time.Time]

// picker picks the first five in-edges of a node. At the step of the fault it waits, so that the
// program waits for the batch when the fault comes.
type picker struct {
	rank  int
	fault *sync.Once
}

func (picker) Hops() int { return 2 }

func (k picker) Pick(h *gnb.Hop, _ int32, nbrs, out []int32) []int32 {
	if h.Epoch() == 0 && h.Step() == faultStep && planned().hits(k.rank, Sampling) {
		k.fault.Do(func() {
			time.Sleep(planned().Settle)
			planned().strike()
		})
	}
	for i := range min(len(nbrs), 5) {
		out = append(out, int32(i))
	}
	return out
}

// model is GraphSAGE with a function that is called before each layer.
type model struct {
	nn.SAGE
	before func()
}

func (m *model) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if m.before != nil {
		m.before()
	}
	return m.SAGE.Layer(f, i, b, h)
}

var models = gnb.Model("faults.model", func(s gnb.ModelConfig) *model { return &model{SAGE: *nn.NewSAGEModel(s)} })

var program = gnb.Program("faults.program", func(w *gnb.Worker, _ struct{}) error {
	p := planned()
	ds := w.Dataset()
	net := models.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 128, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, 1e-2)
	done := 0
	w.Keep("done", &done)
	if w.Rank() == 0 {
		defer atomicfile.Observe(func(o atomicfile.Op) {
			if p.Stage == Checkpoint && o.Kind == atomicfile.OpCreate && strings.Contains(o.Path, "step-0000000006") {
				if p.hits(0, Checkpoint) {
					time.Sleep(p.Settle)
					p.strike()
				} else {
					time.Sleep(p.linger())
				}
			}
		})()
	}
	if p.hits(w.Rank(), Start) {
		if !p.onDisk() { // rank 0 notices a full disk at its first step that writes
			time.Sleep(p.Settle)
		}
		p.strike()
	}
	pick := picker{w.Rank(), &sync.Once{}}
	for epoch := range w.Epochs(epochs) {
		for b := range w.Batches("train", gnb.Loader{Sampler: pick, Batch: 64, MaxSteps: steps}) {
			if p.Struck != "" && p.Stage == Sum && done == faultStep {
				if p.hits(w.Rank(), Sum) {
					p.later()
				} else {
					time.Sleep(p.linger()) // the victim waits in the sum during this time
				}
			}
			if done == savedStep && w.Rank() == 1 && p.hits(1, Checkpoint) {
				p.later() // while rank 0 writes the checkpoint
			}
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			done++
		}
		net.Model.before = nil
		if epoch == 0 && p.hits(w.Rank(), Evaluation) {
			net.Model.before = sync.OnceFunc(func() {
				time.Sleep(p.Settle)
				p.strike()
			})
		}
		m := w.Evaluate(net, gnb.FullNeighbors, "val")
		net.Model.before = nil
		w.SaveBest(net, m.Splits[0].Value())
	}
	return nil
})

// launch is the launching process of a run.
func launch(options []byte) error {
	p := planned()
	suffering := make(chan os.Signal, 1)
	signal.Notify(suffering, syscall.SIGUSR1)
	go func() {
		<-suffering
		p.suffer()
	}()
	ds, err := gnb.Load(context.Background(), dataset)
	if err != nil {
		return err
	}
	o := gnb.LaunchOptions{
		Data:            ds,
		Workers:         2,
		Threads:         1,
		Seed:            7,
		Device:          "cpu",
		CheckpointEvery: every,
		RunDir:          p.Dir,
		Restarts:        p.Restarts,
		Quiet:           true,
	}
	if p.Resume {
		o.Resume = p.Dir
	}
	_, err = gnb.Launch(context.Background(), program, struct{}{}, o)
	if errors.Is(err, gnb.ErrInterrupted) {
		os.Exit(75)
	}
	return err
}
