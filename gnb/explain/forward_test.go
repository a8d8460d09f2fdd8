package explain_test

import (
	"slices"

	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/graphops/nn"
)

// forward computes the outputs of the network for features x of a neighbourhood.
func forward(n *predict.Neighbourhood, x []float32) ([]float32, error) {
	f := nn.NewFwd(nn.Config{Threads: 1})
	y, err := nn.TryForward(n.Model, f, n.Blocks, f.Input(len(n.Nodes), n.Cols, x, n.Space))
	if err != nil {
		return nil, err
	}
	return slices.Clone(y.Data()), nil
}
