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
	// rows is what splits divide: nodes or graphs. classes, targets and duplicates are of them.
	rows       string
	classes    []classesOf
	graphs     *dataset.GraphSizes // of a dataset of many graphs
	targets    []targetsOf
	duplicates *dataset.Duplicates // nil without features
}

// targetsOf describes the targets of a split.
type targetsOf struct {
	Split   string                `json:"split"`
	Targets []dataset.TargetRange `json:"targets"`
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
		}
		of := ds
		if l.rows = "nodes"; ds.Graphs != nil {
			sizes := ds.GraphSizes()
			of, l.rows, l.graphs = ds.Graphs, "graphs", &sizes
		}
		if of.Labels != nil {
			if l.classes, err = classesOfSplits(of); err != nil {
				return err
			}
		}
		if of.Targets != nil {
			l.targets = append(l.targets, targetsOf{"", of.TargetRanges(nil)})
			for _, name := range of.SplitNames() {
				ids, err := of.Split(name)
				if err != nil {
					return err
				}
				l.targets = append(l.targets, targetsOf{name, of.TargetRanges(ids)})
			}
		}
		l.duplicates, err = ds.Duplicates(ctx)
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
	}
	if l.classes != nil {
		result["classes_of_splits"] = l.classes
	}
	if l.graphs != nil {
		result["graph_sizes"] = l.graphs
	}
	if l.targets != nil {
		result["targets_of_splits"] = l.targets
	}
	if l.duplicates != nil {
		result["duplicates"] = l.duplicates
	}
}

// String describes it in lines.
func (l *look) String() string {
	if l == nil {
		return "  the edges are in parts or at servers, so the graph's shape is not read\n"
	}
	var s strings.Builder
	if l.graphs != nil {
		fmt.Fprintf(&s, "  %s\n", l.graphs)
	}
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
			fmt.Fprintf(&s, "  classes in %s: no %s has a label\n", c.Split, strings.TrimSuffix(l.rows, "s"))
			continue
		}
		fmt.Fprintf(&s, "  classes in %s: %d of %d, with %d to %d %s each", c.Split, present, len(c.Count), least, most, l.rows)
		if c.Unlabeled > 0 {
			fmt.Fprintf(&s, "; %d %s without a label", c.Unlabeled, l.rows)
		}
		s.WriteString("\n")
	}
	for _, t := range l.targets {
		if strings.Contains(t.Split, "@") { // the JSON result has the other sets
			continue
		}
		where := ""
		if t.Split != "" {
			where = " in " + t.Split
		}
		for k, r := range t.Targets {
			if k == shownTargets {
				fmt.Fprintf(&s, "  %d more targets%s\n", len(t.Targets)-k, where)
				break
			}
			r.Name += where
			fmt.Fprintf(&s, "  target %s\n", r)
		}
	}
	if d := l.duplicates; d != nil {
		s.WriteString(describeDuplicates(d))
	}
	return s.String()
}

// shownTargets is the number of targets that are shown of each split; the JSON result has all.
const shownTargets = 5

func describeDuplicates(d *dataset.Duplicates) string {
	var s strings.Builder
	what, empty := "nodes with the features of an earlier one", "nodes whose features are all 0"
	if d.What == "graphs" {
		what, empty = "graphs equal to an earlier one", "graphs without nodes"
	}
	fmt.Fprintf(&s, "  %s: %d of %d", what, d.Copies, d.Searched)
	if d.Empty > 0 {
		fmt.Fprintf(&s, "; %s: %d", empty, d.Empty)
	}
	s.WriteString("\n")
	for _, l := range d.Leaks {
		equal := "equal one"
		if d.What == "nodes" {
			equal = "have the features of one"
		}
		fmt.Fprintf(&s, "  leak: %d %s of %s %s of %s", l.Rows, d.What, l.Split, equal, l.Of)
		if l.OtherLabel > 0 {
			fmt.Fprintf(&s, ", %d of them with another label", l.OtherLabel)
		}
		s.WriteString("\n")
	}
	return s.String()
}
