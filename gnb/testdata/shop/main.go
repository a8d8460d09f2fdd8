// Command shop predicts which users leave a shop, from tables of users and items and of two relations between
// them: shop/nodes.user.csv, shop/nodes.item.csv, shop/edges.user.buys.item.csv and
// shop/edges.user.returns.item.csv.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
)

func main() {
	flag.Parse() // worker processes leave main here
	ctx := context.Background()
	gnb.Check(os.RemoveAll("graph")) // a conversion never writes over something
	gnb.Must(convert.Convert(ctx, "shop", "graph", convert.Options{
		Readers:   convert.TypedReaders(),
		Transform: convert.Transform(convert.Changes{Reverses: true}), // items learn from users too
	}))
	ds := gnb.Must(gnb.Load(ctx, "graph"))
	fmt.Println(ds)
	run := gnb.Must(gnb.Train(ctx, ds, gnb.RGCN, gnb.TrainOptions{
		ModelOptions:     gnb.ModelOptions{Hidden: 16, Dropout: 0.5},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{10, 10}},
		OptimizerOptions: gnb.OptimizerOptions{Batch: 64, Epochs: 20, LR: 0.01},
		LaunchOptions:    gnb.LaunchOptions{Workers: 2, Seed: 1},
	}))
	fmt.Printf("test accuracy %.3f\n", run.TestAccuracy())
}
