package plan_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/plan"
)

// A plan for a GPU of 24 GB, on a machine without one.
func ExampleForGPU() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	p := gnb.Must(gnb.Plan(plan.ForGPU(ctx, 24<<30), ds, gnb.SAGE, gnb.TrainOptions{Quiet: true}))
	fmt.Println(p.GPU.Graph, p.GPU.Features, p.GPU.Fit)
	// Output: GPU GPU fits
}
