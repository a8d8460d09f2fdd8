package plan_test

import (
	"context"
	"fmt"
	"net"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/plan"
)

// A plan for two machines with two GPUs each, joined at 10 Gbit/s.
func ExampleOver() {
	ctx := plan.Over(context.Background(), gnb.Must(plan.ParseNetwork("10Gbit/s,0.1ms")))
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Cluster: gnb.Slurm{Nodes: 2, RanksPerNode: 2}, Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	p := gnb.Must(gnb.Plan(plan.ForGPU(ctx, 24<<30), ds, gnb.SAGE, o))
	fmt.Println(p.Workers, p.Machines, p.Network.BytesPerSecond)
	// Output: 4 2 1.25e+09
}

// A plan for a GPU of 24 GB, on a machine without one.
func ExampleForGPU() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	p := gnb.Must(gnb.Plan(plan.ForGPU(ctx, 24<<30), ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Quiet: true}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
	fmt.Println(p.GPU.Graph, p.GPU.Features, p.GPU.Fit)
	// Output: GPU GPU fits
}

// The network to another machine, which runs AnswerNetwork or "gnb bench network --listen :7744", is measured.
func ExampleMeasureNetwork() {
	ctx, cancel := context.WithCancel(context.Background())
	l := gnb.Must(net.Listen("tcp", "127.0.0.1:0")) // the other machine's part
	answered := make(chan error)
	go func() { answered <- plan.AnswerNetwork(ctx, l) }()

	n := gnb.Must(plan.MeasureNetwork(ctx, l.Addr().String()))
	cancel()
	fmt.Println(n.BytesPerSecond > 0, n.RoundTrip > 0, <-answered)
	// Output: true true <nil>
}
