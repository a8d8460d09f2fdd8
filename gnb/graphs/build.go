package graphs

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Build makes the network of a run of [Train] in the calling process, without its weights. sizes are those that the run has recorded
// (runs.ModelInfo).
func Build(run *runs.Run, sizes gnb.ModelConfig) (*Model, error) {
	had, err := task.OptionsOf(run)
	if err != nil {
		return nil, fmt.Errorf("graphs: %w", err)
	}
	body, err := gnb.BuildModel(had.Model, sizes)
	if err != nil {
		return nil, err
	}
	return newModel(body, &had, sizes.Norm, had.Shape.Graph), nil
}

// Outputs say what the columns of a network's outputs are.
type Outputs struct {
	// Numeric says that they are numbers, standardised by LossOptions.Scale; Several that each is the logit of one of several labels.
	// Otherwise they are logits of classes.
	Numeric, Several bool
	Columns          []string
	numbers.LossOptions
	// GraphDim is the number of features of a graph that the network takes.
	GraphDim int
}

// OutputsOf returns what the network of a run of [Train] computes.
func OutputsOf(run *runs.Run) (o Outputs, err error) {
	had, err := task.OptionsOf(run)
	if err != nil {
		return o, fmt.Errorf("graphs: %w", err)
	}
	a := &Answers{o: had, Rows: &dataset.Matrix{Cols: had.Out}}
	return Outputs{Numeric: a.Numeric(), Several: a.Several(), Columns: a.Columns(), LossOptions: had.LossOptions, GraphDim: had.Shape.Graph}, nil
}

// Own returns the features of graphs of a dataset, row by row, nil if they have none.
func Own(ds *gnb.Dataset, of []int32) ([]float32, error) {
	g, err := graphsOf(ds)
	if err != nil {
		return nil, err
	}
	return gather(g, of), nil
}
