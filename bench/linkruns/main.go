// Command linkruns trains GraphNB on links of a given split, as bench/links_cora.py and
// bench/links_arxiv.py make them for GraphNB and PyG alike.
//
//	linkruns [flags] DATASET SPLIT
//
// SPLIT is a folder of files of little-endian int32, pairs of nodes one after the other: val and test
// (edges), and val_neg and test_neg (negatives, equally many for each edge, in the order of the edges).
// Optional files are train (the edges to predict, otherwise all but those of val and test), disjoint
// (training edges that are no messages in training) and held (edges to keep from training, beside val and
// test). It prints a line of JSON: the metrics after the epochs of --eval, and the seconds and
// the processor time of each epoch without evaluation.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/graphops"
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
	Known     bool // evaluation with all edges known before a part as messages
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
	of := map[string]links.Edges{}
	for _, name := range []string{"train", "val", "val_neg", "test", "test_neg", "disjoint", "held"} {
		e, err := edges(dir, name)
		if err != nil {
			return nil, err
		}
		of[name] = e
	}
	s, err := links.GivenSplit(ds, of["val"].Join(of["held"]), of["test"], links.SplitOptions{})
	if err != nil {
		return nil, err
	}
	if e := of["train"]; e.Len() > 0 {
		s.Train.Edges = e
	}
	if e := of["disjoint"]; e.Len() > 0 {
		gone, err := graphops.FromEdges(ds.Nodes(), e.Src, e.Dst, graphops.BuildOptions{Undirected: s.Undirected})
		if err != nil {
			return nil, err
		}
		if s.Message, err = s.Training.Without(gone, 0); err != nil {
			return nil, err
		}
	}
	s.Val, s.Test = links.Part{Edges: of["val"], Neg: of["val_neg"]}, links.Part{Edges: of["test"], Neg: of["test_neg"]}
	return s, nil
}

var program = gnb.Program("linkruns", func(w *gnb.Worker, a args) error {
	split, err := read(w.Dataset(), a.Split)
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{
		Loader: gnb.Loader{Fanouts: a.Fanouts, Batch: a.Batch}, Negatives: links.NegativeOptions{BothEnds: !a.Source}, AnyNegatives: a.Any, KeepEdges: a.KeepEdges, KnownMessages: a.Known,
	})
	encoder, err := gnb.ModelByName(a.Model)
	if err != nil {
		return err
	}
	net := links.New(w, encoder, "dot", a.Sizes)
	opt := w.Adam(net, a.LR)
	for epoch := range w.Epochs(a.Epochs) {
		began, spent := time.Now(), processor()
		if a.FullGraph {
			b := loader.Whole(epoch)
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
		} else {
			for b := range loader.Batches() {
				w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
			}
		}
		w.Result(fmt.Sprintf("seconds_%d", epoch+1), time.Since(began).Seconds())
		w.Result(fmt.Sprintf("cpu_seconds_%d", epoch+1), processor()-spent)
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

// processor returns the seconds of processor time that this process has used, in steps of 1/100 s.
func processor() float64 {
	b, err := os.ReadFile("/proc/self/stat")
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // after "PID (NAME)"
	if err != nil || len(fields) < 13 {
		return math.NaN()
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

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
	flag.BoolVar(&a.Known, "known-messages", false, "evaluation with all edges known before a part as messages")
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
	o.Data, o.Workers, o.Quiet, o.Resume, o.CheckpointEvery = ds, 1, true, gnb.Never, -1
	r, err := gnb.Launch(ctx, program, a, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.Result.Values)
}
