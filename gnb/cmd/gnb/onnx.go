package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/onnx"
	"github.com/graphnb/graphnb/gnb/predict"
	graph "github.com/graphnb/graphnb/graphops/onnx"
)

var onnxCommand = cli.Command{Name: "onnx", Summary: "write a trained run's network as an ONNX model", Run: runONNX}

const onnxHelp = `
Writes the forward pass of a trained run as an ONNX model, for ONNX Runtime in Python, C#, Java or a browser. The model computes a
sampled block: its inputs are the features of nodes and the edges of each layer, with free numbers of both; its outputs are the task's,
logits and probabilities or numbers in the unit of the targets. It prints both. The names of classes and features are in the file's
metadata. In a run of whole graphs the inputs are the nodes and edges of any number of graphs.

--example FILE.npz writes inputs for the nodes NODE, by their ids, and the answers of gnb predict for comparison, as
arrays of NumPy; for graphs, by their numbers.`

func runONNX(ctx context.Context, args []string, out *cli.Output) (err error) {
	fs := out.Flags("RUN [NODE ...]", onnxHelp)
	var (
		o    predict.Options
		hops ranks.Fanouts
	)
	data := fs.String("dataset", "", "`dataset` to take names and examples from (default the run's)")
	file := fs.String("out", "", "`file` to write (default RUN.onnx)")
	fs.StringVar(file, "o", "", "short for --out")
	example := fs.String("example", "", "`file` for inputs of the nodes, .npz")
	fs.Var(&hops, "fanout", "example: neighbours per hop, `10,10` (default all)")
	fs.Uint64Var(&o.Seed, "seed", 0, "example: random `seed` of the drawn neighbours")
	fs.BoolVar(&o.Final, "final", false, "use the final weights instead of the best ones")
	fs.IntVar(&o.Layer, "layer", 0, "hidden `layer` to make the output, from 1")
	options.Verify(out, fs)
	rest, err := out.Parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	nodes := rest[1:]
	switch {
	case *example != "" && len(nodes) == 0:
		return cli.Usagef("--example %s is of nodes, and none is given; name some behind the run", *example)
	case *example == "" && len(nodes) > 0:
		return cli.Usagef("nodes are given, and --example is missing, the file for their inputs; give it, or leave the nodes out")
	}
	setPredict(&o, hops, out)
	run, ds, err := subject{}.open(ctx, out, rest[0], *data)
	if err != nil {
		return err
	}
	defer ds.Close()
	e, err := onnx.Export(ctx, run, ds, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if *file == "" {
		*file = filepath.Base(run.Config.ID) + ".onnx"
	}
	var x *onnx.Example
	if *example != "" {
		if x, err = e.Example(ctx, nodes...); err != nil {
			return err
		}
	}
	if err := e.WriteFile(*file); err != nil {
		return err
	}
	if x != nil {
		if err := x.WriteFile(*example); err != nil {
			return err
		}
	}
	out.Printf("%s\n%s\n", *file, e)
	out.Result(map[string]any{"model": *file, "example": *example, "inputs": names(e.Inputs), "outputs": names(e.Outputs)})
	return nil
}

func names(values []graph.Value) (all []string) {
	for _, v := range values {
		all = append(all, v.Name)
	}
	return all
}
