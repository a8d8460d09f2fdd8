package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/linktask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

var embedCommand = cli.Command{Name: "embed", Summary: "learn embeddings of nodes by random walks, without labels", Run: runEmbed}

// embedFlags are the flags of "gnb embed".
type embedFlags struct {
	o     links.EmbedOptions
	model string
	hops  ranks.Fanouts
}

// noModel is the value of --model that learns a row for each node.
const noModel = "table"

// define makes the flags that determine the result, those of a run that gnb embed --resume RUN takes from it.
func (e *embedFlags) define(fs *flag.FlagSet) {
	o := &e.o
	fs.StringVar(&e.model, "model", noModel, "`model`: table (learned rows), or one of gnb train")
	fs.IntVar(&o.Dim, "dim", 128, "columns of an embedding")
	fs.IntVar(&o.Length, "length", 20, "steps of a walk")
	fs.IntVar(&o.PerNode, "walks", 10, "walks from each node in an epoch")
	fs.IntVar(&o.Window, "window", 5, "most steps between the nodes of a pair")
	fs.Float64Var(&o.P, "p", 1, "node2vec's p: above 1, walks return less")
	fs.Float64Var(&o.Q, "q", 1, "node2vec's q: above 1, walks stay near")
	fs.IntVar(&o.Negatives, "negatives", 1, "negatives for each pair")
	fs.StringVar(&o.NegativesFrom, "negatives-from", "uniform", "uniform, degree or degree75")
	fs.Var(&e.hops, "fanout", "neighbours per hop of a model: `15,full` (default 10)")
	fs.IntVar(&o.Layers, "layers", 0, "layers of a model (default 2, or one per fanout)")
	fs.IntVar(&o.Hidden, "hidden", 0, "width of a model's hidden layers (default 64)")
	fs.IntVar(&o.Batch, "batch", 256, "walks per step over all workers")
	fs.Float64Var(&o.LR, "lr", 0.01, "learning rate of Adam")
	fs.IntVar(&o.Epochs, "epochs", 10, "number of epochs")
	fs.IntVar(&o.Workers, "workers", 0, "number of worker processes (default one)")
	fs.IntVar(&o.VirtualRanks, "virtual-ranks", 0, "virtual ranks per worker (default 1)")
	fs.StringVar(&o.Device, "device", "auto", "auto, cpu or cuda")
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	fs.BoolVar(&o.Digest, "digest", false, "also compute the digest of all samples")
}

// runFlags makes the flags that change no result.
func (e *embedFlags) runFlags(fs *flag.FlagSet) {
	o := &e.o
	fs.IntVar(&o.Threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	fs.IntVar(&o.CheckpointEvery, "checkpoint-every", 0, "`steps` between checkpoints, -1 for none (default one per minute)")
	fs.IntVar(&o.KeepCheckpoints, "keep", 3, "number of checkpoints to keep")
	fs.IntVar(&o.Restarts, "restarts", 0, "restarts of failed workers from the last checkpoint (default none)")
	fs.BoolVar(&o.TensorBoard, "tensorboard", false, "also write TensorBoard files during the run")
	resumeFlags(fs, &o.TrainOptions)
}

// embedResult is the result of "gnb embed".
type embedResult struct {
	Nodes        int      `json:"nodes"`
	Columns      int      `json:"columns"`
	Loss         *float64 `json:"loss,omitempty"`
	Epochs       int      `json:"epochs"`
	Steps        int64    `json:"steps"`
	Seconds      float64  `json:"seconds"`
	Digest       string   `json:"digest,omitempty"`
	Workers      int      `json:"workers"`
	VirtualRanks int      `json:"virtual_ranks"`
	Run          string   `json:"run"`
	Out          string   `json:"out,omitempty"`
	IDs          string   `json:"ids,omitempty"`
}

func runEmbed(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("[DATASET]", "Learns an embedding of each node from random walks, without labels: DeepWalk, with --p and --q node2vec, and with --model sage GraphSAGE without labels. The run's directory gets embeddings.npy, float32 [nodes, columns]; --out FILE.npy also writes it there, and the ids of the rows beside it. With --resume RUN, DATASET and all flags that are not given are the run's own.")
	ranks.InsecureFlag(fs)
	var e embedFlags
	e.define(fs)
	e.runFlags(fs)
	file := fs.String("out", "", "`file` of the embeddings, .npy or CSV")
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if *file != "" && !strings.HasSuffix(*file, ".npy") && !strings.HasSuffix(*file, ".csv") {
		return cli.Usagef("--out is %q; its name ends in .npy or .csv", *file)
	}
	old, err := resumedRun(&e.o.TrainOptions)
	if err != nil {
		return err
	}
	if old != nil {
		if err := e.take(fs, old); err != nil {
			return err
		}
	}
	spec, err := datasetOf(rest, old)
	if err != nil {
		return err
	}
	if err := e.finish(fs); err != nil {
		return err
	}
	ds, err := options.Load(ctx, out, spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	e.o.Events = func(ev runs.Event) { trainEvent(out, ev) }
	e.o.Quiet = out.JSON
	run, err := links.Embed(ctx, ds, e.o)
	if err != nil {
		return err
	}
	x, err := links.Embeddings(run)
	if err != nil {
		return err
	}
	r := embedResult{
		Nodes: x.Rows, Columns: x.Cols, Loss: finite(run.Loss()), Epochs: run.Result.Epochs, Steps: run.Result.Steps, Seconds: run.Result.Seconds,
		Digest: run.Result.Text["digest"], Workers: run.Config.Workers, VirtualRanks: run.Config.VirtualRanks, Run: run.Dir, Out: *file,
	}
	if *file != "" {
		if r.IDs, err = writeEmbeddings(*file, x); err != nil {
			return err
		}
	}
	out.Result(r)
	out.Printf("%s\n", run)
	return nil
}

// finish sets the options that depend on several flags.
func (e *embedFlags) finish(fs *flag.FlagSet) error {
	if err := cli.NotZero(fs, "dim", "length", "walks", "window", "p", "q", "negatives", "layers", "hidden", "batch", "lr", "epochs", "virtual-ranks", "keep"); err != nil {
		return err
	}
	if e.model == noModel {
		var err error
		fs.Visit(func(f *flag.Flag) {
			if f.Name == "fanout" || f.Name == "layers" || f.Name == "hidden" {
				err = cli.Usagef("--%s is for a model with layers; add --model, as in --model sage", f.Name)
			}
		})
		return err
	}
	m, err := gnb.ModelByName(e.model)
	if err != nil {
		return err
	}
	e.o.Model = m
	layers := e.o.Layers
	if layers == 0 {
		layers = 2
	}
	e.o.Fanouts = e.hops.Hops(min(layers, 1<<10))
	return nil
}

// take sets the flags that the user did not give to those of a run.
func (e *embedFlags) take(fs *flag.FlagSet, run *runs.Run) error {
	model, had, err := links.EmbedOptionsOf(run)
	if err != nil {
		return err
	}
	values := flag.NewFlagSet("run", flag.ContinueOnError)
	values.SetOutput(io.Discard)
	var their embedFlags
	their.define(values)
	their.o, their.model = had, model
	if model != noModel {
		their.hops = ranks.Fanouts{List: had.Fanouts}
	}
	given := givenFlags(fs, had.Device, [2]string{"layers", "fanout"})
	return setFrom(fs, values, run, func(f *flag.Flag) bool {
		text := f.Value.String() // 0 means the default
		return !given[f.Name] && text != "0" && text != fs.Lookup(f.Name).DefValue
	})
}

// writeEmbeddings writes embeddings to a file: CSV with the ids of the nodes in its first column, or an array,
// with the ids of its rows in a second one, whose name it returns.
func writeEmbeddings(path string, x *dataset.Matrix) (ids string, err error) {
	if strings.HasSuffix(path, ".csv") {
		return "", linktask.WriteEmbeddings(path, x)
	}
	ids = strings.TrimSuffix(path, ".npy") + ".ids.npy"
	rows := make([]int32, x.Rows)
	for v := range rows {
		rows[v] = int32(v)
	}
	return ids, errors.Join(dataset.WriteNPY(path, x.Rows, x.Cols, x.F32), dataset.WriteIDs(ids, rows))
}
