package feed

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// AsTrained returns a dataset with its features in the order of those of the run id, by their names, and in one width. It adds to said what it does, and prints
// it unless quiet. pkg is the package for which it does so, whose name begins what it prints and returns.
func AsTrained(ctx context.Context, pkg, id string, names map[string][]string, ds *dataset.Dataset, quiet bool, said *notice.List) (*dataset.Dataset, error) {
	ds, err := ds.InOrder(names, func(n notice.Notice) {
		if said.Add(n); !quiet {
			fmt.Println(pkg + ": " + n.String())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: run %s: %w", pkg, id, err)
	}
	return OneWidth(ctx, ds, quiet)
}
