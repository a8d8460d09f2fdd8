package parts

import (
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
)

// remoteSeeds is the number of seeds of the global batch that remote samples, and remoteSteps the number of batches.
const (
	remoteSeeds = 1024
	remoteSteps = 2
)

// remote samples batches of training nodes and returns, for each part, the share of the rows of features that its share
// of the seeds needs from other parts. The seeds of a batch go to their parts, as in training.
func remote(ds *dataset.Dataset, of []int32, parts int, o Options) ([]float64, error) {
	train := ds.Splits["train"]
	if len(train) == 0 {
		return nil, nil
	}
	fanouts := o.Fanouts
	if fanouts == nil {
		fanouts = []int{10, 10}
	}
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts(fanouts), Hops: len(fanouts), Seed: o.Seed, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	order := sample.EpochOrder(o.Seed, 0, train)
	rows, away := make([]int, parts), make([]int, parts)
	for step := range remoteSteps {
		batch := order[min(step*remoteSeeds, len(order)):min((step+1)*remoteSeeds, len(order))]
		seeds := make([][]int32, parts)
		for _, v := range batch {
			seeds[of[v]] = append(seeds[of[v]], v)
		}
		for p, own := range seeds {
			if len(own) == 0 {
				continue
			}
			b, err := s.Sample(0, step, sample.Seeds{IDs: own})
			if err != nil {
				return nil, err
			}
			for _, v := range b.InputIDs() {
				rows[p]++
				if int(of[v]) != p {
					away[p]++
				}
			}
			b.Release()
		}
	}
	share := make([]float64, parts)
	for p := range share {
		share[p] = float64(away[p]) / float64(max(1, rows[p]))
	}
	return share, nil
}
