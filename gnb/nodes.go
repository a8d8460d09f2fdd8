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
	planning "github.com/graphnb/graphnb/gnb/plan"
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
	prepare: prepareNodes,
	Check:   checkNodes,
	Title:   func(ds *Dataset, o *nodeOptions) string { return o.Model + " on " + ds.Name() },
	Start:   func(w *Worker, o nodeOptions) (Task, error) { return startNodes(w, o) },
	job: func(r resolved, o *nodeOptions) (planning.Job, error) {
		d, err := models.Get(o.Model)
		return o.job(r, d.build), err
	},
})

func (o *TrainOptions) cooperative() bool { return o.Cooperative }

// cooperate sets whether workers make batches together.
func (o *TrainOptions) cooperate(on bool) { o.Cooperative = on }

// evaluatesSamples says that the task takes Eval "sampled".
func (o *TrainOptions) evaluatesSamples() {}

// prepareNodes applies the recipe, and refuses what FullGraph would replace.
func prepareNodes(ds *Dataset, o *nodeOptions) (err error) {
	if o.TrainOptions, _, err = o.WithRecipe(ds, o.Model); err != nil || !o.FullGraph {
		return err
	}
	sampled := func(fanout int) bool { return fanout != -1 }
	if slices.ContainsFunc(o.Fanouts, sampled) || o.Sampler != "" || o.RelationFanouts != nil {
		return errors.New("gnb: Fanouts, RelationFanouts and Sampler sample neighbours, and with FullGraph (--full-graph) a step takes all of them; leave one of them out")
	}
	if ids, err := ds.Split("train"); err == nil && o.Batch > 0 && o.Batch != len(ids) {
		return fmt.Errorf("gnb: Batch is %d, and with FullGraph (--full-graph) a step has all %d nodes of train; leave one of them out", o.Batch, len(ids))
	}
	return nil
}

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
	if o.FullGraph {
		if err := o.wholeGraph(ds); err != nil {
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

// wholeGraph refuses options that do not go with FullGraph, and sets those that describe its steps.
func (o *nodeOptions) wholeGraph(ds *Dataset) error {
	switch {
	case ds.Meta.Parts != nil:
		return fmt.Errorf("gnb: FullGraph reads the features of all nodes in each step, and %s is divided into parts; leave FullGraph (--full-graph) and a Recipe of published settings out, or take the undivided dataset", ds.Name())
	case o.Features == feed.FeaturesOnDisk:
		return errors.New("gnb: FullGraph reads the features of all nodes in each step, and Features is disk; leave one of them out")
	case o.Accumulate > 1 || o.VirtualRanks > 1 || o.Cooperative || o.BatchPerWorker > 0:
		return errors.New("gnb: Accumulate, VirtualRanks, Cooperative and BatchPerWorker divide batches, and with FullGraph a step is the whole graph; leave one of them out")
	case o.Eval == "sampled":
		return errors.New(`gnb: Eval is "sampled", and FullGraph samples nothing; evaluate with all neighbours ("full")`)
	}
	ids, err := ds.Split("train")
	if err != nil {
		return err
	}
	o.Batch, o.Digest = max(1, len(ids)), false
	for i := range o.Fanouts {
		o.Fanouts[i] = -1
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
	whole  *Batch // the batch of FullGraph, made at the first step
	loss   func(b *Batch, logits *nn.Tensor) *nn.Loss
	how    Evaluation
}

func startNodes(w *Worker, o nodeOptions) (*nodeTask, error) {
	ds := w.Dataset()
	if o.Chosen != "" {
		w.Printf("%s", o.recipeText(o.Model, o.Chosen))
	}
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
func (t *nodeTask) Batches(int) iter.Seq[*Batch] {
	if !t.o.FullGraph {
		return t.w.Batches("train", t.loader)
	}
	return func(yield func(*Batch) bool) {
		if t.whole == nil {
			t.whole = t.w.FullGraph("train")
		}
		yield(t.whole)
	}
}

// Steps implements [Task].
func (t *nodeTask) Steps() int {
	if t.o.FullGraph {
		return 1
	}
	return t.w.StepsPerEpoch("train", t.loader)
}

// Loss implements [Task].
func (t *nodeTask) Loss(b *Batch) *nn.Loss { return t.loss(b, t.net.Forward(b)) }

// Splits implements [Task].
func (t *nodeTask) Splits() []string { return evaluated(t.w.Dataset()) }

// Measure implements [Task].
func (t *nodeTask) Measure(splits ...string) ([]runs.NamedValue, error) {
	return t.w.measure(t.net, t.how, splits...).values(), nil
}

var _ trialEvaluator = (*nodeTask)(nil)

// tryEvaluation implements [trialEvaluator]: of a sampled evaluation it takes some batches.
func (t *nodeTask) tryEvaluation(split string) (times float64, err error) {
	how, times := FullNeighbors, 1.0
	if o := t.o; o.Eval == "sampled" {
		batches := t.w.StepsPerEpoch(split, Loader{Fanouts: o.Fanouts, MaxSteps: o.EvalBatches, InOrder: true})
		how, times = Sampled(o.Fanouts, 0, trialEvaluated), float64(batches)/float64(min(batches, trialEvaluated))
	}
	how.Loss = t.how.Loss
	t.w.Evaluate(t.net, how, split)
	return times, nil
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
