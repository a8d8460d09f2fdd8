// Command linkruns trains GraphNB on links of a given split, as bench/links_cora.py and
// bench/links_arxiv.py make them for GraphNB and PyG alike.
//
//	linkruns [flags] DATASET SPLIT
//
// SPLIT is a folder of files of little-endian int32, pairs of nodes one after the other: val and test
// (edges), val_neg and test_neg (negatives, equally many for each edge, in the order of the edges), and
// train (the edges to predict) unless all edges of the dataset but those of val and test are to be
// predicted. It prints a line of JSON: the metrics after the epochs of --eval, and the seconds of each
// epoch without evaluation.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
)

// args is the argument of the program.
type args struct {
	Split     string
	Model     string
	Sizes     gnb.ModelConfig
	FullGraph bool
	Fanouts   []int
	Batch     int
	Epochs    int
	Eval      []int
	LR        float64
	Source    bool // negatives have their edge's source
	Any       bool // negatives may be edges
	KeepEdges bool // a step's edges are among its messages
	ValEdges  bool // the test is measured with the edges of validation as messages
}

// edges reads a file of pairs; a file that is missing has none.
func edges(dir, name string) (e links.Edges, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	if len(b)%8 != 0 {
		return e, fmt.Errorf("linkruns: %s/%s has %d bytes, which are no pairs of int32", dir, name, len(b))
	}
	for ; len(b) > 0; b = b[8:] {
		e = e.Append(int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:])))
	}
	return e, nil
}

// read reads the split of a folder.
func read(ds *gnb.Dataset, dir string) (*links.Split, error) {
	var of [5]links.Edges
	for i, name := range []string{"train", "val", "val_neg", "test", "test_neg"} {
		var err error
		if of[i], err = edges(dir, name); err != nil {
			return nil, err
		}
	}
	s, err := links.GivenSplit(ds, of[1], of[3], links.SplitOptions{})
	if err != nil {
		return nil, err
	}
	if of[0].Len() > 0 {
		s.Train.Edges = of[0]
	}
	s.Val, s.Test = links.Part{Edges: of[1], Neg: of[2]}, links.Part{Edges: of[3], Neg: of[4]}
	return s, nil
}

var program = gnb.Program("linkruns", func(w *gnb.Worker, a args) error {
	split, err := read(w.Dataset(), a.Split)
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{
		Loader: gnb.Loader{Fanouts: a.Fanouts, Batch: a.Batch}, Negatives: links.NegativeOptions{BothEnds: !a.Source}, AnyNegatives: a.Any, KeepEdges: a.KeepEdges, ValMessages: a.ValEdges,
	})
	encoder, err := gnb.ModelByName(a.Model)
	if err != nil {
		return err
	}
	net := links.New(w, encoder, "dot", a.Sizes)
	opt := w.Adam(net, a.LR)
	for epoch := range w.Epochs(a.Epochs) {
		began := time.Now()
		if a.FullGraph {
			b := loader.Whole(epoch)
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
		} else {
			for b := range loader.Batches() {
				w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
			}
		}
		w.Result(fmt.Sprintf("seconds_%d", epoch+1), time.Since(began).Seconds())
		if slices.Contains(a.Eval, epoch+1) || epoch+1 == a.Epochs {
			for _, part := range []string{"val", "test"} {
				m := loader.Evaluate(net, part)
				for name, x := range map[string]float64{"auc": m.AUC, "ap": m.AP, "mrr": m.MRR} {
					w.Result(fmt.Sprintf("%s_%s_%d", part, name, epoch+1), x)
				}
			}
		}
	}
	return nil
})

func numbers(text string) (out []int, err error) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func main() {
	var a args
	var o gnb.LaunchOptions
	flag.StringVar(&a.Model, "model", "sage", "encoder")
	flag.IntVar(&a.Sizes.Hidden, "hidden", 64, "columns between layers")
	flag.IntVar(&a.Sizes.Out, "dim", 64, "columns of an embedding")
	flag.IntVar(&a.Sizes.Layers, "layers", 2, "number of layers")
	flag.BoolVar(&a.FullGraph, "full-graph", false, "one step per epoch over the whole graph")
	fanouts := flag.String("fanout", "10,10", "neighbours per hop, the seeds' first")
	flag.IntVar(&a.Batch, "batch", 1024, "edges per step")
	flag.IntVar(&a.Epochs, "epochs", 1, "number of epochs")
	eval := flag.String("eval", "", "epochs after which to evaluate, beside the last")
	flag.Float64Var(&a.LR, "lr", 0.01, "learning rate of Adam")
	flag.BoolVar(&a.Source, "keep-source", false, "negatives with the source of their edge")
	flag.BoolVar(&a.Any, "any-negatives", false, "negatives that may be edges")
	flag.BoolVar(&a.KeepEdges, "keep-edges", false, "the edges of a step among its messages")
	flag.BoolVar(&a.ValEdges, "val-messages", false, "the edges of validation as messages for the test")
	flag.Uint64Var(&o.Seed, "seed", 0, "random seed")
	flag.IntVar(&o.Threads, "threads", 0, "threads per worker")
	flag.Parse()
	if err := run(a, o, *fanouts, *eval); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(a args, o gnb.LaunchOptions, fanouts, eval string) (err error) {
	if flag.NArg() != 2 {
		return errors.New("linkruns: give a dataset and the folder of a split")
	}
	if a.Fanouts, err = numbers(fanouts); err != nil {
		return err
	}
	if a.Eval, err = numbers(eval); err != nil {
		return err
	}
	if a.Split, err = filepath.Abs(flag.Arg(1)); err != nil {
		return err
	}
	ctx := context.Background()
	ds, err := gnb.Load(ctx, flag.Arg(0))
	if err != nil {
		return err
	}
	defer ds.Close()
	a.Sizes.In = ds.FeatureDim()
	o.Data, o.Workers, o.Quiet, o.Resume, o.CheckpointEvery = ds, 1, true, gnb.Never, gnb.None
	r, err := gnb.Launch(ctx, program, a, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.Result.Values)
}
