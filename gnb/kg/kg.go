// Package kg trains embeddings of knowledge graphs, which complete them: which tail belongs to a head and
// a relation. It uses the workers, panel, checkpoints and runs of package gnb; the mathematics is in
// package graphops/kge.
//
// # Basics
//
// The dataset is a graph with relations whose edges are divided into the splits train, val and test:
//
//	ds := gnb.Must(gnb.Load(ctx, "umls"))
//	run := gnb.Must(kg.Train(ctx, ds, kg.Options{Decoder: "complex", Dim: 200}))
//	fmt.Println(run.Value("test_mrr"), run.Value("test_hits_10"))
//	rows := gnb.Must(kg.Relations(run))
//
// # Training
//
// Each entity and each relation has a trained row, and a decoder scores triples by them. Every relation
// has a reverse, so that a query for heads is a query for tails. By default a step scores queries (head,
// relation, ?) with all entities at once.
//
// # Evaluation
//
// Both ends of each validation and test triple are ranked among all entities, without those that are
// known to answer the query in any of the three parts (the filtered setting). Ties count as their mean
// rank.
//
// # Determinism
//
// Runs with the same workers × virtual ranks have the same weights to the bit, except for ConvE, whose
// batch norms use the queries of a worker.
//
// # Caveats
//
// It computes on the CPU. Every worker has the triples and all rows in its own memory; the features of
// nodes are not used.
package kg

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/kge"
)

// Types of package kge under names of this one.
type (
	// TripleList is a list of triples: Head[i] –Rel[i]→ Tail[i].
	TripleList = kge.Triples
	// DecoderOptions configure a decoder.
	DecoderOptions = kge.Options
)

// Data are the triples of a dataset.
type Data struct {
	Entities, Relations int
	Train, Val, Test    kge.Triples
	RelationNames       []string
}

// Triples returns the triples of a dataset, in new memory: its edges by their relations, divided as the
// dataset says.
//
// It returns an error for a dataset without relations or without a split of its edges.
func Triples(ds *dataset.Dataset) (*Data, error) {
	switch {
	case ds == nil:
		return nil, errors.New("kg: there is no dataset; get one from gnb.Load")
	case ds.Graph == nil || ds.Meta.Parts != nil:
		return nil, fmt.Errorf("kg: %s is divided into parts, and a knowledge graph needs all edges in one graph; take the undivided dataset", ds.Name())
	}
	schema := ds.Schema()
	if schema == nil || len(schema.Relations) == 0 {
		return nil, fmt.Errorf("kg: %s has no relations; take a graph with a schema (Graph.WithTypes)", ds.Name())
	}
	d := &Data{Entities: ds.Nodes(), Relations: len(schema.Relations)}
	for _, r := range schema.Relations {
		name := r.Name
		if len(schema.Nodes) > 1 {
			name = r.String()
		}
		d.RelationNames = append(d.RelationNames, name)
	}
	for name, part := range map[string]*kge.Triples{"train": &d.Train, "val": &d.Val, "test": &d.Test} {
		if _, ok := ds.EdgeSplits[name]; !ok {
			if name == "train" {
				return nil, fmt.Errorf("kg: the edges of %s are not divided into train, val and test; set EdgeSplits", ds.Name())
			}
			continue
		}
		src, dst, types, err := ds.EdgesOf(name)
		if err != nil {
			return nil, fmt.Errorf("kg: %w", err)
		}
		part.Head, part.Rel, part.Tail = src, make([]int32, len(src)), dst
		for i, r := range types { // nil if there is one relation
			part.Rel[i] = int32(r)
		}
	}
	return d, nil
}
