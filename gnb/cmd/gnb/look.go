package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/mapped"
)

// look is what gnb data show says of a dataset's edges and labels.
type look struct {
	shape     graphops.Shape
	homophily *graphops.Homophily // nil without labels
	classes   []classesOf
}

// homophilyRow is a [graphops.Homophily] in the JSON result, with null for what nothing counts for.
type homophilyRow struct {
	Edge     runfile.Number `json:"edge"`
	Node     runfile.Number `json:"node"`
	Adjusted runfile.Number `json:"adjusted"`
	Edges    int64          `json:"edges"`
	Nodes    int            `json:"nodes"`
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
	l := &look{}
	err := mapped.Guard(func() (err error) {
		l.shape = ds.Graph.Shape()
		if ds.Labels != nil {
			h := ds.Graph.Homophily(ds.Labels)
			l.homophily = &h
			l.classes, err = classesOfSplits(ds)
		}
		return err
	})
	return l, err
}

func classesOfSplits(ds *dataset.Dataset) (all []classesOf, err error) {
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
		all = append(all, c)
	}
	return all, nil
}

// addTo adds it to the fields of a JSON result.
func (l *look) addTo(result map[string]any) {
	if l == nil {
		return
	}
	result["shape"] = l.shape
	if h := l.homophily; h != nil {
		result["homophily"] = homophilyRow{runfile.Number(h.Edge), runfile.Number(h.Node), runfile.Number(h.Adjusted), h.Edges, h.Nodes}
		result["classes_of_splits"] = l.classes
	}
}

// String describes it in lines.
func (l *look) String() string {
	if l == nil {
		return "  the edges are in parts or at servers, so the graph's shape is not read\n"
	}
	var s strings.Builder
	for line := range strings.SplitSeq(l.shape.String(), "\n") {
		fmt.Fprintf(&s, "  %s\n", line)
	}
	if l.homophily != nil {
		fmt.Fprintf(&s, "  %s\n", l.homophily)
	}
	for _, c := range l.classes {
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
