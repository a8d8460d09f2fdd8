package gnb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu"
)

func init() {
	multigpu.Handle(work)
	entry.HandleJob(runJob)
	entry.EndWithKernel()
}

// work is the main function of a worker: it runs the job's program once.
func work(p *multigpu.Process) (err error) {
	p.Stage(runfile.StageStart)
	w := &Worker{p: p, comm: p.Comm, threads: p.Threads}
	if err := p.Job(&w.job); err != nil {
		return err
	}
	w.report.out.open(p.EmitLines, w.job.RunDir, nil)
	defer entry.BoundGarbage()()
	done := make(chan struct{})
	defer close(done)
	if p.Rank == 0 {
		go w.watchStop(done)
	}
	defer func() {
		// Write the metrics and best weights even if the program failed.
		if e := w.settle(); !errors.Is(err, e) {
			err = errors.Join(err, e)
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			if err = endOf(r); err == nil {
				panic(entry.Placed{Value: r, At: entry.CallSite()}) // a bug or the user's own panic: multigpu reports it with its stack
			}
		}
	}()
	def, err := programs.Get(w.job.Program)
	if err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	ended := false // without an error, and without a panic, which Worker.Fail is too
	defer func() {
		if err = errors.Join(err, device.Close(w.gpu)); err == nil && ended {
			// After a failure goroutines may still read them for other ranks, and the process ends.
			err = errors.Join(w.feed.parts.Close(), w.feed.fetcher.Close())
		}
	}()
	stop, err := entry.Profile(p.Rank)
	if err != nil {
		return err
	}
	defer stop()
	p.Stage(runfile.StageProgram)
	// A fault in mapped memory is an error naming the file, wherever the program
	// touches it.
	if err := mapped.Guard(func() error { return def.run(w, w.job.Args) }); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	ended = true
	// The last sum on one rank's GPU may still read another rank's memory.
	if w.gpu != nil && w.World() > 1 {
		return w.comm.Barrier(w.site("end"))
	}
	return nil
}

// endOf returns the error in a panic that comes from a Worker method, or from an operation misused
// outside a forward pass (the loss, a network's sizes), with the program's source line. It is nil
// for other panics.
func endOf(r any) error {
	if s, ok := r.(stopped); ok {
		return s.err
	}
	err, ok := r.(error)
	if !ok {
		return nil
	}
	_, misused := errors.AsType[*tensor.Error](err)
	_, failed := errors.AsType[*ops.Failure](err) // a device failed to return a block's arrays
	if !misused && !failed {
		return nil
	}
	return fmt.Errorf("gnb: at %s: %w", entry.CallSite(), err)
}

// open opens the job's dataset, device and checkpoint.
func (w *Worker) open() error {
	var err error
	if w.ds, err = w.job.Open(w.p.Files()); err != nil {
		return err
	}
	if w.feed.parts, err = feed.NewParts(w.ds, w.p.Rank, w.p.World, w.job.Virtual); err != nil {
		return err
	}
	room := func() error {
		_, err := fits(context.Background(), w.job.Program, w.job.Args, w.job.on(w.p, w.ds))
		return err
	}
	if err := entry.Compare(w.p, w.site("compare machines"), w.ds, w.job.DataDir != "", saving.CPUClass(w.job.BF16), room); err != nil {
		return err
	}
	if w.p.Rank == 0 && w.job.RunDir != "" {
		metrics, err := atomicfile.OpenLog(filepath.Join(w.job.RunDir, runfile.Metrics), 0o644)
		if err != nil {
			return fmt.Errorf("gnb: opening the run's metrics: %w", err)
		}
		w.report.out.open(w.p.EmitLines, w.job.RunDir, metrics)
	}
	if err := w.openSaving(); err != nil {
		return err
	}
	if err := w.openDevice(); err != nil {
		return err
	}
	w.feed.fetcher, err = feed.NewFetcher(w.team(), w.feed.parts, w.job.Plane, feed.Place{
		Machine: w.p.Machine, LocalRank: w.p.LocalRank, LocalWorld: w.p.LocalWorld, Device: func() feed.Device { return device.Fed(w.gpu, w.hostFeeds()) }, Note: w.Printf,
	})
	return err
}

// book returns the book of a divided dataset, else nil.
func (w *Worker) book() *divided.Book {
	if w.feed.parts == nil {
		return nil
	}
	return w.feed.parts.Book
}

// finish ends the program: it waits for every rank, and rank 0 writes the final weights.
func (w *Worker) finish() error {
	w.flush(true)
	w.check(w.report.out.sendLater())
	if w.digest != nil && w.p.Rank == 0 {
		w.reportDigest(w.digest)
	}
	w.reportProof()
	if err := w.comm.Barrier(w.site("end of program " + w.job.Program)); err != nil {
		return err
	}
	if err := w.team().End(); err != nil {
		return err
	}
	w.lastCheckpoint()
	if w.p.Rank != 0 && !w.tablesApart() {
		return nil
	}
	if err := w.toHost(); err != nil {
		return err
	}
	if err := w.checkNetworks(); err != nil || w.job.RunDir == "" {
		return err
	}
	w.stage(runfile.StageSave)
	if w.p.Rank == 0 {
		if err := errors.Join(w.recordChange(), w.settle()); err != nil {
			return err
		}
	}
	for _, n := range w.nets {
		if err := n.write(filepath.Join(w.job.RunDir, n.saved().File("model"))); err != nil {
			return fmt.Errorf("gnb: writing the final weights: %w; make room, and resume the run", err)
		}
	}
	return nil
}
