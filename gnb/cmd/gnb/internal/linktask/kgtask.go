package linktask

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// decodersOfTriples are the decoders of package kg.
var decodersOfTriples = []string{"distmult", "complex", "transe", "rotate", "conve"}

// ofTriples reports whether the decoder scores triples of a knowledge graph.
func (l *Flags) ofTriples() bool { return slices.Contains(decodersOfTriples, l.o.Decoder) }

// flagsOfTriples are the flags of training, and of links, that kg.Train takes; the others belong to graph
// networks or to splits of edges.
var flagsOfTriples = []string{
	"task", "decoder", "dim", "loss", "negatives", "margin", "metric", "smoothing", "n3", "batch", "batch-per-worker", "epochs", "lr", "weight-decay", "clip",
	"dropout", "eval", "eval-every", "best-by", "patience", "workers", "virtual-ranks", "threads", "device", "precision", "seed", "checkpoint-every", "keep",
	"restarts", "tensorboard", "resume", "resume-changed", "run", "json", "insecure",
}

// trainTriples trains on the triples of a knowledge graph.
func (l *Flags) trainTriples(ctx context.Context, ds *dataset.Dataset, o gnb.TrainOptions, given map[string]bool) (*runs.Run, error) {
	var err error
	l.fs.Visit(func(f *flag.Flag) {
		if err == nil && !slices.Contains(flagsOfTriples, f.Name) {
			err = fmt.Errorf("--%s does not apply to --decoder %s, which scores triples without a graph network", f.Name, l.o.Decoder)
		}
	})
	if err != nil {
		return nil, err
	}
	o.Layers, o.Hidden, o.Heads, o.OutHeads, o.Norm, o.Residual, o.Fanouts = 0, 0, 0, 0, "", false, nil
	k := kg.Options{TrainOptions: o, Decoder: l.o.Decoder, Dim: l.o.Dim, Smoothing: l.smoothing, N3: l.n3}
	// Flags that are not given have kg.Train's defaults.
	if !given["epochs"] {
		k.Epochs = 0
	}
	if !given["eval-every"] {
		k.EvalEvery = 0
	}
	if !given["lr"] {
		k.LR = 0
	}
	if !given["dropout"] {
		k.Dropout = 0
	}
	if k.Smoothing == 0 {
		k.Smoothing = -1 // none
	}
	if given["loss"] {
		k.Loss = l.o.Loss
	}
	if given["negatives"] {
		k.Negatives = l.o.Negatives
	}
	if given["margin"] {
		k.Margin = l.o.Margin
	}
	if given["metric"] {
		k.Metric = l.o.Metric
	}
	return kg.Train(ctx, ds, k)
}
