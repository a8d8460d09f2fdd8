// Package links predicts links: which edges a graph lacks. It trains on a split of the edges with
// the workers, panel and checkpoints of package gnb; the mathematics is in package graphops/pairs.
//
// # Basics
//
// Your own program takes batches of edges from a [Loader], as other programs take batches of
// nodes from gnb.Worker:
//
//	var prog = gnb.Program("links", func(w *gnb.Worker, epochs int) error {
//		split, err := links.RandomSplit(w.Dataset(), links.SplitOptions{Seed: w.Seed()})
//		if err != nil {
//			return err
//		}
//		loader := links.NewLoader(w, split, links.LoaderOptions{})
//		net := links.New(w, gnb.SAGE, "dot", gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 64, Out: 32, Layers: 2})
//		opt := w.Adam(net, 0.01)
//		for range w.Epochs(epochs) {
//			for b := range loader.Batches() {
//				w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
//			}
//			w.Log("val_auc", loader.Evaluate(net, "val").AUC)
//		}
//		return nil
//	})
//
// # No leak
//
// The network computes on the graph of message edges alone: NewLoader replaces the worker's graph
// by the split's, so edges of validation and test are in no batch. The edges that a step predicts,
// and their reverses, are taken out of the step's messages, at every hop. [Loader.Verify] checks a
// batch.
//
// # Determinism
//
// A batch is a function of (seed, epoch, step): the digest of sampling and the negatives do not
// depend on workers, and runs with the same workers × virtual ranks have the same weights to the
// bit.
//
// # Caveats
//
// Each worker keeps the split's graphs in its own memory: about 8 bytes per node and 4 per edge for
// each of messages, training and known edges. In a run that asks the owners of edges (Topology
// "divided", or parts without their topology) it keeps those of its own nodes, if the split is made by
// [RandomSplitOf], or another function whose name ends in Of. A dataset at graph servers needs an address with copy=topology.
// Features stay in the parts or at the servers. The whole graph as one batch on such a dataset, and
// cooperative batches, are refused.
//
// On a dataset in parts, an evaluation has a matrix of all embeddings on each machine, as on another
// dataset, and at most 256 MiB of features at a time.
package links

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Types of package pairs that programs use.
type (
	// Edges are directed edges.
	Edges = pairs.Edges
	// Split divides the edges of a graph.
	Split = pairs.Split
	// Part is the edges of one part of a split, with negatives.
	Part = pairs.Part
	// SplitOptions configure a split.
	SplitOptions = pairs.SplitOptions
	// NegativeOptions configure negative edges.
	NegativeOptions = pairs.NegativeOptions
	// Decoder scores pairs of nodes by their embeddings.
	Decoder = pairs.Decoder
	// Relation is the relation that a split of a typed graph predicts.
	Relation = pairs.Relation
)

// The distributions of negatives.
const (
	Uniform    = pairs.Uniform
	ByDegree   = pairs.ByDegree
	ByDegree75 = pairs.ByDegree75
	InBatch    = pairs.InBatch
)

// RandomSplit splits the edges of a dataset at random; see [pairs.Random]. An edge and its reverse are in one
// part: one direction of a pair must not reveal the other. With types of edges, those of o.Relation are split,
// which must be given.
func RandomSplit(ds *dataset.Dataset, o SplitOptions) (*Split, error) {
	if err := checkSplit(ds, o); err != nil {
		return nil, err
	}
	return pairs.Random(ds.Graph, o)
}

// GivenSplit makes a split of the given validation and test edges of a dataset; see [pairs.Given].
func GivenSplit(ds *dataset.Dataset, val, test Edges, o SplitOptions) (*Split, error) {
	if err := checkSplit(ds, o); err != nil {
		return nil, err
	}
	return pairs.Given(ds.Graph, val, test, o)
}

// TimeSplit splits the edges of a dataset by their times: edges from val on are for validation, and those from
// test on for the test; see [pairs.ByTime].
func TimeSplit(ds *dataset.Dataset, val, test int64, o SplitOptions) (*Split, error) {
	if err := checkSplit(ds, o); err != nil {
		return nil, err
	}
	return pairs.ByTime(ds.Graph, nil, val, test, o)
}

// checkSplit returns an error for a dataset whose edges cannot be split, or not without a relation.
func checkSplit(ds *dataset.Dataset, o SplitOptions) error {
	if err := checkGraph(ds); err != nil {
		return err
	}
	if ds.Schema() != nil && o.Relation == "" {
		return fmt.Errorf("links: %s has types of edges, so say which of them to predict: set Relation (--relation) to one of %s", ds.Name(), ds.Schema().RelationNames())
	}
	if ds.Schema() == nil && o.Relation != "" {
		return fmt.Errorf("links: Relation is %q, but %s has no types of edges; leave it out", o.Relation, ds.Name())
	}
	return nil
}

func checkGraph(ds *dataset.Dataset) error {
	switch {
	case ds == nil:
		return fmt.Errorf("links: a split needs a dataset; get one from gnb.Load")
	case ds.Graph == nil && ds.Meta.Parts != nil && ds.Meta.Parts.Servers != "":
		return fmt.Errorf("links: a split needs all edges in one graph, and those of %s are at servers; load %s", ds.Name(), ds.Meta.Parts.WithCopy("topology"))
	case ds.Graph == nil && ds.Meta.Parts != nil:
		return fmt.Errorf("links: all edges in one graph are needed here, and %s is divided into parts without its topology; divide it with the topology (gnb partition without --no-topology), or, in a program that trains, split by links.RandomSplitOf", ds.Name())
	case ds.Graph == nil:
		return errors.New("links: " + ds.WhyNoGraph())
	}
	return nil
}

// checkRun returns an error for a dataset or topology that a run's loaders cannot have.
func checkRun(ds *dataset.Dataset, topology, what string) error {
	if err := checkGraph(ds); err != nil {
		return err
	}
	if topology == "divided" {
		return fmt.Errorf(`links: Topology is "divided", and %s needs the whole graph of %s on each machine; leave Topology out`, what, ds.Name())
	}
	return nil
}

// BCE is the binary cross-entropy of edges and negatives; see [pairs.BCE].
func BCE(scores *nn.Tensor, perEdge int) *nn.Loss { return pairs.BCE(scores, perEdge) }

// Softmax is the cross-entropy of each edge against its negatives; see [pairs.Softmax].
func Softmax(scores *nn.Tensor, perEdge int) *nn.Loss { return pairs.Softmax(scores, perEdge) }

// MaxMargin is the hinge loss of each edge and each of its negatives; see [pairs.MaxMargin].
func MaxMargin(scores *nn.Tensor, perEdge int, margin float64) *nn.Loss {
	return pairs.MaxMargin(scores, perEdge, margin)
}
