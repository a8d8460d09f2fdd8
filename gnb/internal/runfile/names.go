package runfile

import (
	"strings"

	"github.com/graphnb/graphnb/graphops/metrics"
)

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

// Names of metrics that this module reads by name; metrics.All has all.
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
// the metric's title in figures ("" for accuracy). It knows the library's metrics and that which chooses the run's best epoch, nil
// for none. ok is false for a value that is neither, such as a loss.
func CutMetric(name string, chooses *metrics.Metric) (split, title string, ok bool) {
	longest := ""
	for _, m := range append(metrics.All, metrics.Metric{Name: MRR, Title: "MRR"}) {
		if s, is := m.Of(name); is && len(m.Name) > len(longest) { // balanced_accuracy, not accuracy
			split, title, ok, longest = s, m.Title, true, m.Name
		}
	}
	if ok {
		return split, title, ok
	}
	if split, k, ok := strings.Cut(name, "_recall_"); ok && strings.Trim(k, "0123456789") == "" {
		return split, "recall@" + k, true // of recommended links
	}
	if chooses != nil {
		if split, ok := chooses.Of(name); ok {
			return split, chooses.String(), true
		}
	}
	return name, "", false
}
