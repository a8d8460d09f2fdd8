package main

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// noTriples returns an error for a dataset that is a knowledge graph without features, of which a command
// knows no model; way is the way out.
func noTriples(ds *dataset.Dataset, command, way string) error {
	if s := ds.Schema(); s != nil && len(s.Relations) > 0 && len(ds.EdgeSplits) > 0 && ds.FeatureDim() == 0 {
		return fmt.Errorf("%s is a knowledge graph without features, and gnb %s does not know models of triples; %s", ds.Name(), command, way)
	}
	return nil
}
