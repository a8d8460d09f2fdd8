package convert

import (
	"context"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/tabular"
)

// Tables are the nodes and the edges of a graph in memory, for [WriteTables].
type Tables struct {
	// Nodes is the number of nodes; their ids are 0 to Nodes-1.
	Nodes int
	// Src and Dst are the ends of each edge.
	Src, Dst []int32
	// Weights are the edges' weights; nil if they have none.
	Weights []float32
	// EdgeFeatures and EdgeTimes are features and times of the edges; nil if they have none.
	EdgeFeatures *graphops.EdgeFeatures
	EdgeTimes    []int64
	// Features are the dense features of the nodes, or nil.
	Features *dataset.Matrix
	// Labels are the classes, -1 where unknown; nil if there are none or they are in MultiLabels.
	Labels []int32
	// MultiLabels are the targets if a node can have several classes; otherwise nil.
	MultiLabels *dataset.Multi
	// Splits are node ids by the split's name.
	Splits map[string][]int32
	// Notices are what their reader dropped or could not represent; the dataset keeps them.
	Notices notice.List
	// Source describes the origin of the tables.
	Source string
}

var _ Reader = tables{}

// tables is the format of [Tables].
type tables struct{}

func (tables) Name() string  { return "tables" }
func (tables) About() string { return "tables of nodes and edges in memory" }
func (tables) detect(*source) bool {
	return false
}

func (tables) read(context.Context, *source, Options) (*dataset.Dataset, error) {
	return nil, tabular.Errorf("tables in memory are no files")
}

// CheckName returns an error if name cannot be the name of a dataset, which is part of file names: a name has at most
// 100 letters, digits, ".", "_" and "-", and begins with a letter or digit.
func CheckName(name string) error {
	if !namePattern.MatchString(name) || strings.Contains(name, "..") {
		return tabular.Errorf("the name is %.120q; a name has at most 100 letters, digits, ., _ and -, and begins with a letter or digit", name)
	}
	return nil
}

// WriteTables makes a dataset of tables, with the steps and checks of [Convert], and writes it as the directory dst,
// which must not exist. It takes over the slices of t. Options.Name is required; Format, Features and Relabel are ignored.
func WriteTables(ctx context.Context, dst string, t Tables, o Options) (Stats, error) {
	start := time.Now()
	if err := CheckName(o.Name); err != nil {
		return Stats{}, err
	}
	o, said := o.hear()
	for _, n := range t.Notices {
		o.said.Add(n)
	}
	if err := dataset.CheckFeatureType(o.FeatureType); err != nil {
		return Stats{}, tabular.Errorf("%w", err)
	}
	o.Features, o.EdgeFeatures, o.EdgeTimes = "", "", ""
	switch {
	case t.Nodes < 1 || t.Nodes > MaxNodes:
		return Stats{}, tabular.Errorf("there are %d nodes; node ids are int32, so there can be 1 to %d", t.Nodes, MaxNodes)
	case len(t.Src) == 0:
		return Stats{}, tabular.Errorf("there are no edges")
	}
	for i, y := range t.Labels {
		c, err := tabular.Class(float64(y))
		if err != nil {
			return Stats{}, tabular.Errorf("the label of node %d: %w", i, err)
		}
		t.Labels[i] = c
	}
	n := tabular.Classes(t.Labels)
	if t.Labels != nil && n == 0 {
		return Stats{}, tabular.Errorf("%w", tabular.ErrNoLabels)
	}
	e := edges{nodes: t.Nodes, src: t.Src, dst: t.Dst, w: t.Weights, x: t.EdgeFeatures, times: t.EdgeTimes}
	t.Src, t.Dst, t.Weights, t.EdgeFeatures, t.EdgeTimes = nil, nil, nil, nil, nil
	for i, w := range e.w {
		if !(w >= 0) {
			return Stats{}, tabular.Errorf("the weight of edge %d is %v; it is a finite number and not negative", i, w)
		}
	}
	d, err := e.dataset(o)
	if err != nil {
		return Stats{}, err
	}
	d.Features, d.Labels, d.MultiLabels, d.Meta.NumClasses, d.Meta.Source = t.Features, t.Labels, t.MultiLabels, n, t.Source
	for name, ids := range t.Splits {
		if len(ids) > 0 {
			d.Splits[name] = ids
		}
	}
	if d.MultiLabels != nil {
		d.Meta.NumClasses, d.Meta.Metric = d.MultiLabels.Cols, dataset.MetricROCAUC
	}
	if d, err = finish(ctx, d, nil, tables{}, nil, o); err != nil {
		return Stats{}, err
	}
	d.Meta.OverlappingSplits = o.OverlappingSplits
	if err := d.CheckWith(ctx, o.stage("check")); err != nil {
		return Stats{}, err
	}
	d.Meta.Notices = dataset.KeepNotices(*said)
	if err := dataset.WriteWith(ctx, dst, d, dataset.WriteOptions{Progress: o.stage("write"), Checked: true, FeatureType: o.FeatureType, Said: o.said}); err != nil {
		return Stats{}, err
	}
	return Stats{
		Format: tables{}.Name(), Name: d.Name(), Nodes: d.Nodes(), Edges: d.Edges(), Features: d.FeatureDim(), Classes: d.Classes(), EdgeFeatures: d.EdgeFeatureDim(), EdgeTimes: d.HasEdgeTimes(), Notices: said.Done(),
		PeakRSSBytes: machine.PeakRSS(), Seconds: time.Since(start).Seconds(),
	}, nil
}
