package kg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/recipe"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Options configure [Train]. The zero value trains ComplEx with 100 complex numbers per entity.
type Options struct {
	// TrainOptions are the options of gnb.Train, with these differences: Batch counts queries or
	// triples and 0 means 128; Epochs 0 means 100; LR 0 means 0.003; Dropout is that of the rows of
	// heads and relations, and 0 means 0.2 for distmult and complex and none for other decoders;
	// EvalEvery 0 means 10. Options of graph networks and of their batches (Layers, Hidden, Fanouts and
	// others) and GPUs are refused.
	gnb.TrainOptions
	// Decoder is distmult, complex, transe, rotate or conve; "" means complex.
	Decoder string
	// Dim is the number of columns of an embedding, of complex numbers for complex and rotate; 0 means
	// 100.
	Dim int
	// Of configures the decoder.
	Of kge.Options
	// Encoder is the graph network before the decoder; the zero value means none.
	Encoder EncoderOptions
	// Loss is kvsall (the binary cross-entropy of queries with all entities), 1vsall (the cross-entropy
	// of triples' tails among all entities; triples of the same query are scored together), or bce, softmax or max-margin with drawn negatives. "" means
	// kvsall, but max-margin for transe and bce for rotate. OwnLoss names a loss of [DeclareLoss] instead of one of these.
	Loss string
	// N3 is the factor of the nuclear 3-norm of each triple's rows, added to the loss 1vsall; 0 means
	// none. Weights such as 0.001 to 0.1 are usual ([kge.N3]).
	N3 float64
	// Smoothing is the smoothing of labels of kvsall; 0 means 0.1, and a negative number none. LabelSmoothing is that of
	// 1vsall, bce and softmax, where 0 means none.
	Smoothing float64
	// PosWeight is the weight of a triple beside a negative in the loss bce, as PyTorch's pos_weight; 0 means 1.
	PosWeight float64
	// Negatives is the number of negatives of each triple on each side, for the losses that draw them;
	// 0 means 16.
	Negatives int
	// AnyNegatives lets a negative be a known triple of training by chance; otherwise none is.
	AnyNegatives bool
	// Margin is the margin of max-margin; 0 means 1.
	Margin float64
	// Metric chooses the best epoch: mrr, hits_1, hits_3 or hits_10; "" means mrr. hits_K among fewer than K
	// other entities is refused, and left out of the results.
	Metric string
}

// args is the argument of Train's program: the options that change the result.
type args struct {
	Decoder      string
	Dim          int
	Of           kge.Options
	Encoder      EncoderOptions `json:",omitzero"`
	Loss         string
	Smoothing    float64           // of kvsall
	Labels       pairs.LossOptions `json:",omitzero"` // of the other losses
	OwnLoss      string            `json:",omitempty"`
	N3           float64           `json:",omitempty"`
	Negatives    int
	AnyNegatives bool
	Margin       float64
	Metric       string
	Dropout      float64
	Batch        int
	PerWorker    int
	Epochs       int
	recipe.Optimizing
	NoEval    bool
	EvalEvery int
	Patience  int
}

// args checks the options and returns the program's argument.
func (o Options) args() (args, error) {
	a := args{
		Decoder: cmp.Or(o.Decoder, "complex"), Dim: cmp.Or(o.Dim, 100), Of: o.Of, Loss: o.Loss, Smoothing: o.Smoothing, N3: o.N3,
		Negatives: cmp.Or(o.Negatives, 16), AnyNegatives: o.AnyNegatives, Margin: cmp.Or(o.Margin, 1), Metric: cmp.Or(o.Metric, o.TrainOptions.Metric, "mrr"),
		Dropout: o.Dropout, Batch: o.Batch, PerWorker: o.BatchPerWorker, Epochs: inside.OrNone(o.Epochs, 100),
		NoEval: o.Eval == "none", EvalEvery: cmp.Or(o.EvalEvery, 10), Patience: o.Patience,
	}
	if o.PosWeight == 1 {
		o.PosWeight = 0
	}
	if err := o.checkLoss(); err != nil {
		return a, err
	}
	for name, set := range map[string]bool{
		"Layers": o.Layers != 0, "Hidden": o.Hidden != 0, "Heads": o.Heads != 0, "Norm": o.Norm != "", "JK": o.JK != "", "Residual": o.Residual, "Fanouts": o.Fanouts != nil, "RelationFanouts": o.RelationFanouts != nil,
		"OutHeads": o.OutHeads != 0, "Bases": o.Bases != 0, "BatchDependency": o.BatchDependency != 0, "LayerDependency": o.LayerDependency,
		"Sampler": o.Sampler != "", "Embedding": o.Embedding != 0, "LearnMissing": o.LearnMissing, "Cooperative": o.Cooperative, "InputDropout": o.InputDropout != 0, "Digest": o.Digest, "BatchDegrees": o.BatchDegrees, "EdgeWeights": o.EdgeWeights,
	} {
		if set {
			return a, fmt.Errorf("kg: %s is an option of graph networks, and Train has none before the decoder; leave it out", name)
		}
	}
	switch {
	case o.Device == "cuda":
		return a, errors.New(`kg: Train computes on the CPU; leave Device out, or set it to "cpu"`)
	case o.Eval != "" && o.Eval != "full" && o.Eval != "none":
		return a, fmt.Errorf(`kg: Eval is %q; Train ranks all validation triples ("full") or none ("none")`, o.Eval)
	case o.EvalBatches != 0:
		return a, errors.New("kg: EvalBatches is for sampled evaluations, and Train ranks all validation triples; leave it out")
	case o.BestBy != "" && o.BestBy != "metric":
		return a, fmt.Errorf("kg: BestBy is %q; the best epoch is that with the best Metric", o.BestBy)
	case o.Dim < 0 || o.Negatives < 0 || o.EvalEvery < 0 || o.Patience < 0 || o.Batch < 0 || o.BatchPerWorker < 0 || o.Epochs < gnb.None:
		return a, errors.New("kg: Dim, Negatives, Batch, Epochs, EvalEvery and Patience cannot be negative")
	case o.Margin < 0 || math.IsNaN(o.Margin) || math.IsInf(o.Margin, 0):
		return a, fmt.Errorf("kg: Margin is %v; it is a number above 0 (0 means 1)", o.Margin)
	case !(o.Smoothing < 1):
		return a, fmt.Errorf("kg: Smoothing is %v; it is below 1 (0 means 0.1, a negative number none)", o.Smoothing)
	case !(o.Dropout < 1):
		return a, fmt.Errorf("kg: Dropout is %v; it is a probability below 1", o.Dropout)
	}
	if _, err := value(kge.Metrics{}, a.Metric); err != nil {
		return a, err
	}
	d, err := kge.NewDecoder(a.Decoder, a.Dim, a.Of)
	if err != nil {
		return a, err
	}
	_, cols := d.Cols()
	if a.Encoder, err = o.Encoder.check(a.Decoder, cols); err != nil {
		return a, err
	}
	if a.Loss == "" {
		a.Loss = cmp.Or(map[string]string{"transe": "max-margin", "rotate": "bce"}[a.Decoder], "kvsall")
	}
	if err := a.setLoss(o); err != nil {
		return a, err
	}
	if !(a.N3 >= 0) || math.IsInf(a.N3, 0) {
		return a, fmt.Errorf("kg: N3 is %v; it is a number of at least 0", a.N3)
	}
	if a.N3 > 0 && a.Loss != "1vsall" {
		return a, fmt.Errorf("kg: N3 is for the loss 1vsall, and Loss is %s; leave N3 out", a.Loss)
	}
	if a.Smoothing == 0 {
		a.Smoothing = 0.1
	}
	a.Smoothing = max(a.Smoothing, 0)
	if a.Dropout == 0 && (a.Decoder == "distmult" || a.Decoder == "complex") {
		a.Dropout = 0.2
	}
	a.Dropout = max(a.Dropout, 0)
	if a.Batch == 0 && a.PerWorker == 0 {
		a.Batch = 128
	}
	how, err := inside.Optimizing(o.TrainOptions, inside.OrNone(o.LR, 0.003), a.Epochs)
	a.Optimizing = how.(recipe.Optimizing)
	return a, err
}

// Train trains embeddings of a knowledge graph and shows loss, metric and workers live. It runs as
// gnb.Train does: with interrupts, checkpoints, exact resumption and a run directory.
//
// The run's val_mrr, test_mrr, test_hits_1, test_hits_3, test_hits_10 and test_mean_rank are those of the
// epoch with the best Metric on the validation triples ("best_epoch"); without them, of the last epoch.
// best.safetensors holds the weights of that epoch. [Relations] gives the ranks by relation.
func Train(ctx context.Context, ds *dataset.Dataset, o Options) (*runs.Run, error) {
	a, err := o.args()
	if err != nil {
		return nil, err
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return nil, err
	}
	data, err := Triples(ds)
	if err != nil {
		return nil, err
	}
	if k := hitsOf(a.Metric); k > 0 && !a.NoEval && data.wrongAnswers(data.Val, data.filter()) < k {
		return nil, &FewEntities{a.Metric, data.Entities}
	}
	o.Device = "cpu"
	lo := inside.LaunchOptions(ds, named(a.Decoder), o.TrainOptions).(gnb.LaunchOptions)
	lo.Title = cmp.Or(o.Title, ds.Name()+" by "+a.Decoder)
	return gnb.Launch(ctx, trainProgram, a, lo)
}

type named string

func (n named) Name() string { return string(n) }

// TrainProgram is the name of Train's program, by which the configuration of a run tells that Train made
// it.
const TrainProgram = "gnb.kg"

// trainProgram is the training loop of Train.
var trainProgram = gnb.Program(TrainProgram, func(w *gnb.Worker, a args) error {
	data, err := Triples(w.Dataset())
	if err != nil {
		return err
	}
	if data.Train.Len() == 0 {
		return fmt.Errorf("kg: %s has no training triples", w.Dataset().Name())
	}
	for _, note := range w.Dataset().EdgeOverlaps().Notes() {
		w.Printf("%s", note)
	}
	d, err := kge.NewDecoder(a.Decoder, a.Dim, a.Of)
	if err != nil {
		return err
	}
	model := withEncoder(data.Entities, data.Relations, d, a.Encoder)
	net := w.NetworkOf(a.Decoder, nn.ModelConfig{}, model)
	w.WithoutFeatures() // the network reads rows of its own
	t := &trainer{w: w, a: a, data: data, net: net, model: model}
	if err := t.prepare(); err != nil {
		return err
	}
	if a.OwnLoss != "" {
		if t.own, err = losses.Get(a.OwnLoss); err != nil {
			return err
		}
	}
	t.opt = inside.Optimizer(w, net, a.Optimizing, t.items(), t.loader(), a.Epochs).(*gnb.Optimizer)
	best := map[string]float64{}
	w.Keep("best", &best)
	for epoch := range w.Epochs(a.Epochs) {
		t.epoch()
		if a.NoEval || data.Val.Len() == 0 || (epoch+1)%a.EvalEvery != 0 && epoch+1 != a.Epochs {
			continue
		}
		better, value, err := t.evaluate(best)
		if err != nil {
			return err
		}
		t.opt.Observe(value)
		if better {
			best["best_epoch"] = float64(epoch)
		} else if a.Patience > 0 && epoch-int(best["best_epoch"]) >= a.Patience {
			break
		}
	}
	if !a.NoEval && data.Val.Len() == 0 {
		if err := t.test(best); err != nil {
			return err
		}
	}
	for name, value := range best {
		w.Result(name, value)
	}
	return nil
})

// trainer is a worker's part of a training run.
type trainer struct {
	w     *gnb.Worker
	a     args
	data  *Data
	net   *gnb.Net[nn.Model]
	model *Model
	opt   *gnb.Optimizer
	own   func(scores *nn.Tensor, perTriple int) *nn.Loss // the loss that the program declares

	both      kge.Triples  // training triples and their reverses
	queries   *kge.Queries // of both
	filter    *kge.Queries // of all three parts and their reverses
	negatives *kge.Negatives
	// wrongVal and wrongTest are the median numbers of wrong answers to the queries of validation and test.
	wrongVal, wrongTest int
	whole               *nn.Block // the messages of all training triples, for an encoder
}

// prepare makes what the losses and the ranking need of the triples.
func (t *trainer) prepare() (err error) {
	d := t.data
	t.both = kge.Reciprocal(d.Train, d.Relations)
	t.filter = d.filter()
	t.wrongVal, t.wrongTest = d.wrongAnswers(d.Val, t.filter), d.wrongAnswers(d.Test, t.filter)
	if t.model.Encoder != nil {
		if t.whole, err = messages(d.Train, d.Entities, d.Relations); err != nil {
			return err
		}
	}
	switch t.a.Loss {
	case "kvsall", "1vsall":
		t.queries = kge.NewQueries(t.both)
	default:
		if t.a.Decoder == "conve" { // it answers queries for tails alone
			return errors.New("kg: ConvE trains with all entities; take the loss kvsall or 1vsall")
		}
		// Another tail of a reverse triple is another head of the triple.
		t.negatives, err = kge.NewNegatives(t.both, d.Entities, 2*d.Relations, kge.NegativeOptions{PerSide: t.a.Negatives, Sides: kge.TailSide, Strict: !t.a.AnyNegatives, Seed: t.w.Seed()})
	}
	return err
}

// items is the number of queries or triples of an epoch.
func (t *trainer) items() int {
	if t.queries != nil {
		return t.queries.Len()
	}
	return t.both.Len()
}

// share is what a batch needs of its items.
type share struct {
	ids     []int32
	triples kge.Triples // of the items, each followed by its negatives if there are some
	block   *nn.Block   // the messages of an encoder
}

// of implements gnb.Seeds.Of: it returns the items of a share, and the distinct heads as seeds.
func (t *trainer) of(epoch, step int, items []int32, lo, hi int) (seeds []int32, value any, err error) {
	s := &share{ids: append([]int32(nil), items[lo:hi]...), block: t.whole}
	if t.whole != nil && t.negatives != nil {
		if s.block, err = t.some(items); err != nil {
			return nil, nil, err
		}
	}
	from := t.both
	for _, i := range s.ids {
		if t.queries != nil {
			s.triples = s.triples.Append(t.queries.Head[i], t.queries.Rel[i], -1)
		} else {
			s.triples = s.triples.Append(from.Head[i], from.Rel[i], from.Tail[i])
		}
	}
	seen := make(map[int32]bool, len(s.ids))
	for _, h := range s.triples.Head {
		if !seen[h] {
			seen[h] = true
			seeds = append(seeds, h)
		}
	}
	if t.negatives == nil {
		return seeds, s, nil
	}
	neg, err := t.negatives.Draw(epoch, step, s.ids, s.triples)
	if err != nil {
		return nil, nil, err
	}
	var all kge.Triples
	for i, k := 0, t.negatives.PerTriple(); i < s.triples.Len(); i++ {
		all = all.Append(s.triples.Head[i], s.triples.Rel[i], s.triples.Tail[i])
		for j := i * k; j < (i+1)*k; j++ {
			all = all.Append(neg.Head[j], neg.Rel[j], neg.Tail[j])
		}
	}
	s.triples = all
	return seeds, s, nil
}

func (t *trainer) loader() gnb.Loader {
	return gnb.Loader{Fanouts: []int{0}, Batch: t.a.WholeBatch(t.a.Batch, 128, t.a.PerWorker), BatchPerWorker: t.a.PerWorker}
}

// epoch trains one epoch.
func (t *trainer) epoch() {
	for b := range t.w.BatchesOf(gnb.Seeds{Name: "triples", Items: t.items(), Of: t.of}, t.loader()) {
		var loss *nn.Loss
		f := t.net.Begin(b)
		if err := nn.Try(func() { loss = t.loss(f, b.Value.(*share)) }); err != nil {
			t.w.Fail(fmt.Errorf("kg: the scores of %s: %w", t.a.Decoder, err))
		}
		t.w.Step(loss, t.opt)
	}
}

// loss computes the loss of a share.
func (t *trainer) loss(f *nn.Fwd, s *share) *nn.Loss {
	m := t.model
	all := m.tables(f, s.block)
	if t.negatives == nil {
		h, r, e := all.rows(f, s.ids, s.triples.Head, s.triples.Rel, t.a.Dropout)
		scores := m.Decoder.Tails(f, h, r, e)
		if t.a.Loss == "kvsall" {
			return kge.KvsAll(scores, t.queries, s.ids, t.a.Smoothing)
		}
		l := kge.OneVsAllSmooth(scores, t.queries, s.ids, t.a.Labels.Smoothing)
		if t.a.N3 > 0 {
			l.Sum = f.Add(l.Sum, t.regulariser(f, s, all))
		}
		return l
	}
	k := t.negatives.PerTriple()
	scores := t.scores(f, s, all, k)
	switch t.a.Loss {
	case ownLoss:
		return t.own(scores, k)
	case "softmax":
		return t.a.Labels.Softmax(scores, k)
	case "max-margin":
		return pairs.MaxMargin(scores, k, t.a.Margin)
	}
	return t.a.Labels.BCE(scores, k)
}

// scores returns those of the triples of a share, each followed by its k negatives, which have other tails.
func (t *trainer) scores(f *nn.Fwd, s *share, all tables, k int) *nn.Tensor {
	d, products := t.model.Decoder.(kge.QueryDecoder)
	if products {
		heads, rels := make([]int32, len(s.ids)), make([]int32, len(s.ids))
		for i := range s.ids {
			heads[i], rels[i] = s.triples.Head[i*(1+k)], s.triples.Rel[i*(1+k)]
		}
		h, r, e := all.rows(f, s.ids, heads, rels, t.a.Dropout)
		return kge.Each(f, d.Query(f, h, r), e, s.triples.Tail, 1+k)
	}
	ids := make([]int32, 0, s.triples.Len()) // a triple and its negatives share a mask
	for _, i := range s.ids {
		for range 1 + k {
			ids = append(ids, i)
		}
	}
	h, r, e := all.rows(f, ids, s.triples.Head, s.triples.Rel, t.a.Dropout)
	return t.model.Decoder.Score(f, h, r, f.Gather(e, s.triples.Tail))
}

// regulariser is N3 times the nuclear 3-norm of the rows of each triple that answers the queries of a share.
func (t *trainer) regulariser(f *nn.Fwd, s *share, all tables) *nn.Tensor {
	var tails []int32
	answers := make([]float32, len(s.ids))
	for i, id := range s.ids {
		of := t.queries.Of(int(id))
		tails, answers[i] = append(tails, of...), float32(len(of))
	}
	ones := make([]float32, len(tails))
	for i := range ones {
		ones[i] = 1
	}
	_, isComplex := t.model.Decoder.(kge.ComplEx)
	sum := kge.N3(f, f.Gather(all.e, s.triples.Head), answers, isComplex)
	sum = f.Add(sum, kge.N3(f, f.Gather(all.z, s.triples.Rel), answers, isComplex))
	sum = f.Add(sum, kge.N3(f, f.Gather(all.e, tails), ones, isComplex))
	return f.Scale(sum, t.a.N3)
}

// some returns the messages of a step: a fraction of its items, which are in random order, as triples.
func (t *trainer) some(items []int32) (*nn.Block, error) {
	n := int32(t.data.Train.Len())
	chosen := make([]int32, 0, len(items))
	for _, i := range items[:int(math.Ceil(t.a.Encoder.Messages*float64(len(items))))] {
		chosen = append(chosen, i%n) // of a triple or its reverse
	}
	slices.Sort(chosen)
	var of kge.Triples
	for _, i := range slices.Compact(chosen) {
		of = of.Append(t.data.Train.Head[i], t.data.Train.Rel[i], t.data.Train.Tail[i])
	}
	return messages(of, t.data.Entities, t.data.Relations)
}
