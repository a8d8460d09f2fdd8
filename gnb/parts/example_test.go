package parts_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/parts"
)

func ExampleDivide() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "karate"))
	d := gnb.Must(parts.Divide(ctx, ds, 2, parts.Options{Quiet: true}))
	fmt.Printf("%d of %d edges cut, parts of %v nodes\n", d.EdgeCut, d.Edges, d.Nodes)
	// Output: 10 of 78 edges cut, parts of [17 17] nodes
}
