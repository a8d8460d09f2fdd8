package main

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// noTriples returns an error for a dataset that is a knowledge graph without features, of which a command
// knows no model.
func noTriples(ds *dataset.Dataset, command string) error {
	if s := ds.Schema(); s != nil && len(s.Relations) > 0 && len(ds.EdgeSplits) > 0 && ds.FeatureDim() == 0 {
		return fmt.Errorf("%s is a knowledge graph without features, and gnb %s does not know models of triples; gnb train --task triples trains one, and prints what it takes", ds.Name(), command)
	}
	return nil
}
