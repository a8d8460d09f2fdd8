package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/phrase"
)

// ignored is a part of a dataset that a model does not read, and the models that do.
type ignored struct{ part, readers string }

// unread lists what a dataset has and a model does not read: nil for a model that does not say what it reads.
func unread(ds *Dataset, m nn.Model, learned bool) (all []ignored) {
	of, ok := m.(nn.Reader)
	if ds == nil || !ok {
		return nil
	}
	reads, edges := of.Reads(), ds.EdgeShape()
	add := func(has, read bool, part, readers string) {
		if has && !read {
			all = append(all, ignored{part, readers})
		}
	}
	add(ds.FeatureDim() > 0, reads.Features && !learned, phrase.Count(ds.FeatureDim(), "feature")+" of nodes", "")
	if !reads.Edges {
		add(ds.Edges() > 0, false, "edges", "")
		return all
	}
	weights, features := "sage and gin read weights with EdgeWeights (--edge-weights), and gcn does always", "gatv2 reads features of edges"
	if reads.Times { // a model of events
		weights, features = "", "tgn reads features of events"
	}
	add(edges.Weighted, reads.Weights, "edge weights", weights)
	add(edges.FeatureCols > 0, reads.EdgeFeatures, phrase.Count(edges.FeatureCols, "feature")+" of edges", features)
	add(edges.Times, reads.Times, "edge times", "models of events read times (--task events)")
	if s := ds.Schema(); s != nil {
		const typed = "rgcn and hgt read types"
		add(len(s.Nodes) > 1, reads.Types, phrase.Count(len(s.Nodes), "type")+" of nodes (their features share columns)", typed)
		add(len(s.Relations) > 1, reads.Types, phrase.Count(len(s.Relations), "relation"), typed)
	}
	return all
}

// unreadText says what a model does not read, and which models do; "" for nothing.
func unreadText(model string, all []ignored) string {
	if len(all) == 0 {
		return ""
	}
	var parts, readers []string
	for _, u := range all {
		parts = append(parts, u.part)
		if u.readers != "" && !slices.Contains(readers, u.readers) {
			readers = append(readers, u.readers)
		}
	}
	text := fmt.Sprintf("model %s does not read these parts of the dataset, which therefore change nothing: %s", model, phrase.List(parts))
	for _, r := range readers {
		text += "; " + r
	}
	return text
}

// partsOf returns the parts alone.
func partsOf(all []ignored) (parts []string) {
	for _, u := range all {
		parts = append(parts, u.part)
	}
	return parts
}
