package hotness_test

import (
	"context"
	"fmt"
	"log"

	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/graphops/sample"
)

func Example() {
	ctx := context.Background()
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 4000, Features: 8})
	if err != nil {
		log.Fatal(err)
	}
	d, err := partition.Divide(ctx, ds.Graph, 4, partition.Options{})
	if err != nil {
		log.Fatal(err)
	}
	job := hotness.Job{Graph: ds.Graph, Of: d.Of, Parts: 4, Fanouts: sample.Fanouts{5, 5}, Seeds: ds.Splits["train"], Batch: 256}
	hot, err := hotness.Propagate(ctx, job)
	if err != nil {
		log.Fatal(err)
	}
	traces, err := hotness.Record(ctx, job, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	cached := hotness.Hottest(hot[0], d.Of, 0, 200)
	left := traces[0].Static(cached)
	best := traces[0].Static(traces[0].Best(200))
	fmt.Println(left < traces[0].Rows(), best <= left)
	// Output: true true
}
