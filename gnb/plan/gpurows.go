package plan

import (
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/plane"
	"github.com/graphnb/graphnb/graphops/hotness"
)

// gpuReads counts the rows that shares read, of one share of each rank out of two: what is read most in half of the shares is
// looked for in the other half, as if the rank's GPU had got it before.
type gpuReads struct {
	rows  int // that stay on a GPU
	nodes int
	ranks map[int]*gpuRank
}

type gpuRank struct {
	score  []float32 // of each node, in the first half
	shares int
	later  []gpuShare
}

// gpuShare is the nodes of a share, and those of them, in their order, whose rows others have.
type gpuShare struct{ ids, away []int32 }

// gpuReads returns nil for jobs in which no rows stay on GPUs.
func (j *Job) gpuReads() *gpuReads {
	if !j.GPU || !j.gathered() || j.GPUCache == "" {
		return nil
	}
	share, bytes, _ := plane.ParseSize("GPUCache", j.GPUCache) // a run reports the error
	rows := int(bytes / max(1, rowBytes(j.Data)))
	if share > 0 {
		rows = int(share * float64(j.Data.Nodes()) / float64(j.Workers))
	}
	return &gpuReads{rows: rows, nodes: j.Data.Nodes(), ranks: map[int]*gpuRank{}}
}

func (g *gpuReads) add(s sampled) {
	if g == nil {
		return
	}
	r := g.ranks[s.rank]
	if r == nil {
		r = &gpuRank{score: make([]float32, g.nodes)}
		g.ranks[s.rank] = r
	}
	ids := s.blocks[0].SrcIDs()
	if r.shares++; r.shares%2 == 0 {
		r.later = append(r.later, gpuShare{slices.Clone(ids), s.away})
		return
	}
	for _, v := range ids {
		r.score[v]++
	}
	for _, v := range s.away {
		r.score[v] += feed.FarWeight - 1
	}
}

// found returns which share of the rows of a share is on the GPU: of those that others have, and of all.
func (g *gpuReads) found() (away, all float64) {
	reads := 0
	for _, r := range g.ranks {
		on := make([]bool, g.nodes)
		for _, v := range hotness.Hottest(r.score, make([]int32, g.nodes), -1, g.rows) {
			on[v] = true
		}
		count := func(ids []int32) (n float64) {
			for _, v := range ids {
				if on[v] {
					n++
				}
			}
			return n
		}
		for _, s := range r.later {
			reads += len(s.ids)
			away += count(s.away)
			all += count(s.ids)
		}
	}
	return away / float64(max(1, reads)), all / float64(max(1, reads))
}
