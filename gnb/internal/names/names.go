// Package names holds the names that workers write into a run's files and that other packages read
// from them: the stages of a worker's time, and the metrics of an evaluation.
package names

import "strings"

// The stages that a worker's time is divided into.
const (
	Start     = "start"
	Sample    = "sample"
	Fetch     = "fetch"
	Forward   = "forward"
	Backward  = "backward"
	Reduce    = "all-reduce"
	Optimizer = "optimizer"
	Idle      = "idle" // waiting for slower ranks at the sum of gradients
	Evaluate  = "evaluate"
	Save      = "checkpoint"
	Program   = "program" // the user's own code between the calls above
)

// Stages is the order in which stages are drawn, left to right.
var Stages = []string{Sample, Fetch, Forward, Backward, Reduce, Optimizer, Idle, Evaluate, Save, Program, Start}

// The metrics that an evaluation can report.
const (
	Accuracy = "accuracy"
	AUC      = "auc"
	MicroF1  = "micro_f1"
)

// CutMetric splits the name of an evaluation's value, such as "val_auc", into the split's name and
// the metric's title in figures ("" for accuracy). ok is false for a value that is not a metric, such
// as a loss.
func CutMetric(name string) (split, title string, ok bool) {
	for _, k := range [][2]string{{Accuracy, ""}, {AUC, "ROC AUC"}, {MicroF1, "micro-F1"}} {
		if split, ok := strings.CutSuffix(name, "_"+k[0]); ok {
			return split, k[1], true
		}
	}
	return name, "", false
}
