package linktask

import (
	"cmp"
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

// FlagsOfTriples are the flags of training, and of links, that kg.Train takes; the others belong to graph
// networks or to splits of edges.
var FlagsOfTriples = []string{
	"task", "decoder", "dim", "loss", "negatives", "margin", "metric", "smoothing", "n3", "encoder", "encoder-layers", "encoder-bases", "encoder-blocks", "encoder-dropout", "messages", "batch", "batch-per-worker", "epochs", "lr", "weight-decay", "clip", "schedule", "optimizer", "accumulate", "groups", "average", "pos-weight", "label-smoothing",
	"dropout", "eval", "eval-every", "best-by", "patience", "workers", "virtual-ranks", "threads", "device", "precision", "seed", "checkpoint-every", "keep",
	"restarts", "tensorboard", "title", "tags", "notes", "resume", "resume-changed", "from", "run", "json", "insecure",
}

// ofEncoder are the flags of the network before a decoder of triples.
var ofEncoder = []string{"encoder", "encoder-layers", "encoder-bases", "encoder-blocks", "encoder-dropout", "messages"}

// anyOf returns the first of the names that was given, "" if none was.
func anyOf(given map[string]bool, names []string) string {
	for _, name := range names {
		if given[name] {
			return name
		}
	}
	return ""
}

// trainTriples trains on the triples of a knowledge graph.
func (l *Flags) trainTriples(ctx context.Context, ds *dataset.Dataset, o gnb.TrainOptions, given map[string]bool) (*runs.Run, error) {
	var err error
	l.fs.Visit(func(f *flag.Flag) {
		if err == nil && !slices.Contains(FlagsOfTriples, f.Name) {
			err = fmt.Errorf("--%s does not apply to --decoder %s, which scores triples without a graph network", f.Name, l.o.Decoder)
		}
	})
	if err != nil {
		return nil, err
	}
	if l.encoder.Name == "" {
		if name := anyOf(given, ofEncoder[1:]); name != "" {
			return nil, fmt.Errorf("--%s is for a network before the decoder; add --encoder rgcn or --encoder compgcn", name)
		}
		l.encoder = kg.EncoderOptions{}
	} else if l.encoder.Dropout == 0 {
		l.encoder.Dropout = gnb.None
	}
	o.Layers, o.Hidden, o.Heads, o.OutHeads, o.Norm, o.JK, o.Residual, o.Fanouts = 0, 0, 0, 0, "", "", false, nil
	k := kg.Options{TrainOptions: o, Of: l.of, Encoder: l.encoder, AnyNegatives: l.any, Decoder: l.o.Decoder, Dim: l.o.Dim, Smoothing: l.smoothing, N3: l.n3}
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
	switch {
	case !given["dropout"]:
		k.Dropout = 0
	case k.Dropout == 0:
		k.Dropout = gnb.None
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
	k.PosWeight = l.o.PosWeight
	if given["metric"] {
		k.Metric = l.o.Metric
	}
	return kg.Train(ctx, ds, k)
}

// TakeTriples sets the flags that the user did not give to those of a run of kg.Train, so that "gnb train
// --resume RUN" alone resumes it. It returns the run's other options.
func (l *Flags) TakeTriples(run *runs.Run) (gnb.TrainOptions, error) {
	had, err := kg.OptionsOf(run)
	if err != nil {
		return gnb.TrainOptions{}, err
	}
	given := map[string]bool{}
	l.fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]any{
		"decoder": had.Decoder, "dim": had.Dim, "loss": had.Loss, "negatives": had.Negatives, "margin": had.Margin,
		"metric": had.Metric, "smoothing": max(had.Smoothing, 0), "n3": had.N3, "pos-weight": cmp.Or(had.PosWeight, 1),
	} {
		if given[name] {
			continue
		}
		if err := l.fs.Set(name, fmt.Sprint(value)); err != nil {
			return gnb.TrainOptions{}, fmt.Errorf("run %s has --%s %v, which is not a valid value: %w", run.Dir, name, value, err)
		}
	}
	if anyOf(given, ofEncoder) == "" {
		l.encoder = had.Encoder
	}
	l.task, l.of, l.any = "links", had.Of, had.AnyNegatives
	return had.TrainOptions, nil
}

// NoTriples returns an error for a dataset that is a knowledge graph without features, of which a command
// knows no model.
func NoTriples(ds *dataset.Dataset, command string) error {
	if s := ds.Schema(); s != nil && len(s.Relations) > 0 && len(ds.EdgeSplits) > 0 && ds.FeatureDim() == 0 {
		return fmt.Errorf("%s is a knowledge graph without features, and gnb %s does not know models of triples; gnb train --task links --decoder complex trains one, and prints what it takes", ds.Name(), command)
	}
	return nil
}
