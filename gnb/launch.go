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
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/gemm"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// LaunchOptions configure a run of a program. The zero value runs one worker per GPU, or one
// worker on the CPU if there is no GPU.
type LaunchOptions struct {
	// Data is the dataset that [Worker.Dataset] returns on every rank; it is shared, not copied.
	Data *Dataset `json:"-"`
	// Workers is the number of worker processes; 0 means the value of the environment variable
	// GNB_WORKERS, else one per GPU, else one. The maximum is 64, or eight per core if that is
	// more. Under a launcher (Slurm, MPI, torchrun) each rank is a worker, and Workers is 0.
	Workers int
	// VirtualRanks is the number of virtual ranks per worker; 0 means 1 or, if the data is divided
	// into parts, one per part. Runs with the same Workers × VirtualRanks have the same weights to the bit.
	VirtualRanks int
	// Threads is the number of threads per worker; 0 means an even share of the CPUs.
	Threads int
	// Device is "auto" (the default), "cpu" or "cuda". Only auto falls back.
	Device string
	// FirstGPU is the GPU of rank 0; 0 means the first one. The next ranks use the following GPUs,
	// and the first one after the last. Set different values for concurrent runs.
	FirstGPU int
	// Precision of the matrix products of training is "float32" (the default) or "bf16": factors
	// rounded to bfloat16 and their products summed in float32, which is faster on processors with
	// instructions for it (the run prints the method). Weights, optimiser and evaluation stay
	// float32. "tf32" works on GPUs only: factors rounded to 10 bits after the point.
	Precision string
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
	// Topology is where the edges of a divided dataset are: "replicated" (the default) maps the whole
	// graph in each worker, and with "divided" workers have their parts' edges and ask each other.
	Topology string
	// RunDir is the run's directory, by default a new one in [runs.Dir].
	RunDir string
	// Resume is the directory of a run to resume, in place. It must have the same data, code,
	// arguments, seed and precision, otherwise the error names the difference. The number of
	// workers and the device may differ; the run reports this. By default the last interrupted run
	// in [runs.Dir] with the same settings is resumed; if its settings differ, the run reports the
	// difference and starts from the beginning. [Never] always starts a new run.
	Resume string
	// ResumeChanged resumes the run of Resume even if its data, code or settings differ. The new
	// settings, including the learning rate, apply from then on, and the run's config.json lists
	// each change with its time and step.
	ResumeChanged bool
	// CheckpointEvery is the number of steps between checkpoints; 0 means one per minute, and
	// [None] no checkpoint.
	CheckpointEvery int
	// KeepCheckpoints is the number of checkpoints to keep; 0 means 3.
	KeepCheckpoints int
	// Restarts is how often failed workers are started again from the last checkpoint; 0 means
	// never. The second failure of a rank makes the workers fewer, and an error of the program ends
	// the run: see [multigpu.Restarts] for the rules. The weights are those of a run without a
	// failure, to the bit.
	Restarts int
	// TensorBoard also writes the run's metrics for TensorBoard, into the run's directory during
	// the run: "tensorboard --logdir runs" shows all such runs. See [runs.Export] for what is
	// written, and for runs without it.
	TensorBoard bool
	// Quiet shows nothing.
	Quiet bool
	// Title is the panel's title, by default the program and the dataset.
	Title string
	// Events is called with each event of the run, one call at a time: the kinds of event Start,
	// Epoch, Log, Metrics, Print, Checkpoint and Restart.
	Events func(runs.Event) `json:"-"`
	// StallAfter is the longest time that a rank may stay in one stage while the others wait for
	// it; then the run fails. 0 means 5 minutes, and a negative value no limit.
	StallAfter time.Duration

	// Cluster makes the run a job of Slurm, with one worker per rank. The run's directory, and the
	// dataset's, must be on a file system that all machines share. An interrupt makes the job write a
	// checkpoint and end; launching the same run again follows its job, or resumes it as a new one.
	Cluster Slurm

	checkAlways int64 // dataset.CheckOnceOptions.Always
}

// Never is for LaunchOptions.Resume: always start a new run.
const Never = "never"

// job is the configuration that a worker is started with.
type job struct {
	Program         string          `json:"program"`
	Args            json.RawMessage `json:"args"`
	Seed            uint64          `json:"seed"`
	Virtual         int             `json:"virtual"`
	Divided         bool            `json:"divided,omitempty"` // ranks ask each other for edges
	BF16            bool            `json:"bf16,omitempty"`
	TF32            bool            `json:"tf32,omitempty"`
	Device          string          `json:"device,omitempty"` // "auto" or "cuda"; "" for the CPU
	FirstGPU        int             `json:"first_gpu,omitempty"`
	DataDir         string          `json:"data_dir,omitempty"`
	SplitSet        int             `json:"split_set,omitempty"` // split of the dataset in DataDir
	DataInMemory    bool            `json:"data_in_memory,omitempty"`
	RunDir          string          `json:"run_dir,omitempty"`
	Checkpoint      string          `json:"checkpoint,omitempty"`
	Handed          bool            `json:"handed,omitempty"` // the checkpoint is the last of the run's files
	CheckpointEvery int             `json:"checkpoint_every"`
	KeepCheckpoints int             `json:"keep_checkpoints"`
	RunID           string          `json:"run_id,omitempty"`
	Identity        string          `json:"identity,omitempty"` // identity of the run's configuration
	Changed         bool            `json:"changed,omitempty"`  // changed since the checkpoint
	Config          json.RawMessage `json:"config,omitempty"`   // new configuration of a run resumed with changes; rank 0 records it
}

// launched is a run in progress.
type launched struct {
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
	// differs explains why an interrupted run is not resumed.
	differs string
}

// launch runs a program; keep tells whether the run has a directory.
func launch(ctx context.Context, program string, args json.RawMessage, o LaunchOptions, keep bool) (*runs.Run, error) {
	if multigpu.InWorker() {
		return nil, entry.ErrWorker
	}
	if _, err := programs.Get(program); err != nil {
		return nil, err
	}
	l := &launched{o: o}
	if err := l.options(); err != nil {
		return nil, err
	}
	if err := l.configure(program, args); err != nil {
		return nil, err
	}
	defer l.close()
	if err := l.data(ctx); err != nil {
		return nil, err
	}
	if keep { // last, so that a run that cannot start leaves no directory
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

// options checks the options and fills in their defaults.
func (l *launched) options() error {
	o := &l.o
	if err := errors.Join(o.inBounds(), o.Cluster.Check()); err != nil {
		return err
	}
	var err error
	if l.job.Divided, err = feed.CheckTopology(o.Topology, o.Data); err != nil {
		return err
	}
	if o.Device, err = device.ForParts(o.Data, o.Device, l.note); err != nil {
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
	if cores := runtime.NumCPU(); o.Workers > cores && l.device == "" && l.ranks == 0 {
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
	o := &l.o
	o.Workers, l.device, l.ranks, err = device.Place(o.Workers, o.Cluster.Ranks(), o.Device, l.note)
	return err
}

// configure describes the run to its workers.
func (l *launched) configure(program string, args json.RawMessage) error {
	o := &l.o
	now := time.Now()
	c := runs.Config{
		Program: program, Args: args, Seed: o.Seed, Workers: o.Workers, VirtualRanks: o.VirtualRanks, Precision: o.Precision,
		Threads: o.Threads, Device: deviceName(l.device), Version: Version, Go: runtime.Version(), CPU: saving.CPUClass(o.Precision == "bf16"), Created: now.UTC(),
	}
	if d := o.Data; d != nil {
		c.Dataset, c.DatasetDir, c.DatasetSource = d.Name(), d.Dir(), d.Meta.Source
		c.Nodes, c.Edges, c.SplitSet = d.Nodes(), d.Edges(), d.SplitSet()
	}
	var id [2]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	c.ID = now.Format("20060102-150405") + "-" + strings.Trim(strings.ReplaceAll(program, "gnb.", ""), "./") + "-" + hex.EncodeToString(id[:])
	l.run = &runs.Run{Config: c}
	l.job = job{
		Divided: l.job.Divided, Program: program, Args: args, Seed: o.Seed, Virtual: o.VirtualRanks, BF16: o.Precision == "bf16", TF32: o.Precision == "tf32", Device: l.device, FirstGPU: o.FirstGPU,
		CheckpointEvery: o.CheckpointEvery, KeepCheckpoints: o.KeepCheckpoints,
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
	f, err := getdata.Check(ctx, d, dataset.CheckOnceOptions{Always: l.o.checkAlways}, l.o.Quiet)
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
func (l *launched) start(ctx context.Context) (*runs.Run, error) {
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	rec, err := runs.NewRecorder(l.run, l.recorded())
	if err != nil {
		return nil, err
	}
	endBoard, err := l.board()
	if err != nil {
		return l.run, errors.Join(err, rec.Close(err))
	}
	defer endBoard()
	err = l.typed(saving.Explain(l.run, l.runWorkers(ctx, rec), rec))
	if l.run.Dir != "" {
		l.run.Result.Weights = saving.SumsIn(l.run.Dir)
	}
	return l.run, errors.Join(err, rec.Close(err))
}

// recorded returns the options of the run's recorder: its display and its observers.
func (l *launched) recorded() runs.RecorderOptions {
	o := runs.RecorderOptions{Title: l.o.Title, Quiet: l.o.Quiet, FirstGPU: l.o.FirstGPU, Notes: l.notes, Removed: l.lock.Removed}
	if l.o.Data != nil {
		o.Metric = tally.Metric(l.o.Data)
	}
	if l.o.Events != nil {
		o.Observer = reports(l.o.Events)
	}
	return o
}

// reports is the observer that calls LaunchOptions.Events.
type reports func(runs.Event)

func (f reports) Observe(e runs.Event) {
	switch e.Kind {
	case runs.KindStart, runs.KindEpoch, runs.KindLog, runs.KindMetrics, runs.KindPrint, runs.KindCheckpoint, runs.KindRestart:
		f(e)
	}
}

// board starts the TensorBoard export if it is enabled. An export that fails is reported and does
// not end the run.
func (l *launched) board() (end func(), err error) {
	if !l.o.TensorBoard || l.run.Dir == "" {
		return func() {}, nil
	}
	stop, err := runs.TensorBoard(l.run)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, "what is written for TensorBoard is not whole; gnb runs export writes it anew:", err)
		}
	}, nil
}
