package gnb

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/recorder"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// launched is a run in progress.
type launched struct {
	gpus  bool // a plan for GPUs, which need not be here
	whole bool // edges of weight 0 stay; see [TaskDef.Whole]
	o     LaunchOptions
	run   *runs.Run
	job   job
	files []*os.File
	// device is "cuda", "auto" to use GPUs if every worker can, or "" for the CPU.
	device  string
	ranks   int // of the launcher, 0 without one
	threads int // of the options; 0 means that each rank of a launcher takes its own share
	notes   []string
	lock    *runfile.DirLock // locks the run's directory
	check   dataset.CheckOnceOptions
	// former are the files of the finished run that this one resumes, until it has begun.
	former former
	// differs explains why an interrupted run is not resumed.
	differs string
}

// start runs a declared program.
func start(ctx context.Context, program string, args json.RawMessage, o LaunchOptions) (*runs.Run, error) {
	if multigpu.InWorker() {
		return nil, entry.ErrWorker
	}
	def, err := programs.Get(program)
	if err != nil {
		return nil, err
	}
	l := &launched{o: o, whole: def.whole}
	r, err := l.begin(ctx, program, args)
	if r == nil && err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("gnb: %w before it began", runs.ErrInterrupted)
	}
	return r, phrase.OneLine(err)
}

func (l *launched) begin(ctx context.Context, program string, args json.RawMessage) (*runs.Run, error) {
	o := l.o
	if err := l.options(); err != nil {
		return nil, err
	}
	if err := l.configure(program, args); err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.from(); err != nil {
		return nil, err
	}
	// The check comes first, for the plan reads the dataset; the copy of one in memory comes after the plan.
	d := l.o.Data // without edges of weight 0, so it can be in memory though o.Data is not
	inMemory := d != nil && !divided.Is(d) && !d.Stored()
	ready := l.data
	if inMemory {
		ready = func(ctx context.Context) error { return getdata.Ready(ctx, d, l.check, o.Quiet) }
	}
	if err := ready(ctx); err != nil {
		return nil, err
	}
	if o.Cluster.Nodes == 0 { // else other machines run it
		warning, err := fits(ctx, program, args, l.resolved())
		if err != nil {
			return nil, err
		}
		if warning != "" {
			l.note("%s", warning)
		}
	}
	if inMemory {
		if err := l.data(ctx); err != nil {
			return nil, err
		}
	}
	if !o.Scratch { // last, so that a run that cannot start leaves no directory
		if err := l.identify(ctx); err != nil {
			return nil, err
		}
		if o.Cluster.Nodes > 0 {
			return l.submit(ctx, o)
		}
		if err := l.directory(); err != nil {
			return nil, err
		}
	}
	return l.start(ctx)
}

// resolved are settings with their defaults filled in.
type resolved struct {
	LaunchOptions
	GPU     bool // the workers use GPUs
	Divided bool // workers ask each other for edges
	Disk    bool // features are read from disk
	// Here is the number of the workers that run on this machine, and First the rank of the first of them.
	Here, First int
}

// resolve fills in the defaults of settings, as a run does, or returns the error of the run. With gpus it does so as on a
// machine with a GPU for each worker. Whole is that of the task.
func resolve(o LaunchOptions, gpus, whole bool) (resolved, error) {
	l := &launched{o: o, gpus: gpus, whole: whole}
	err := l.options()
	return l.resolved(), err
}

func (l *launched) resolved() resolved {
	r := resolved{LaunchOptions: l.o, GPU: l.device != "", Divided: l.job.Divided, Disk: l.job.Plane.Features == feed.FeaturesOnDisk, Here: l.o.Workers}
	if p, err := multigpu.Launcher(); err == nil && p != nil {
		r.Here = max(1, p.LocalWorld)
	} else if c := l.o.Cluster; c.Nodes > 0 {
		if r.Here = c.Ranks() / c.Nodes; l.threads == 0 {
			r.Threads = entry.Threads(r.Here)
		}
	}
	return r
}

// options checks the options and fills in their defaults.
func (l *launched) options() error {
	o := &l.o
	if err := errors.Join(o.inBounds(), o.Cluster.Check(), runfile.CheckTags(o.Tags)); err != nil {
		return err
	}
	var err error
	if all := o.Data; !l.whole {
		var zeros int64
		if o.Data, zeros, err = all.WithoutZeroWeights(); err != nil {
			return err
		}
		if zeros > 0 {
			l.note("%d of %s have weight 0 and are left out: they are no messages, and nothing predicts them", zeros, phrase.Count(int(all.Edges()), "edge"))
		}
	}
	if l.job.Divided, err = feed.CheckTopology(o.Topology, o.Data); err != nil {
		return err
	}
	l.job.Plane = feed.PlaneOptions{Features: o.Features, Cache: o.Cache, CachePolicy: o.CachePolicy, Prefetch: o.Prefetch, GPUCache: o.GPUCache}
	if err := l.job.Plane.Check(o.Data); err != nil {
		return err
	}
	switch o.Precision = cmp.Or(o.Precision, "float32"); o.Precision {
	case "float32", "bf16", "tf32":
	default:
		return fmt.Errorf(`gnb: Precision is %q; it is "float32", "bf16" or, on GPUs, "tf32"`, o.Precision)
	}
	if o.ResumeChanged && (o.Resume == "" || o.Resume == Never) {
		return errors.New("gnb: ResumeChanged needs Resume, the directory of the run to resume")
	}
	switch o.Device = cmp.Or(o.Device, "auto"); o.Device {
	case "cpu", "auto", "cuda":
	default:
		return fmt.Errorf(`gnb: Device is %q; it is "auto", "cpu" or "cuda"`, o.Device)
	}
	if err := l.place(); err != nil {
		return err
	}
	if l.job.Plane.Features, err = l.job.Plane.PlaceFeatures(o.Data, l.device, l.note); err != nil {
		return err
	}
	if cores := parallel.CPUs(); o.Workers > cores && l.device == "" && l.ranks == 0 {
		l.note("%d workers share %s: more workers than cores make no step faster.", o.Workers, phrase.Count(cores, "core"))
	}
	if o.Precision == "tf32" && l.device == "" {
		return errors.New(`gnb: Precision "tf32" is arithmetic of GPUs, and this run is on the CPU; take "float32" or "bf16", or a machine with a GPU`)
	}
	if o.Precision == "bf16" && l.device == "" {
		how := map[string]string{
			"amx": "by AMX tiles", "avx512": "by AVX512-BF16", "rounded": "by rounding, for this processor has no instructions for it: slower than float32",
		}[gemm.BF16()]
		l.note("matrix products in bfloat16 %s", how)
	}
	if o.VirtualRanks, err = feed.VirtualOfParts(o.Data, o.Workers, o.VirtualRanks); err != nil {
		return err
	}
	l.threads, o.Threads = o.Threads, cmp.Or(o.Threads, entry.Threads(o.Workers))
	o.KeepCheckpoints = cmp.Or(o.KeepCheckpoints, 3)
	return nil
}

func (l *launched) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// deviceName returns the device's name in a run's configuration; a run that falls back to the CPU
// reports that later.
func deviceName(device string) string {
	if device == "" {
		return "cpu"
	}
	return "cuda"
}

// place chooses the number of workers and whether they use GPUs.
func (l *launched) place() (err error) {
	o, parts := &l.o, 0
	if divided.Is(o.Data) {
		parts = o.Data.Meta.Parts.Count
	}
	if l.gpus {
		if o.Workers, l.device = max(1, o.Workers, o.Cluster.Ranks()), "cuda"; o.Device == "cpu" {
			return errors.New(`gnb: Device is "cpu" in a plan for GPUs; leave Device out`)
		}
		return nil
	}
	o.Workers, l.device, l.ranks, err = device.Place(o.Workers, o.Cluster.Ranks(), o.Device, parts, l.note)
	return err
}

// configure describes the run to its workers.
func (l *launched) configure(program string, args json.RawMessage) error {
	o := &l.o
	now := time.Now()
	c := runs.Config{
		Program: program, Args: args, Seed: o.Seed, Workers: o.Workers, VirtualRanks: o.VirtualRanks, Precision: o.Precision,
		Threads: o.Threads, Device: deviceName(l.device), Version: Version, Go: runtime.Version(), CPU: saving.CPUClass(o.Precision == "bf16"), Created: now.UTC(),
		Title: o.Title, Tags: o.Tags, Notes: o.Notes,
	}
	if d := o.Data; d != nil {
		c.Dataset, c.DatasetSource, c.Nodes, c.Edges = d.Name(), d.Meta.Source, d.Nodes(), d.Edges()
		c.DatasetDir, c.SplitSet = d.Origin()
		c.FeatureNames = d.NamedFeatures()
		if m := d.Metric(); m != cmp.Or(d.Meta.Metric, dataset.MetricAccuracy) && !(program == nodes.Name() && saving.NamesMetric(args)) {
			c.Metric = m
		}
	}
	var id [2]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	c.ID = now.Format("20060102-150405") + "-" + strings.Trim(strings.ReplaceAll(program, "gnb.", ""), "./") + "-" + hex.EncodeToString(id[:])
	l.run = &runs.Run{Config: c}
	l.job = job{
		Program: program, Args: args, Seed: o.Seed, Virtual: o.VirtualRanks,
		computing:   computing{BF16: o.Precision == "bf16", TF32: o.Precision == "tf32", Device: l.device, FirstGPU: o.FirstGPU},
		jobData:     jobData{Divided: l.job.Divided, Plane: l.job.Plane},
		recordFiles: recordFiles{CheckpointEvery: o.CheckpointEvery, KeepCheckpoints: o.KeepCheckpoints},
	}
	return nil
}

// data checks the run's dataset and shares it with its workers: by its directory, or by its memory
// file if it is in memory.
func (l *launched) data(ctx context.Context) error {
	d := l.o.Data
	if d == nil {
		return nil
	}
	if m := d.Metric(); m != cmp.Or(d.Meta.Metric, dataset.MetricAccuracy) {
		l.job.Metric = m
	}
	if divided.IsFar(d) {
		if err := divided.CheckServers(d); err != nil {
			return err
		}
		l.job.Servers = d.Meta.Parts.Servers
	}
	f, err := getdata.Check(ctx, d, l.check, l.o.Quiet)
	if err != nil {
		return err
	}
	if f != nil {
		l.files = append(l.files, f)
		l.job.DataInMemory = true
		return nil
	}
	dir, err := filepath.Abs(d.Dir())
	l.job.DataDir, l.job.SplitSet = dir, d.SplitSet()
	return err
}

func (l *launched) close() {
	for _, f := range l.files {
		_ = f.Close() // workers have their own descriptors
	}
	l.lock.Unlock()
}

// start runs the workers to their end.
func (l *launched) start(ctx context.Context) (r *runs.Run, err error) {
	defer func() { err = l.endFormer(err) }()
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	rec, err := recorder.New(l.run, l.recorded(), l.o.FirstGPU, l.lock.Removed)
	if err != nil {
		return nil, err
	}
	endBoard, err := l.board(ctx)
	if err != nil {
		return l.run, errors.Join(err, rec.Close(err))
	}
	defer endBoard()
	err = saving.Explain(l.run, l.watched(ctx, rec), rec.Observe)
	if l.run.Dir != "" {
		l.run.Result.Weights = saving.SumsIn(l.run.Dir)
	}
	return l.run, errors.Join(err, rec.Close(err))
}

// watched runs the workers until their end, or until a file of the dataset turns out to be damaged.
func (l *launched) watched(ctx context.Context, rec *recorder.Recorder) error {
	d := l.o.Data
	if p, err := multigpu.Launcher(); err == nil && p != nil && p.LocalRank != 0 {
		d = nil // the first rank of the machine looks
	}
	ctx, end := getdata.Watch(ctx, d)
	err := l.runWorkers(ctx, rec)
	if damage := end(); damage != nil {
		return damage
	}
	return err
}

// recorded returns the options of the run's recorder: its display and its observer.
func (l *launched) recorded() recorder.Options {
	o := recorder.Options{Title: l.o.Title, Quiet: l.o.Quiet, Notes: l.notes}
	if l.o.Data != nil {
		o.Metric = tally.Metric(l.o.Data).Name
	}
	if l.o.Events != nil {
		o.Observe = l.event
	}
	return o
}

// event passes an event on to LaunchOptions.Events.
func (l *launched) event(e runs.Event) {
	switch e.Kind {
	case runs.KindStart, runs.KindEpoch, runs.KindLog, runs.KindDrawn, runs.KindMetrics, runs.KindMetric, runs.KindPrint, runs.KindCheckpoint, runs.KindRestart:
		l.o.Events(e)
	}
}

// board starts the TensorBoard export if it is enabled. Call end after the run's result is written. An
// export that cannot begin is an error, and one that fails later is reported and does not end the run.
func (l *launched) board(ctx context.Context) (end func(), err error) {
	if !l.o.TensorBoard || l.run.Dir == "" {
		return func() {}, nil
	}
	if err := runfile.RemoveBoards(l.run.Dir); err != nil {
		return nil, fmt.Errorf("gnb: %w", err)
	}
	run := &runs.Run{Dir: l.run.Dir, Config: l.run.Config} // a copy, because the recorder changes the run
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error)
	go func() { ended <- runs.Export(ctx, run, runs.ExportOptions{TensorBoard: run.Dir, Follow: true}) }()
	return func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "what is written for TensorBoard is not whole; gnb runs export writes it anew:", err)
		}
	}, nil
}
