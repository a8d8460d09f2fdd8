package recipe

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// OnlyTrain returns an error for an option that only Train itself follows, for packages above that train otherwise.
func (o Settings) OnlyTrain() error {
	name := ""
	switch {
	case o.ClassWeights != nil:
		name = "ClassWeights"
	case o.LabelSmoothing != 0:
		name = "LabelSmoothing"
	case o.OwnLoss != "":
		name = "OwnLoss"
	case o.WatchTest:
		name = "WatchTest"
	default:
		return nil
	}
	return fmt.Errorf("gnb: %s is an option of gnb.Train, which classifies nodes; leave it out", name)
}

// checkEmbedding refuses options of Train that learned embeddings do not have so far.
func (o Settings) checkEmbedding(ds *dataset.Dataset) error {
	switch {
	case o.Embedding == 0 && ds.FeatureDim() == 0:
		return fmt.Errorf("gnb: %s has no node features to train on; learn a row for each node instead (Embedding: 64, --embedding 64), or convert it with features (gnb data convert --features)", ds.Name())
	case o.Embedding == 0 && !o.LearnMissing:
		return nil
	case o.Device == "cuda":
		return errors.New("gnb: learned embeddings train on CPUs only so far; choose the CPU (Device: \"cpu\", --device cpu)")
	}
	return nil
}

// FewerColumns is the way out of an error for learned embeddings that do not fit.
const FewerColumns = "take fewer columns (Embedding, --embedding)"

// Embedding returns the number of columns of learned embeddings, 0 if the input are features.
func (a Recipe) Embedding() int {
	if !a.Sizes.Embedding {
		return 0
	}
	return a.Sizes.In
}
