package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// look is what gnb data show says of a dataset's edges and labels.
type look struct {
	Shape     graphops.Shape
	Homophily *homophilyRow // nil without labels
	Classes   []classesOf
}

// homophilyRow is a [graphops.Homophily] as JSON, which has no NaN: nil means that nothing counts.
type homophilyRow struct {
	Edge     *float64 `json:"edge"`
	Node     *float64 `json:"node"`
	Adjusted *float64 `json:"adjusted"`
	Edges    int64    `json:"edges"`
	Nodes    int      `json:"nodes"`

	of graphops.Homophily
}

// classesOf counts the labels of a split.
type classesOf struct {
	Split     string  `json:"split"`
	Unlabeled int64   `json:"unlabeled"`
	Count     []int64 `json:"count"` // by class
}

// lookOf reads the edges and labels of a dataset. It returns nil if the edges are not here: in parts without the whole
// graph, or at servers.
func lookOf(ctx context.Context, ds *dataset.Dataset) (*look, error) {
	if ds.Graph == nil {
		return nil, nil
	}
	if err := divided.CheckOnce(ctx, ds, dataset.CheckOnceOptions{}); err != nil {
		return nil, err
	}
	l := &look{Shape: ds.Graph.Shape()}
	if ds.Labels == nil {
		return l, nil
	}
	h := ds.Graph.Homophily(ds.Labels)
	l.Homophily = &homophilyRow{orNull(h.Edge), orNull(h.Node), orNull(h.Adjusted), h.Edges, h.Nodes, h}
	for _, name := range ds.SplitNames() {
		ids, err := ds.Split(name)
		if err != nil {
			return nil, err
		}
		c := classesOf{Split: name, Count: make([]int64, ds.Classes())}
		for _, v := range ids {
			if y := ds.Labels[v]; y >= 0 && int(y) < len(c.Count) {
				c.Count[y]++
			} else {
				c.Unlabeled++
			}
		}
		l.Classes = append(l.Classes, c)
	}
	return l, nil
}

func orNull(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// String describes it in lines.
func (l *look) String() string {
	if l == nil {
		return "  the edges are in parts or at servers, so the graph's shape is not read\n"
	}
	var s strings.Builder
	for line := range strings.SplitSeq(l.Shape.String(), "\n") {
		fmt.Fprintf(&s, "  %s\n", line)
	}
	if l.Homophily != nil {
		fmt.Fprintf(&s, "  %s\n", l.Homophily.of)
	}
	for _, c := range l.Classes {
		present, least, most := 0, int64(math.MaxInt64), int64(0)
		for _, n := range c.Count {
			if n > 0 {
				present++
				least = min(least, n)
			}
			most = max(most, n)
		}
		if present == 0 {
			fmt.Fprintf(&s, "  classes in %s: no node has a label\n", c.Split)
			continue
		}
		fmt.Fprintf(&s, "  classes in %s: %d of %d, with %d to %d nodes each", c.Split, present, len(c.Count), least, most)
		if c.Unlabeled > 0 {
			fmt.Fprintf(&s, "; %d nodes without a label", c.Unlabeled)
		}
		s.WriteString("\n")
	}
	return s.String()
}
