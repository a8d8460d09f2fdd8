package inspect_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/inspect"
)

func ExampleBatch() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	r := gnb.Must(inspect.Batch(ctx, ds, []int32{0, 33}, inspect.Options{Fanouts: []int{4, 2}, Quiet: true}))
	for i, h := range r.Hops {
		fmt.Printf("hop %d: %d nodes take messages over %d edges\n", i+1, h.Dst, h.Edges)
	}
	// Output:
	// hop 1: 2 nodes take messages over 8 edges
	// hop 2: 10 nodes take messages over 20 edges
}
