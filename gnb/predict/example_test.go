package predict_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/predict"
)

func Example() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	var o gnb.TrainOptions
	o.Epochs, o.Threads, o.Workers, o.LR, o.Seed, o.Quiet = 40, 1, 1, 0.05, 1, true
	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, o))
	p := gnb.Must(predict.Open(ctx, run, ds, predict.Options{}))
	defer p.Close()

	known := gnb.Must(p.Nodes(ctx, "2", "30")) // members 2 and 30 of the club
	for i, id := range known.IDs {
		class, _ := known.Class(i)
		fmt.Println(id, "is of", class)
	}
	// A member whose only friends are members 33 and 32, and who is like member 33.
	fresh := gnb.Must(p.New(ctx, predict.Additions{
		Nodes: []predict.Node{{ID: "new", Features: ds.Features.Row(33)}},
		Edges: []predict.Edge{{Source: "new", Target: "33"}, {Source: "new", Target: "32"}},
	}))
	class, _ := fresh.Class(0)
	fmt.Println(fresh.IDs[0], "is of", class)
	// Output:
	// 2 is of 0
	// 30 is of 1
	// new is of 1
}
