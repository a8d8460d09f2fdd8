package kg

import (
	"encoding/json"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
)

// OptionsOf returns the options of a run of [Train] that determine its result. With them, and the run's
// directory as Resume, Train resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) {
	a, err := argsOf(r)
	if err != nil {
		return Options{}, err
	}
	c := r.Config
	o := Options{
		TrainOptions: gnb.TrainOptions{
			Dropout: inside.Given(a.Dropout), Batch: a.Batch, BatchPerWorker: a.PerWorker, Epochs: inside.Given(a.Epochs),
			Eval: "full", EvalEvery: a.EvalEvery, Patience: a.Patience,
			Workers: c.Workers, Precision: c.Precision, Seed: c.Seed, Device: "cpu",
		},
		Decoder: a.Decoder, Dim: a.Dim, Of: a.Of, Loss: a.Loss, N3: a.N3, Smoothing: inside.Given(a.Smoothing),
		Negatives: a.Negatives, AnyNegatives: a.AnyNegatives, Margin: a.Margin, Metric: a.Metric, PosWeight: a.Labels.PosWeight,
	}
	o.LabelSmoothing, o.OwnLoss = a.Labels.Smoothing, a.OwnLoss
	inside.SetOptimizing(&o.TrainOptions, a.Optimizing, c)
	if o.Encoder = a.Encoder; o.Encoder.Name != "" {
		o.Encoder.Dropout = inside.Given(o.Encoder.Dropout)
	}
	if a.NoEval {
		o.Eval = "none"
	}
	return o, nil
}

// Trained reports whether [Train] made a run, so that [Score] and [Complete] take it.
func Trained(r *runs.Run) bool { return r != nil && r.Config.Program == TrainProgram }

// argsOf returns the argument of a run of Train.
func argsOf(r *runs.Run) (a args, err error) {
	switch {
	case r == nil:
		return a, fmt.Errorf("kg: there is no run; get one from kg.Train, runs.Last or runs.Open")
	case !Trained(r):
		return a, fmt.Errorf("kg: %s is a run of program %q, not of kg.Train", r.Dir, r.Config.Program)
	}
	if err := json.Unmarshal(r.Config.Args, &a); err != nil {
		return a, fmt.Errorf("kg: the arguments of run %s are damaged: %w", r.Dir, err)
	}
	return a, nil
}
