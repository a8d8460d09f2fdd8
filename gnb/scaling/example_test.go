package scaling_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/scaling"
)

func Example() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000"))
	o := scaling.Options{TrainOptions: gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 200}, ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}, Steps: 4, Repeats: 1}
	curve := gnb.Must(scaling.Measure(ctx, ds, gnb.SAGE, o, []int{1, 2}))
	one, two := curve.Points[0], curve.Points[1]
	fmt.Println(one.RepeatedEdges == 1, two.RepeatedEdges > 1, one.UniqueEdges == two.UniqueEdges)
	// Output: true true true
}
