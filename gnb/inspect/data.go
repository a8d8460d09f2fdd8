package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Data is what a dataset's edges, features, labels and targets look like. Its JSON form has null for numbers that nothing counts for.
type Data struct {
	Dataset string
	// Shape is nil if the edges are not here, in parts without the whole graph or at servers; then nothing else is known.
	Shape     *graphops.Shape
	Homophily *graphops.Homophily // nil without labels of nodes
	// Rows is what splits divide, "nodes" or "graphs". Classes, Targets and Duplicates are of them; Targets are also of edges.
	Rows       string
	Classes    []SplitClasses      // of each split; nil without labels
	Targets    []SplitTargets      // of all rows and of each split; nil without targets
	GraphSizes *dataset.GraphSizes // of a dataset of many graphs
	Duplicates *dataset.Duplicates // nil without features
	Events     *temporal.Stats     // of a dataset of events, else nil
	NodeTimes  *NodeTimes          // nil if nodes have no times

	elsewhere bool // labels and features are in parts or at servers
	// For the picture.
	classNames []string
	degrees    []float64 // nodes with 0, 1, 2 to 3, 4 to 7, … in-edges
	sizes      []float64 // nodes of each graph
	targets    []targetValues
}

// SplitClasses counts the labels of a split.
type SplitClasses struct {
	Split     string  `json:"split"`
	Unlabeled int64   `json:"unlabeled"`
	Count     []int64 `json:"count"` // by class
}

// SplitTargets describes the targets of a split, or of all rows if Split is "".
type SplitTargets struct {
	Split   string                `json:"split"`
	Edges   bool                  `json:"edges,omitempty"` // of edges
	Targets []dataset.TargetRange `json:"targets"`
}

// targetValues are known values of a target.
type targetValues struct {
	name   string
	rows   string // what has them
	values []float64
}

// Dataset reads the edges, features and labels of a dataset, and draws them in a cell: degrees, homophily, classes and sizes of the
// splits, targets. Print the result for the same as text, with components, missing values, duplicates and leaks; "gnb data show" prints
// it too. Cost: a few passes over edges and features, and about 20 bytes for each node. An error is one of reading.
func Dataset(ctx context.Context, ds *gnb.Dataset) (*Data, error) {
	d, err := DataOf(ctx, ds)
	if err != nil || d.Shape == nil {
		return d, err
	}
	return d, d.Figure().Show()
}

// DataOf is [Dataset] without the drawing in a cell.
func DataOf(ctx context.Context, ds *gnb.Dataset) (*Data, error) {
	if ds == nil {
		return nil, fmt.Errorf("inspect: there is no dataset")
	}
	d := &Data{Dataset: ds.Name(), Rows: "nodes"}
	if ds.Graph == nil {
		return d, nil
	}
	if err := divided.CheckOnce(ctx, ds, dataset.CheckOnceOptions{}); err != nil {
		return nil, err
	}
	err := mapped.Guard(func() error { return d.read(ctx, ds) })
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Data) read(ctx context.Context, ds *gnb.Dataset) (err error) {
	shape := ds.Graph.Shape()
	d.Shape, d.degrees = &shape, degreesOf(ds.Graph)
	if ds.Labels != nil {
		h := ds.Graph.Homophily(ds.Labels)
		d.Homophily = &h
	}
	of := ds
	if ds.Graphs != nil {
		sizes := ds.GraphSizes()
		of, d.Rows, d.GraphSizes = ds.Graphs, "graphs", &sizes
		for g := range int32(ds.NumGraphs()) {
			lo, hi := ds.GraphSpan(g)
			d.sizes = append(d.sizes, float64(hi-lo))
		}
	}
	if of.Labels != nil {
		d.classNames = of.Meta.ClassNames
		if d.Classes, err = classesOfSplits(of); err != nil {
			return err
		}
	}
	d.elsewhere = ds.Meta.Parts != nil
	d.addTargets(of, d.Rows)
	if ds.EdgeAnswers != nil {
		d.addTargets(ds.EdgeAnswers, "edges")
	}
	if len(ds.Events) > 0 {
		e, err := temporal.Of(ds)
		if err != nil {
			return err
		}
		stats := temporal.StatsOf(e)
		stats.Unit = ds.Meta.TimeUnit
		d.Events = &stats
	}
	if ds.NodeTimes != nil {
		d.NodeTimes = nodeTimesOf(ds)
	}
	d.Duplicates, err = ds.Duplicates(ctx)
	return err
}

// addTargets describes the targets of rows, in all and by split.
func (d *Data) addTargets(of *gnb.Dataset, rows string) {
	if of.Targets == nil {
		return
	}
	edges := rows == "edges"
	d.Targets = append(d.Targets, SplitTargets{"", edges, of.TargetRanges(nil)})
	for _, name := range of.SplitNames() {
		ids := of.Splits[name]
		if ids == nil { // nil would mean all rows
			ids = []int32{}
		}
		d.Targets = append(d.Targets, SplitTargets{name, edges, of.TargetRanges(ids)})
	}
	d.targets = append(d.targets, targetsOf(of, rows)...)
}

// degreesOf counts the nodes with 0, 1, 2 to 3, 4 to 7, … in-edges.
func degreesOf(g *graphops.Graph) []float64 {
	var counts []float64
	for v := range int32(g.NumNodes()) {
		k := bits.Len(uint(g.InDegree(v)))
		for len(counts) <= k {
			counts = append(counts, 0)
		}
		counts[k]++
	}
	return counts
}

// Bounds of what the picture shows.
const (
	drawnTargets = 3
	drawnValues  = 1 << 16 // of a target; of more, every k-th row
)

// targetsOf returns known values of the first targets.
func targetsOf(ds *gnb.Dataset, of string) []targetValues {
	t := ds.Targets
	rows := t.Rows
	every := max(1, rows/drawnValues)
	var all []targetValues
	for k, r := range ds.TargetRanges(nil)[:min(t.Cols, drawnTargets)] {
		v := targetValues{name: r.Name, rows: of}
		for row := 0; row < rows; row += every {
			if y := float64(t.F32[row*t.Cols+k]); !math.IsNaN(y) {
				v.values = append(v.values, y)
			}
		}
		all = append(all, v)
	}
	return all
}

func classesOfSplits(ds *gnb.Dataset) (all []SplitClasses, err error) {
	for _, name := range ds.SplitNames() {
		ids, err := ds.Split(name)
		if err != nil {
			return nil, err
		}
		c := SplitClasses{Split: name, Count: make([]int64, ds.Classes())}
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

// String describes it in lines.
func (d *Data) String() string {
	if d.Shape == nil {
		return "  the edges are in parts or at servers, so the graph's shape is not read\n"
	}
	var s strings.Builder
	if d.GraphSizes != nil {
		fmt.Fprintf(&s, "  %s\n", d.GraphSizes)
	}
	for line := range strings.SplitSeq(d.Shape.String(), "\n") {
		fmt.Fprintf(&s, "  %s\n", line)
	}
	if d.Homophily != nil {
		fmt.Fprintf(&s, "  %s\n", d.Homophily)
	}
	if d.Events != nil {
		for line := range strings.SplitSeq(d.Events.String(), "\n") {
			fmt.Fprintf(&s, "  %s\n", line)
		}
	}
	if d.NodeTimes != nil {
		fmt.Fprintf(&s, "  %s\n", d.NodeTimes)
	}
	for _, c := range d.Classes {
		present, least, most := 0, int64(math.MaxInt64), int64(0)
		for _, n := range c.Count {
			if n > 0 {
				present++
				least = min(least, n)
			}
			most = max(most, n)
		}
		if present == 0 {
			fmt.Fprintf(&s, "  classes in %s: no %s has a label\n", c.Split, strings.TrimSuffix(d.Rows, "s"))
			continue
		}
		fmt.Fprintf(&s, "  classes in %s: %d of %d, with %d to %d %s each", c.Split, present, len(c.Count), least, most, d.Rows)
		if c.Unlabeled > 0 {
			fmt.Fprintf(&s, "; %d %s without a label", c.Unlabeled, d.Rows)
		}
		s.WriteString("\n")
	}
	for _, t := range d.Targets {
		if strings.Contains(t.Split, "@") { // the JSON result has the other sets
			continue
		}
		where := ""
		if t.Edges {
			where = " of edges"
		}
		if t.Split != "" {
			where += " in " + t.Split
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
	if d.Duplicates != nil {
		s.WriteString(describeDuplicates(d.Duplicates))
	}
	if d.elsewhere {
		s.WriteString("  labels and features are in parts or at servers, so homophily, classes, equal features and leaks are not read\n")
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

// fields are the values of the JSON form that are known.
func (d *Data) fields() map[string]any {
	f := map[string]any{}
	if d.Shape != nil {
		f["shape"] = d.Shape
	}
	if h := d.Homophily; h != nil {
		n := func(v float64) runfile.Number { return runfile.Number(v) }
		f["homophily"] = map[string]any{"edge": n(h.Edge), "node": n(h.Node), "adjusted": n(h.Adjusted), "edges": h.Edges, "nodes": h.Nodes}
	}
	if d.Classes != nil {
		f["classes_of_splits"] = d.Classes
	}
	if d.GraphSizes != nil {
		f["graph_sizes"] = d.GraphSizes
	}
	if d.Targets != nil {
		f["targets_of_splits"] = d.Targets
	}
	if d.Duplicates != nil {
		f["duplicates"] = d.Duplicates
	}
	if d.Events != nil {
		f["event_stats"] = d.Events
	}
	if d.NodeTimes != nil {
		f["node_times"] = d.NodeTimes
	}
	return f
}

// MarshalJSON implements [json.Marshaler].
func (d *Data) MarshalJSON() ([]byte, error) { return json.Marshal(d.fields()) }

// Figure returns the dataset as a picture: degrees, homophily, the share of each class in each split, the sizes of graphs and of
// splits, and the first targets.
func (d *Data) Figure() *figure.Figure {
	s := d.Shape
	if s == nil {
		s = &graphops.Shape{}
	}
	f := figure.New(d.Dataset).Note(d.note(s))
	if d.sizes != nil {
		f.Histogram(figure.Histogram{Title: "graphs by size", Values: d.sizes, XLabel: "nodes"})
	}
	degrees := figure.Bars{Title: "nodes by in-degree", XLabel: "in-edges, at least"}
	for k, n := range d.degrees {
		degrees.Names, degrees.Values = append(degrees.Names, fmt.Sprint(1<<k>>1)), append(degrees.Values, n)
	}
	f.Bars(degrees)
	if h := d.Homophily; h != nil && h.Edges > 0 {
		f.Bars(figure.Bars{Title: "homophily", Names: []string{"edge", "node", "adjusted"}, Values: []float64{h.Edge, h.Node, h.Adjusted}, Max: 1})
	}
	if shares := d.shares(); len(shares.Columns) > 0 {
		f.HeatMap(shares)
	}
	for _, t := range d.targets {
		f.Histogram(figure.Histogram{Title: t.rows + " by " + t.name, Values: t.values, XLabel: t.name})
	}
	return f
}

func (d *Data) note(s *graphops.Shape) string {
	parts := []string{phrase.Count(s.Nodes, "node"), fmt.Sprintf("%d edges", s.Edges)}
	if g := d.GraphSizes; g != nil {
		parts = append(parts, phrase.Count(g.Graphs, "graph"))
	} else {
		parts = append(parts, phrase.Count(s.Components, "component"))
	}
	if c := d.Duplicates; c != nil {
		leaks := int64(0)
		for _, l := range c.Leaks {
			leaks += l.Rows
		}
		parts = append(parts, fmt.Sprintf("%d duplicates and %d leaks of %s", c.Copies, leaks, d.Rows))
	}
	return strings.Join(parts, ", ")
}

// shares returns the share of each class in each split of the first set.
func (d *Data) shares() figure.HeatMap {
	h := figure.HeatMap{Title: "classes, % of a split", RowLabel: "class", ColLabel: "split"}
	for _, c := range d.Classes {
		total := int64(0)
		for _, n := range c.Count {
			total += n
		}
		if total == 0 || strings.Contains(c.Split, "@") {
			continue
		}
		h.Columns = append(h.Columns, c.Split)
		for k, n := range c.Count {
			if len(h.Rows) == k {
				name := fmt.Sprint(k)
				if k < len(d.classNames) {
					name = d.classNames[k]
				}
				h.Rows, h.Values, h.Texts = append(h.Rows, name), append(h.Values, nil), append(h.Texts, nil)
			}
			share := 100 * float64(n) / float64(total)
			h.Values[k], h.Texts[k] = append(h.Values[k], share), append(h.Texts[k], fmt.Sprintf("%.0f", share))
		}
	}
	return h
}
