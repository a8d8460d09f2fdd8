package events

import (
	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// checkFitted returns an error if the features of events are fitted to later events than those of training, but not to all, which
// [sayFitted] says.
func checkFitted(ds *dataset.Dataset, s *stream) error {
	until := ds.Meta.FeaturesUntil
	if until == nil || s.cols == 0 || *until <= s.until[0] || *until >= s.Time[s.Len()-1] {
		return nil
	}
	return leak("the features of events of %s are fitted to the events up to time %d, and training ends at time %d; convert the data with --fit %[3]d, or train until %[2]d (Until, --until)", ds.Name(), *until, s.until[0])
}

// sayFitted says if the features of events, which a run reads, are fitted to all.
func sayFitted(w *gnb.Worker, s *stream) {
	if until := w.Dataset().Meta.FeaturesUntil; until != nil && s.cols > 0 && *until > s.until[0] {
		w.Printf("the features of events are fitted to all events, also those of validation and test: their means, deviations and categories are known to the model")
	}
}

// sayFeatures says what features of the dataset, which the model reads, tell that it must not know, as far as that can be seen.
func sayFeatures(w *gnb.Worker, s *stream) {
	if w.Rank() > 0 {
		return
	}
	sayFitted(w, s)
	ds := w.Dataset()
	if ds.SparseFeatures != nil || ds.NodeFeatures != nil {
		w.Printf("the features of nodes are sparse, or of several types, and models of events do not read them")
	}
	for _, column := range temporal.Tells(ds, s.Events, s.Train) {
		w.Printf("%s", column)
	}
}
