// Package hotness predicts which rows of features the batches of training read, and computes what a cache of these
// rows would save.
//
// # Basics
//
// A [Job] describes the batches: the graph, its division into parts, the fanouts, the seeds and the batch size. Each
// part computes the share of every batch whose seeds it owns. The hotness of a node for a part is the expected number
// of that part's batches per epoch that read the node's row:
//
//	hot, err := hotness.Propagate(ctx, job)                         // from probabilities, without sampling
//	hot, err := hotness.Simulate(ctx, job, hotness.Epochs{Seed: 1}) // counted in sampled epochs
//	cached := hotness.Hottest(hot[part], job.Of, part, rows)        // the best rows of other parts for a static cache
//
// [Record] samples an epoch and returns the rows that each batch of a part reads from other parts: a [Trace]. Its
// methods count the reads that caches of different kinds would miss.
//
// # Determinism
//
// All results are functions of their arguments; the number of threads does not change them. A sampled batch depends on
// nothing but its seeds, the random seed, the epoch and the step, so [Simulate] and [Record] with the seed of a run
// count exactly the reads of that run.
package hotness

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Job describes the batches of training on a divided graph. Every field but Only and Threads is required.
type Job struct {
	Graph   *graphops.Graph
	Of      []int32 // the part of each node, [NumNodes]
	Parts   int
	Fanouts sample.Fanouts // the fanout of the hop next to the seeds first
	Seeds   []int32        // the training nodes, distinct
	// Batch is the number of seeds of a step over all parts. A part's share of a step is the seeds that it owns.
	Batch int
	// Only lists the parts whose batches are counted; nil means all. Results for other parts are nil.
	Only    []int
	Threads int // 0 means GOMAXPROCS
}

// Steps is the number of steps of an epoch.
func (j *Job) Steps() int { return (len(j.Seeds) + j.Batch - 1) / j.Batch }

// check returns the parts to count, ascending.
func (j *Job) check() ([]int, error) {
	if j.Graph == nil || len(j.Graph.Indptr) == 0 {
		return nil, errors.New("hotness: the job has no Graph")
	}
	n := j.Graph.NumNodes()
	if j.Parts < 1 || len(j.Of) != n {
		return nil, fmt.Errorf("hotness: the job divides %d nodes into %d parts, but the graph has %d nodes; Of needs the part of each node", len(j.Of), j.Parts, n)
	}
	if j.Batch < 1 {
		return nil, fmt.Errorf("hotness: the batch size is %d; it is the number of seeds of a step over all parts, at least 1", j.Batch)
	}
	if len(j.Fanouts) == 0 {
		return nil, errors.New("hotness: the job has no Fanouts; sample.Fanouts{15, 10, 5} samples three hops")
	}
	if err := j.Fanouts.Check(); err != nil {
		return nil, err
	}
	for v, p := range j.Of {
		if p < 0 || int(p) >= j.Parts {
			return nil, fmt.Errorf("hotness: node %d is in part %d, but the parts are 0 to %d", v, p, j.Parts-1)
		}
	}
	for i, v := range j.Seeds {
		if v < 0 || int(v) >= n {
			return nil, fmt.Errorf("hotness: seed %d at position %d is not a node: the graph's nodes are 0 to %d", v, i, n-1)
		}
	}
	if j.Only == nil {
		all := make([]int, j.Parts)
		for p := range all {
			all[p] = p
		}
		return all, nil
	}
	only := slices.Clone(j.Only)
	slices.Sort(only)
	only = slices.Compact(only)
	if len(only) > 0 && (only[0] < 0 || only[len(only)-1] >= j.Parts) {
		return nil, fmt.Errorf("hotness: Only is %v, but the parts are 0 to %d", j.Only, j.Parts-1)
	}
	return only, nil
}

// Degrees scores a node by the number of its out-edges, for [Hottest]: the order of a cache that knows neither seeds
// nor division.
func Degrees(g *graphops.Graph) []float32 {
	score := make([]float32, g.NumNodes())
	for _, u := range g.Indices {
		score[u]++
	}
	return score
}

// Halo scores a node by the number of its edges into a part, for [Hottest]: nodes of other parts with an edge into the
// part are its halo.
func Halo(g *graphops.Graph, of []int32, part int) []float32 {
	score := make([]float32, g.NumNodes())
	for v, p := range of {
		if int(p) == part {
			for _, u := range g.InNeighbors(int32(v)) {
				score[u]++
			}
		}
	}
	return score
}

// Hottest returns up to n nodes of other parts than the given one, with the highest scores first and equal scores by
// id. Nodes of score 0 are left out. Cost: a sort of the nodes with a score.
func Hottest(score []float32, of []int32, part, n int) []int32 {
	counts := func(v int, s float32) bool { return s > 0 && int(of[v]) != part }
	some := 0
	for v, s := range score {
		if counts(v, s) {
			some++
		}
	}
	// The bits of positive numbers are in the order of the numbers. A key has those of the score, the highest first, and the id.
	keys := make([]uint64, 0, some)
	for v, s := range score {
		if counts(v, s) {
			keys = append(keys, uint64(^math.Float32bits(s))<<32|uint64(v))
		}
	}
	slices.Sort(keys)
	ids := make([]int32, max(0, min(n, some)))
	for i := range ids {
		ids[i] = int32(uint32(keys[i]))
	}
	return ids
}
