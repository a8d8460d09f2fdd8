package report

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Outputs computes a network's output for all nodes of the run's dataset within a program, with all neighbours and without
// dropout, as [gnb.Infer] does after training, and calls use with the logits [nodes, classes], which are valid during the
// call. It serves metrics of one's own, which [gnb.Worker.Log] then records, and by which [gnb.Worker.BestBy] can choose the
// best epoch. All workers call it, and all get the same logits: each computes its share of the nodes. An average of the weights
// is used if there is one. It ends the rank with an error if that fails.
func Outputs(w *gnb.Worker, net gnb.Network, use func(logits *dataset.Matrix)) {
	err := w.Outputs(net, nil, func(rows []float32, cols, _ int) error {
		use(&dataset.Matrix{Rows: len(rows) / max(1, cols), Cols: cols, F32: rows})
		return nil
	})
	if err != nil {
		w.Fail(fmt.Errorf("report: %w", err))
	}
}
