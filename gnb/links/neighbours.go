package links

import "github.com/graphnb/graphnb/gnb"

// loaderOf returns a loader with the sampler of one that inside.Settings made of o, and the batches that o asks for.
func loaderOf(l gnb.Loader, o gnb.TrainOptions) gnb.Loader {
	return gnb.Loader{Fanouts: l.Fanouts, Sampler: l.Sampler, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker}
}
