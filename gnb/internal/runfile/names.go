package runfile

import "strings"

// The stages that a worker's time is divided into.
const (
	StageStart     = "start"
	StageSample    = "sample"
	StageFetch     = "fetch"
	StageForward   = "forward"
	StageBackward  = "backward"
	StageReduce    = "all-reduce"
	StageOptimizer = "optimizer"
	StageIdle      = "idle" // waiting for slower ranks at the sum of gradients
	StageEvaluate  = "evaluate"
	StageSave      = "checkpoint"
	StageProgram   = "program" // the user's own code between the calls above
)

// Stages is the order in which stages are drawn, left to right.
var Stages = []string{StageSample, StageFetch, StageForward, StageBackward, StageReduce, StageOptimizer, StageIdle, StageEvaluate, StageSave, StageProgram, StageStart}

// The metrics that an evaluation can report.
const (
	Accuracy = "accuracy"
	AUC      = "auc"
	AP       = "ap"
	MicroF1  = "micro_f1"
	MacroF1  = "macro_f1"
	MRR      = "mrr" // of predicted links
)

// OwnCurve reports whether a logged value is a curve of its own: epoch, step and loss are not, because
// the panel has them.
func OwnCurve(name string) bool { return name != "epoch" && name != "step" && name != "loss" }

// CutMetric splits the name of an evaluation's value, such as "val_auc", into the split's name and
// the metric's title in figures ("" for accuracy). ok is false for a value that is not a metric, such
// as a loss.
func CutMetric(name string) (split, title string, ok bool) {
	for _, k := range [][2]string{{Accuracy, ""}, {AUC, "ROC AUC"}, {AP, "average precision"}, {MicroF1, "micro-F1"}, {MacroF1, "macro-F1"}, {MRR, "MRR"}} {
		if split, ok := strings.CutSuffix(name, "_"+k[0]); ok {
			return split, k[1], true
		}
	}
	if split, k, ok := strings.Cut(name, "_recall_"); ok && strings.Trim(k, "0123456789") == "" {
		return split, "recall@" + k, true // of recommended links
	}
	return name, "", false
}
