package kg_test

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// steep is a loss of one's own: the binary cross-entropy of scores that are twice as far apart.
var steep = kg.DeclareLoss("example.steep", func(scores *nn.Tensor, perTriple int) *nn.Loss {
	return pairs.BCE(scores.Fwd().Scale(scores, 2), perTriple)
})

// A loss of one's own trains on triples and drawn negatives.
func ExampleDeclareLoss() {
	const n = 30 // entities on a ring, with a relation to the next one
	schema := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "entity", Count: n}}, Relations: []graphops.Relation{{Src: "entity", Name: "next", Dst: "entity"}}}
	var src, dst []int32
	splits := map[string][]int64{}
	for v := range int32(n) {
		part := "train"
		if v%5 == 0 {
			part = "val"
		}
		src, dst, splits[part] = append(src, v), append(dst, (v+1)%n), append(splits[part], int64(v))
	}
	g := gnb.Must(graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: make([]uint16, n)}, graphops.BuildOptions{}))
	ds := &dataset.Dataset{Graph: gnb.Must(g.WithTypes(schema, g.EdgeTypes)), EdgeSplits: splits, Meta: dataset.Metadata{Name: "ring"}}
	run := gnb.Must(kg.Train(context.Background(), ds, kg.Options{Decoder: "distmult", Dim: 8, OwnLoss: steep, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3}, LaunchOptions: gnb.LaunchOptions{Quiet: true}}))
	fmt.Println(run.Result.State, kg.Trained(run))
	// Output: done true
}
