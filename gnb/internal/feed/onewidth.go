package feed

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// OneWidth is [divided.OneWidth] for a run's dataset, after [getdata.Opened]: a dataset divided into parts has
// features of one width already.
func OneWidth(ctx context.Context, ds *dataset.Dataset, quiet bool) (*dataset.Dataset, error) {
	if err := getdata.Opened(ctx, ds, quiet); err != nil {
		return nil, err
	}
	one, err := divided.OneWidth(ds)
	if err != nil {
		return nil, fmt.Errorf("gnb: %w (TrainOptions.Embedding)", err)
	}
	return one, nil
}
