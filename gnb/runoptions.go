package gnb

import (
	"encoding/json"
	"fmt"

	"github.com/graphnb/graphnb/gnb/runs"
)

// OptionsOf returns the model and the options that a run of [Train] was started with, as far as they decide its result:
// with them, and the run's directory as Resume, [Train] resumes the run. A run of another program is an error.
func OptionsOf(r *runs.Run) (model string, o TrainOptions, err error) {
	c := r.Config
	if c.Program != trainProgram.Name() {
		return "", o, fmt.Errorf("gnb: %s is a run of program %q, not of gnb.Train, so it has no TrainOptions", r.Dir, c.Program)
	}
	var a trainArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return "", o, fmt.Errorf("gnb: the arguments of run %s are damaged: %w", r.Dir, err)
	}
	s := a.Sizes
	o = TrainOptions{
		Layers: s.Layers, Hidden: s.Hidden, Dropout: s.Dropout, InputDropout: s.InputDropout, Heads: s.Heads, OutHeads: s.OutHeads,
		Norm: s.Norm, Residual: s.Residual, BatchDegrees: s.BatchDegrees,
		Fanouts: a.Fanouts, Batch: a.Batch, BatchPerWorker: a.BatchPerWorker, Epochs: a.Epochs, LR: a.LR, WeightDecay: a.WeightDecay, ClipNorm: a.ClipNorm,
		Eval: a.Eval, EvalEvery: a.EvalEvery, EvalBatches: a.EvalBatches, BestBy: "metric", Patience: a.Patience, Digest: a.Digest,
		Workers: c.Workers, VirtualRanks: c.VirtualRanks, Precision: c.Precision, Seed: c.Seed,
	}
	if a.ByLoss {
		o.BestBy = "loss"
	}
	// 0 means the default in options.
	if o.Dropout == 0 {
		o.Dropout = None
	}
	if o.Epochs == 0 {
		o.Epochs = None
	}
	if o.LR == 0 {
		o.LR = None
	}
	if c.Device == "cpu" { // a run on a GPU goes on where there is none, too
		o.Device = c.Device
	}
	return a.Model, o, nil
}
