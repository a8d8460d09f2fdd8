package links

import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/recipe"
)

// optimizing returns how a training changes the weights; a learning rate of 0 means 0.01.
func optimizing(o gnb.TrainOptions, epochs int) (recipe.Optimizing, error) {
	how, err := inside.Optimizing(o, inside.OrNone(o.LR, 0.01), epochs)
	return how.(recipe.Optimizing), err
}

// loaderOf returns a loader with the sampler of one that inside.Settings made of o, and the batches that o asks for.
func loaderOf(l gnb.Loader, o gnb.TrainOptions) gnb.Loader {
	return gnb.Loader{Fanouts: l.Fanouts, Sampler: l.Sampler, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker}
}
