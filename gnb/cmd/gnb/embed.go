package main

import (
	"context"
	"errors"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

var embedCommand = cli.Command{Name: "embed", Summary: "learn embeddings of nodes by random walks, without labels", Run: runEmbed}

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
	var o links.EmbedOptions
	options.Bind(fs, &o)
	options.Defaults(fs, map[string]string{"batch": "256"})
	file := fs.String("out", "", "`file` of the embeddings, .npy or CSV")
	old, err := resumedRun(args)
	if err != nil {
		return err
	}
	rest, err := out.Parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if *file != "" && !strings.HasSuffix(*file, ".npy") && !strings.HasSuffix(*file, ".csv") {
		return cli.Usagef("--out is %q; its name ends in .npy or .csv", *file)
	}
	if err := checkResume(&o.LaunchOptions); err != nil {
		return err
	}
	if old != nil {
		had, err := links.EmbedOptionsOf(old)
		if err != nil {
			return err
		}
		options.Take(fs, &o, &had)
	}
	options.SpreadFanouts(fs, o.Layers)
	spec, err := datasetOf(rest, old)
	if err != nil {
		return err
	}
	ds, err := options.Load(ctx, out, spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Events = func(ev runs.Event) { trainEvent(out, ev) }
	o.Quiet = out.JSON
	run, err := links.Embed(ctx, ds, o)
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

// writeEmbeddings writes embeddings to a file: CSV with the ids of the nodes in its first column, or an array,
// with the ids of its rows in a second one, whose name it returns.
func writeEmbeddings(path string, x *dataset.Matrix) (ids string, err error) {
	if strings.HasSuffix(path, ".csv") {
		return "", writeEmbeddingsCSV(path, x)
	}
	ids = strings.TrimSuffix(path, ".npy") + ".ids.npy"
	rows := make([]int32, x.Rows)
	for v := range rows {
		rows[v] = int32(v)
	}
	return ids, errors.Join(dataset.WriteNPY(path, x.Rows, x.Cols, x.F32), dataset.WriteIDs(ids, rows))
}
