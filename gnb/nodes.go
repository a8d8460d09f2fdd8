package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

// nodeOptions are the options of [Train] with the model by its name.
type nodeOptions struct {
	Model string
	TrainOptions
}

// nodes is the task of [Train]: to classify nodes.
var nodes = DeclareTask("gnb.train", TaskDef[nodeOptions]{
	Check: checkNodes,
	Title: func(ds *Dataset, o *nodeOptions) string { return o.Model + " on " + ds.Name() },
	Start: func(w *Worker, o nodeOptions) (Task, error) { return startNodes(w, o) },
})

func (o *TrainOptions) cooperative() bool { return o.Cooperative }

// evaluatesSamples says that the task takes Eval "sampled".
func (o *TrainOptions) evaluatesSamples() {}

// checkNodes checks what is of nodes alone.
func checkNodes(_ context.Context, ds *Dataset, o *nodeOptions) error {
	if err := o.checkModelReads(o.Model); err != nil {
		return err
	}
	if err := cmp.Or(
		entry.CheckAll(entry.Whole("EvalBatches", o.EvalBatches, 0, entry.MaxCount)), entry.CheckNumbers(entry.Share("LabelSmoothing", o.LabelSmoothing)),
	); err != nil {
		return err
	}
	switch o.BestBy {
	case "":
		o.BestBy = "metric"
	case "metric", "loss":
	default:
		return fmt.Errorf(`gnb: BestBy is %q; it is "metric" or "loss"`, o.BestBy)
	}
	if o.Eval == "sampled" {
		s, err := o.sampling(ds)
		if err == nil {
			err = s.CheckSampled()
		}
		if err != nil {
			return err
		}
	}
	switch {
	case o.Cooperative && o.Accumulate > 1:
		return errors.New("gnb: Accumulate adds up batches of one worker after the other, and a cooperative batch belongs to all workers together; leave Accumulate out and take a smaller Batch, or leave Cooperative out")
	case o.Cooperative:
		if err := feed.CheckCooperative(o.VirtualRanks, nil); err != nil {
			return err
		}
	}
	if err := o.checkLoss(ds); err != nil {
		return err
	}
	if err := tally.CheckSplit(ds, "train"); err != nil {
		return err
	}
	if o.Eval != "none" && slices.Contains(evaluated(ds), "val") {
		return tally.CheckEvaluated(ds, "val", o.BestBy == "loss")
	}
	return nil
}

// checkLoss checks the training loss.
func (o *TrainOptions) checkLoss(ds *Dataset) error {
	if err := tally.CheckLabels(ds); err != nil {
		return err
	}
	if o.OwnLoss != "" {
		if _, err := losses.Get(o.OwnLoss); err != nil {
			return err
		}
	}
	c := nn.CrossEntropyOptions{Weights: o.ClassWeights, Smoothing: o.LabelSmoothing}
	switch {
	case c.Weights == nil && c.Smoothing == 0:
		return nil
	case o.OwnLoss != "":
		return fmt.Errorf("gnb: ClassWeights and LabelSmoothing are of the cross-entropy, and OwnLoss is %q; weigh the classes in it", o.OwnLoss)
	case ds.MultiLabels != nil:
		return fmt.Errorf("gnb: a node of %s can have several labels, for which there are no ClassWeights and no LabelSmoothing; write a loss of your own in a program", ds.Name())
	}
	return c.Check(ds.Classes())
}

var _ Task = (*nodeTask)(nil)

// nodeTask classifies nodes in a worker.
type nodeTask struct {
	w      *Worker
	o      nodeOptions
	net    *Net[nn.Model]
	loader Loader
	loss   func(b *Batch, logits *nn.Tensor) *nn.Loss
	how    Evaluation
}

func startNodes(w *Worker, o nodeOptions) (*nodeTask, error) {
	ds := w.Dataset()
	w.feed.noFeatures = o.Embedding > 0
	t := &nodeTask{w: w, o: o, net: w.Network(o.Model, o.Config(ds, ds.Classes())), loader: w.LoaderOf(o.SamplerOptions, o.OptimizerOptions)}
	t.loader.InputHalo, t.loader.Cooperative = o.BatchDegrees, o.Cooperative
	t.loss = func(b *Batch, logits *nn.Tensor) *nn.Loss {
		return b.loss(logits, nn.CrossEntropyOptions{Weights: o.ClassWeights, Smoothing: o.LabelSmoothing})
	}
	if o.OwnLoss != "" {
		own, err := losses.Get(o.OwnLoss)
		if err != nil {
			return nil, err
		}
		t.loss = own
	}
	if o.Eval == "sampled" {
		t.how = Sampled(o.Fanouts, 0, o.EvalBatches)
	}
	t.how.Loss = o.BestBy == "loss"
	if o.Eval != "none" {
		for _, split := range evaluations(ds, func(nodes int) bool { return nodes == 0 }) {
			w.Printf("the split %s is empty, so nothing is evaluated on it", split)
		}
		for _, split := range t.Splits() {
			w.sayPartly(split)
		}
	}
	return t, nil
}

// Network implements [Task].
func (t *nodeTask) Network() Network { return t.net }

// Batches implements [Task].
func (t *nodeTask) Batches(int) iter.Seq[*Batch] { return t.w.Batches("train", t.loader) }

// Steps implements [Task].
func (t *nodeTask) Steps() int { return t.w.StepsPerEpoch("train", t.loader) }

// Loss implements [Task].
func (t *nodeTask) Loss(b *Batch) *nn.Loss { return t.loss(b, t.net.Forward(b)) }

// Splits implements [Task].
func (t *nodeTask) Splits() []string { return evaluated(t.w.Dataset()) }

// Measure implements [Task].
func (t *nodeTask) Measure(splits ...string) ([]runs.NamedValue, error) {
	return t.w.measure(t.net, t.how, splits...).values(), nil
}

// Chooses implements [Task].
func (t *nodeTask) Chooses() Metric {
	if t.how.Loss {
		return Metric{Name: "loss", Lower: true}
	}
	return tally.Metric(t.w.Dataset())
}

// evaluated returns the splits of a dataset that are evaluated: those of val and test that are there and are not empty.
func evaluated(ds *Dataset) []string {
	return evaluations(ds, func(nodes int) bool { return nodes > 0 })
}

// evaluations returns those of the splits val and test that a dataset has with a number of nodes that is wanted.
func evaluations(ds *Dataset, wanted func(nodes int) bool) []string {
	return slices.DeleteFunc([]string{"val", "test"}, func(s string) bool {
		ids, err := ds.Split(s)
		return err != nil || !wanted(len(ids))
	})
}
