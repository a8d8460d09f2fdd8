package recipe

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/mapped"
)

// BalancedWeights is gnb.BalancedWeights.
func BalancedWeights(ds *dataset.Dataset) ([]float32, error) {
	if ds == nil || ds.Labels == nil {
		return nil, errors.New("gnb: BalancedWeights needs a dataset with one label a node, in one file; give ClassWeights yourself")
	}
	ids, err := ds.Split("train")
	if err != nil {
		return nil, err
	}
	labels := make([]int32, len(ids))
	err = mapped.Guard(func() error {
		for i, v := range ids {
			if labels[i] = ds.Labels[v]; labels[i] < -1 || int(labels[i]) >= ds.Classes() {
				return fmt.Errorf("gnb: node %d of %s has label %d, not one of %d classes", v, ds.Name(), labels[i], ds.Classes())
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nn.BalancedWeights(labels, ds.Classes()), nil
}
