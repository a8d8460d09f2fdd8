package plan_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/plan"
)

// A plan for two machines with two GPUs each, joined at 10 Gbit/s.
func ExampleOver() {
	ctx := plan.Over(context.Background(), gnb.Must(plan.ParseNetwork("10Gbit/s,0.1ms")))
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	o := gnb.TrainOptions{Cluster: gnb.Slurm{Nodes: 2, RanksPerNode: 2}, Quiet: true}
	p := gnb.Must(gnb.Plan(plan.ForGPU(ctx, 24<<30), ds, gnb.SAGE, o))
	fmt.Println(p.Workers, p.Machines, p.Network.BytesPerSecond)
	// Output: 4 2 1.25e+09
}

// A plan for a GPU of 24 GB, on a machine without one.
func ExampleForGPU() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	p := gnb.Must(gnb.Plan(plan.ForGPU(ctx, 24<<30), ds, gnb.SAGE, gnb.TrainOptions{Quiet: true}))
	fmt.Println(p.GPU.Graph, p.GPU.Features, p.GPU.Fit)
	// Output: GPU GPU fits
}
