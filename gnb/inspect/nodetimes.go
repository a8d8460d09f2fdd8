package inspect

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// NodeTimes describe the times from which nodes exist.
type NodeTimes struct {
	// Nodes have a time; the others exist always. First and Last are the times of the first and the last of them, in the unit of the edges' times.
	Nodes int    `json:"nodes"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Unit  string `json:"unit,omitempty"`
	// Earlier is the number of edges that are earlier than one of their nodes, of Edges.
	Earlier int64 `json:"earlier_edges"`
	Edges   int64 `json:"edges"`
}

// nodeTimesOf describes the times of nodes.
func nodeTimesOf(ds *gnb.Dataset) *NodeTimes {
	t := &NodeTimes{Unit: ds.Meta.TimeUnit, Earlier: ds.EdgesBeforeNodes(), Edges: ds.Edges()}
	for _, at := range ds.NodeTimes {
		if at == math.MinInt64 {
			continue
		}
		if t.Nodes == 0 {
			t.First, t.Last = at, at
		}
		t.Nodes++
		t.First, t.Last = min(t.First, at), max(t.Last, at)
	}
	return t
}

// String describes the times in a line.
func (t *NodeTimes) String() string {
	if t.Nodes == 0 {
		return "times of nodes: all nodes exist always"
	}
	return fmt.Sprintf("times of nodes: %s from %s to %s; %d of %s are earlier than one of their nodes", phrase.Count(t.Nodes, "node"), temporal.Moment(t.First, t.Unit), temporal.Moment(t.Last, t.Unit), t.Earlier, phrase.Count(int(t.Edges), "edge"))
}
