package feed

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// OneWidth is [divided.OneWidth] for a run's dataset: a dataset divided into parts has features of one width already.
func OneWidth(ds *dataset.Dataset) (*dataset.Dataset, error) {
	one, err := divided.OneWidth(ds)
	if err != nil {
		return nil, fmt.Errorf("gnb: %w (TrainOptions.Embedding)", err)
	}
	return one, nil
}
