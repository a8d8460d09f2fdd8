// Package dataset provides graphs with features, labels and splits of their nodes. A [Dataset]
// comes from a directory, which is mapped rather than read ([Open]), from a generator ([Karate], and
// those of package datasets), or from the caller, who fills in its fields.
//
// # Basics
//
// [Open] opens a directory; package datasets also finds and makes datasets by name. [Write] writes a
// directory, and [Dataset.Check] reads all of it and reports the first error. [Dataset.Share] and
// [OpenFD] share a dataset in memory with another process without a copy.
//
// # Format of a directory
//
//	metadata.json      sizes, name, origin: see [Metadata]
//	indptr.npy         int64   [nodes+1]  in-edges of v: indptr[v] to indptr[v+1]
//	indices.npy        int32   [edges]    their sources, ascending within a node
//	weights.npy        float32 [edges]    of the edges, in the order of indices; optional
//	edge_features.npy  float32 or float16 [edges, features of an edge], as weights; optional
//	edge_times.npy     int64   [edges]    times of the edges in any unit, as weights; optional
//	node_times.npy     int64   [nodes]    times from which the nodes exist, in the same unit; optional
//	edge_types.npy     uint16  [edges]    numbers of relations, as weights; with node_types
//	features.npy       float32 or float16 [nodes, features] row-major; optional
//	labels.npy         int32   [nodes], -1 where unknown; optional, and missing with "unlabelled" in metadata.json
//	split_NAME.npy     int32   [any] distinct node ids, for each split
//
//	targets.npy        float32 [nodes, targets] numbers to predict, NaN where unknown; optional
//
//	edge_split_NAME.npy int64 [any] ascending positions in indices, for each split of edges; optional
//
//	edge_rows.npy      int64 [rows] ascending positions in indices of the edges with numbers to predict; optional
//
//	events.npy         int64 [events] positions in indices of the edges of events, in the order of events; optional, with edge_times
//
// If metadata.json has node_types, the nodes of each type have successive ids, in the order of the types.
// A type with features of its own (feature_dim of the type) has them in features.TYPE.npy, or in the three
// files of compressed rows with .TYPE before .npy; there is then no features.npy.
//
// Features that are mostly zero are stored in compressed rows instead, as SciPy's
// csr_matrix has them; without features_values.npy each element is 1:
//
//	features_indptr.npy   int64   [nodes+1]
//	features_indices.npy  int32   [elements]  columns, ascending within a row
//	features_values.npy   float32 [elements]
//
// If a node can have several classes, labels.npy is int8 [nodes, classes] of 0, 1 and -1 (unknown).
// A dataset of many graphs also has the first node of each graph, and the node after the last:
//
//	graph_offsets.npy  int64 [graphs+1]
//
// and, with "graph_" before their names, the files of features, labels, targets and splits of its graphs: graph_labels.npy
// is int32 [graphs], graph_split_train.npy lists graphs. Their sizes are in "graphs" of metadata.json.
// Edges with numbers to predict have them, with "edge_answer_" before the names, in files of targets and splits:
// edge_answer_targets.npy is float32 [rows, targets], edge_answer_split_train.npy lists rows.
// "@" and a number distinguish several sets of splits: train@1, val@1 and test@1 are set 1, the
// plain names are set 0.
//
// The arrays are NumPy files, little-endian: np.load(path, mmap_mode="r") opens each. Labels and
// splits written as int64 are accepted, but need a converted copy.
//
// metadata.json also holds sums of the files and a digest of their whole content
// ([Dataset.Digests]). A directory made by hand does not need them.
//
// # Caveats
//
// The arrays of an opened dataset are in mapped files: writing to them faults, as does reading them
// after [Dataset.Close]. Reading them also faults if another process truncates the files; package
// mapped turns this fault into an error. Opening checks sizes only; [Dataset.Check] reads
// everything, and [Dataset.CheckOnce] does before a run.
package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"weak"

	"github.com/graphnb/graphnb/internal/phrase"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/dataset/registry"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// Dataset is a graph with its nodes' features, labels and splits. It is read-only once made and,
// except for Close, safe for concurrent use.
type Dataset struct {
	// Graph holds the edges with their weights, features and times ([graphops.Graph.EdgeWeights],
	// EdgeFeatures, EdgeTimes). It is nil in a divided dataset ([Parts]) whose parts alone have the
	// edges.
	Graph *graphops.Graph
	// Features [nodes, features] are dense features; nil if there are none or they are in
	// SparseFeatures.
	Features *Matrix
	// SparseFeatures [nodes, features] are features in compressed rows, or nil.
	SparseFeatures *Sparse
	// NodeFeatures are features by node type, of a graph with a schema ([graphops.Graph.Schema]): each
	// type has features of its own width or none. It is nil if no type has, or if all nodes have features
	// of one width in Features or SparseFeatures.
	NodeFeatures []NodeFeatures
	// Labels [nodes] are the classes, -1 for a node of unknown class; nil if there are no labels or
	// they are in MultiLabels.
	Labels []int32
	// MultiLabels [nodes, classes] are the targets if a node can have several classes; otherwise
	// nil.
	MultiLabels *Multi
	// Targets [nodes, targets] are numbers to predict of each node, float32, NaN where unknown; nil if there are none. A
	// node can have labels and targets.
	Targets *Matrix
	// NodeTimes [nodes] are the times from which the nodes exist, in the unit of the edges' times; nil if nodes have none. As of an earlier
	// time, a node and its edges are not there: see sample.AsOf.
	NodeTimes []int64
	// GraphOffsets [graphs+1] are set in a dataset of many graphs: the nodes of graph g are GraphOffsets[g] to
	// GraphOffsets[g+1]-1, and no edge leads from one graph to another. A graph can be without nodes.
	GraphOffsets []int64
	// Graphs describes the graphs of a dataset of many graphs: a dataset whose nodes are the graphs, with their features,
	// labels, targets and splits, and without edges. It is nil in a dataset that is one graph.
	Graphs *Dataset
	// EdgeRows [rows] are the edges with numbers to predict: their positions in Graph.Indices, ascending. Nil if there are none.
	EdgeRows []int64
	// EdgeAnswers has the Targets and Splits of these edges: a dataset whose nodes are EdgeRows, so that row i is that of edge
	// EdgeRows[i]. See [Dataset.SetEdgeTargets] and [Dataset.SplitEdges].
	EdgeAnswers *Dataset
	// Events [events] are the edges of a stream of events, such as messages: their positions in Graph.Indices, each once, in the
	// order of events, which is that of their times and, of events of one time, that of the input. Nil if the edges are no events, or
	// servers have the list as they have the edges (Meta.NumEvents says how many there are). Edges that are no events, such as added
	// reverses, are not in it. A divided dataset has the positions in the whole graph.
	Events []int64
	// Splits are distinct node ids by the split's name. Training uses the names "train", "val" and
	// "test"; "train@1" and so on are further sets of splits ([Dataset.WithSplitSet]).
	Splits map[string][]int32
	// EdgeSplits are positions of edges, ascending, by the split's name; "train", "val" and "test" have no
	// edge in common. See [Dataset.EdgesOf].
	EdgeSplits map[string][]int64
	// Arrays are further arrays by name: of a divided dataset and of its parts (package divided), and of [Dataset.Questions].
	Arrays map[string]Array
	// Meta describes the dataset. Its sizes are filled in from the arrays by Open, Write and Pack;
	// a caller that builds a Dataset sets Name and NumClasses.
	Meta Metadata

	dir    string
	files  fs.FS // of OpenFS, else nil
	stamps []stamp
	known  *known // describes the files of an opened dataset
	closer []io.Closer

	whole    *Dataset // the dataset that this is a view of, or nil
	splitSet int
	measured string   // the metric of WithMetric, or ""
	of       *Dataset // see ComputedFrom
}

// Metadata is the content of metadata.json.
type Metadata struct {
	FormatVersion int    `json:"format_version"`
	Name          string `json:"name"`
	NumNodes      int    `json:"num_nodes"`
	NumEdges      int64  `json:"num_edges"`   // directed
	FeatureDim    int    `json:"feature_dim"` // 0: no features.npy
	NumClasses    int    `json:"num_classes"` // 0: no labels.npy; see Unlabelled
	// ClassNames are the names of the classes, one per class; it is empty if the classes are only
	// numbers.
	ClassNames []string `json:"class_names,omitempty"`
	// TargetDim is the number of targets of a node; 0: no targets.npy. TargetNames are their names, or empty.
	TargetDim   int      `json:"target_dim,omitempty"`
	TargetNames []string `json:"target_names,omitempty"`
	// FeatureNames are the names of the features' columns, one per column; it is empty if they have none. The columns of
	// two datasets are compared by these names ([Dataset.InOrder]). EdgeFeatureNames are those of the edges' features.
	FeatureNames     []string `json:"feature_names,omitempty"`
	EdgeFeatureNames []string `json:"edge_feature_names,omitempty"`
	// Notices are what the reader of the original files guessed, dropped, merged or renumbered.
	Notices notice.List `json:"notices,omitempty"`
	// FeatureFormat is the storage format of the features: "" row-major, or one of FormatCSR and
	// FormatCSROnes.
	FeatureFormat string `json:"feature_format,omitempty"`
	Weighted      bool   `json:"weighted,omitempty"` // weights.npy exists
	// EdgeFeatureDim is the number of features of an edge; 0: no edge_features.npy.
	EdgeFeatureDim int `json:"edge_feature_dim,omitempty"`
	// EdgeFeatureDims are the numbers of features of each relation's edges where they differ: relation r has
	// edge_features.r.npy, or no file if it has none. EdgeFeatureDim is the largest. Parts have one width.
	EdgeFeatureDims []int `json:"edge_feature_dims,omitempty"`
	EdgeTimes       bool  `json:"edge_times,omitempty"` // edge_times.npy exists
	NodeTimes       bool  `json:"node_times,omitempty"` // node_times.npy exists
	// NumEvents is the number of events; 0: no events.npy. It is there too if servers have the edges and the list.
	NumEvents int64 `json:"num_events,omitempty"`
	// TimeUnit is the unit of the times of edges and nodes if they count since 1970 (UTC): s, ms, us or ns; "" if they are plain numbers.
	TimeUnit string `json:"time_unit,omitempty"`
	// FeaturesUntil is the last time of the events to which the features of edges are fitted, their means, deviations and categories; nil if
	// they are not known to be fitted to any.
	FeaturesUntil *int64 `json:"features_until,omitempty"`
	EdgeTypes     bool   `json:"edge_types,omitempty"`  // of a part: edge_types.npy exists; the whole dataset names the types
	MultiLabel    bool   `json:"multi_label,omitempty"` // labels.npy is a matrix
	// Unlabelled says that there is no labels.npy although NumClasses is not 0: the classes have numbers and names, and the file
	// of the nodes' classes was left out ([Dataset.WithoutAnswers]).
	Unlabelled bool `json:"unlabelled,omitempty"`
	// NodeTypes and Relations are the types of nodes and edges; without node types there are none, and
	// no edge_types.npy. A caller that builds a Dataset sets NodeTypes only if types have different
	// classes.
	NodeTypes []NodeType          `json:"node_types,omitempty"`
	Relations []graphops.Relation `json:"relations,omitempty"`
	// Parts is set for a dataset divided into parts, and Part for one of its parts.
	Parts *Parts  `json:"parts,omitempty"`
	Part  *PartOf `json:"part,omitempty"`
	// Arrays are the names of the further arrays ([Dataset.Arrays]).
	Arrays []string `json:"arrays,omitempty"`
	// Questions are the columns of answers of [Dataset.Questions], whose arrays are further ones.
	Questions []QuestionColumn `json:"questions,omitempty"`
	// Graphs is the metadata of [Dataset.Graphs]; its number of nodes is that of the graphs.
	Graphs *Metadata `json:"graphs,omitempty"`
	// EdgeAnswers is the metadata of [Dataset.EdgeAnswers]; its number of nodes is that of the edges.
	EdgeAnswers *Metadata `json:"edge_answers,omitempty"`
	// Undirected promises that every edge has its reverse.
	Undirected bool `json:"undirected"`
	// Splits are the names of the splits, in the order of [Dataset.SplitNames].
	Splits []string `json:"splits"`
	// EdgeSplits are the names of the splits of edges.
	EdgeSplits []string `json:"edge_splits,omitempty"`
	// OverlappingSplits permits nodes that are in two of train, val and test of a set.
	OverlappingSplits bool   `json:"overlapping_splits,omitempty"`
	Source            string `json:"source,omitempty"`   // its origin, or how it was made
	Licence           string `json:"licence,omitempty"`  // SPDX name if there is one
	Citation          string `json:"citation,omitempty"` // paper and DOI
	// Metric is the metric that the literature reports for the dataset: MetricAccuracy (also if
	// empty) or another of the Metric constants.
	Metric string `json:"metric,omitempty"`
	// Seed is the random seed with which the dataset was made, for example for its splits.
	Seed uint64 `json:"seed,omitempty"`
	// KnownAccuracies are published results for comparison.
	KnownAccuracies []KnownAccuracy `json:"known_accuracies,omitempty"`
}

// Values of Metadata.FeatureFormat other than "".
const (
	FormatCSR     = "csr"      // compressed rows with values
	FormatCSROnes = "csr_ones" // compressed rows in which each element is 1
)

// Values of Metadata.Metric.
const (
	MetricAccuracy = "accuracy" // the share of correct nodes, or of correct targets
	MetricROCAUC   = "roc_auc"  // area under the ROC curve
	MetricMicroF1  = "micro_f1" // F1 over all targets; equals accuracy if a node has one class
	MetricMacroF1  = "macro_f1" // mean of the classes' F1
	MetricAP       = "average_precision"
	MetricBalanced = "balanced_accuracy" // mean of the classes' recalls
	MetricMatthews = "mcc"               // Matthews' correlation coefficient
)

// Metrics are the values of Metadata.Metric.
var Metrics = []string{MetricAccuracy, MetricROCAUC, MetricAP, MetricMicroF1, MetricMacroF1, MetricBalanced, MetricMatthews}

// KnownAccuracy is a published result.
type KnownAccuracy = registry.Accuracy

// Metric returns the metric by which networks are measured on the dataset, one of [Metrics]: that of
// [Dataset.WithMetric], or the one that the literature reports.
func (d *Dataset) Metric() string { return cmp.Or(d.measured, d.Meta.Metric, MetricAccuracy) }

// WithMetric returns a view of the dataset on which networks are measured by another metric, one of [Metrics] or one that
// a program declares (gnb.DeclareMetric), by its name of lower-case letters, digits and _. It shares
// everything else, including Dir and digests. Closing the view closes the dataset. A run of gnb is measured by it, and datasets
// computed from the view keep it; files and graph servers do not.
func (d *Dataset) WithMetric(metric string) (*Dataset, error) {
	if metric == "" || strings.Trim(metric, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return nil, fmt.Errorf("dataset: there is no metric %q; there are %s, and those that a program declares, by names of lower-case letters, digits and _", metric, strings.Join(Metrics, ", "))
	}
	view := *d
	view.measured, view.whole, view.closer = metric, cmp.Or(d.whole, d), nil
	return &view, nil
}

// Name returns the dataset's name.
func (d *Dataset) Name() string { return d.Meta.Name }

// Nodes returns the number of nodes.
func (d *Dataset) Nodes() int {
	if d.Graph == nil {
		return d.Meta.NumNodes
	}
	return d.Graph.NumNodes()
}

// Edges returns the number of directed edges: an undirected edge counts twice.
func (d *Dataset) Edges() int64 {
	if d.Graph == nil {
		return d.Meta.NumEdges
	}
	return d.Graph.NumEdges()
}

// FeatureDim returns the number of features per node, 0 if there are none.
func (d *Dataset) FeatureDim() int {
	switch {
	case d.Features != nil:
		return d.Features.Cols
	case d.SparseFeatures != nil:
		return d.SparseFeatures.Cols
	case d.Meta.Parts != nil:
		return d.Meta.FeatureDim
	}
	return 0
}

// EdgeFeatureDim returns the number of features per edge, 0 if there are none.
func (d *Dataset) EdgeFeatureDim() int { return d.EdgeShape().FeatureCols }

// EdgeFeatureDimOf returns the number of features of each edge of relation r, which is smaller than EdgeFeatureDim where
// relations have features of their own width, and 0 if its edges have none.
func (d *Dataset) EdgeFeatureDimOf(r int) int {
	switch dims := d.Meta.EdgeFeatureDims; {
	case d.Graph != nil && d.Graph.EdgeFeatures != nil:
		return d.Graph.EdgeFeatures.Width(r)
	case d.Graph == nil && r >= 0 && r < len(dims):
		return dims[r]
	}
	return d.EdgeFeatureDim()
}

// EdgeShape returns what each edge has: by the metadata if the parts of a divided dataset have the edges.
func (d *Dataset) EdgeShape() graphops.EdgeShape {
	if d.Graph != nil {
		return d.Graph.EdgeShape()
	}
	m := &d.Meta
	return graphops.EdgeShape{Weighted: m.Weighted, FeatureCols: m.EdgeFeatureDim, Half: m.Parts != nil && m.Parts.EdgeFeatureType == "f16", Times: m.EdgeTimes, Typed: m.EdgeTypes || len(m.NodeTypes) > 0}
}

// HasEdgeTimes reports whether the edges have times.
func (d *Dataset) HasEdgeTimes() bool { return d.EdgeShape().Times }

// Classes returns the number of classes, 0 if there are no labels.
func (d *Dataset) Classes() int {
	if d.MultiLabels != nil {
		return d.MultiLabels.Cols
	}
	return d.Meta.NumClasses
}

// TargetDim returns the number of targets of a node, 0 if there are none.
func (d *Dataset) TargetDim() int {
	if d.Targets != nil {
		return d.Targets.Cols
	}
	return d.Meta.TargetDim
}

// NumGraphs returns the number of graphs of a dataset of many graphs, 0 for a dataset that is one graph.
func (d *Dataset) NumGraphs() int { return max(0, len(d.GraphOffsets)-1) }

// Dir returns the directory from which the dataset was opened, or "" if it is in memory.
func (d *Dataset) Dir() string { return d.dir }

// ComputedFrom records that a dataset in memory was computed from another one alone, so that a process that opens
// that one's directory can compute it again: see [Dataset.Origin].
func (d *Dataset) ComputedFrom(o *Dataset) { d.of = o }

// Origin returns the directory of the dataset or, if that is in memory, of the one that it was computed from, and the set
// of splits whose names are plain there (see [Dataset.WithSplitSet]). The directory is "" if there is none.
func (d *Dataset) Origin() (dir string, splitSet int) {
	if d.dir == "" && d.of != nil {
		return d.of.Origin()
	}
	return d.dir, d.splitSet
}

// Mapped reports whether the arrays are those of mapped files or of mapped memory, as [Open] and
// [OpenFD] make them: then several processes share their pages. A derived dataset, such as from
// [Dataset.WithSelfLoops], has its own arrays.
func (d *Dataset) Mapped() bool {
	if d.whole != nil {
		return d.whole.Mapped()
	}
	return len(d.closer) > 0
}

// ErrNoSplit is the error of [Dataset.Split] for a name that does not exist.
var ErrNoSplit = errors.New("no such split")

// Split returns the node ids of a split, in the dataset's own memory. For an unknown name the error
// lists the existing splits.
func (d *Dataset) Split(name string) ([]int32, error) {
	if ids, ok := d.Splits[name]; ok {
		return ids, nil
	}
	have := "it has none"
	if names := d.plainSplits(); len(names) > 0 {
		have = "it has " + strings.Join(names, ", ")
	}
	if n := d.SplitSets(); n > 1 {
		have += fmt.Sprintf(" in each of %d split sets", n)
	}
	return nil, fmt.Errorf("dataset: %s: %w %q; %s", d.Name(), ErrNoSplit, name, have)
}

// SplitNames returns the names of the splits: train, val and test first, then the others in
// alphabetical order, then those of the further sets.
func (d *Dataset) SplitNames() []string {
	return sortedSplits(d.Splits)
}

// plainSplits returns the names of the splits that belong to no further set.
func (d *Dataset) plainSplits() []string {
	return slices.DeleteFunc(d.SplitNames(), func(name string) bool { return strings.Contains(name, "@") })
}

// String returns a summary in one line: sizes, splits, and the bytes on disk or in memory.
func (d *Dataset) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s nodes", d.Name(), group(int64(d.Nodes())))
	if schema := d.Schema(); schema != nil {
		fmt.Fprintf(&s, " of %s, %s edges of %s", phrase.Count(len(schema.Nodes), "type"), group(d.Edges()), phrase.Count(len(schema.Relations), "relation"))
	} else {
		fmt.Fprintf(&s, ", %s edges", group(d.Edges()))
	}
	edges := d.EdgeShape()
	if edges.Weighted {
		s.WriteString(" with weights")
	}
	if edges.FeatureCols > 0 {
		fmt.Fprintf(&s, " with %s features", group(int64(edges.FeatureCols)))
		if edges.Half {
			s.WriteString(" (float16)")
		}
	}
	if edges.Times {
		s.WriteString(" with times")
	}
	if n := max(int64(len(d.Events)), d.Meta.NumEvents); n > 0 {
		fmt.Fprintf(&s, ", %s events", group(n))
	}
	if d.NodeTimes != nil {
		s.WriteString(", times of nodes")
	}
	if types := len(d.NodeFeatures); types > 0 {
		with := 0
		for _, x := range d.NodeFeatures {
			with += min(x.Cols(), 1)
		}
		fmt.Fprintf(&s, ", features of %s", phrase.Count(with, "type"))
	}
	if n := d.FeatureDim(); n > 0 {
		fmt.Fprintf(&s, ", %s features", group(int64(n)))
		if d.SparseFeatures != nil {
			s.WriteString(" (sparse)")
		}
		if d.Features != nil && d.Features.Half() {
			s.WriteString(" (float16)")
		}
	}
	if n := d.Classes(); n > 0 {
		fmt.Fprintf(&s, ", %s classes", group(int64(n)))
		if d.MultiLabels != nil {
			s.WriteString(" (any number per node)")
		}
	}
	if names := d.edgeSplitNames(); len(names) > 0 {
		fmt.Fprintf(&s, ", edges split into %s", strings.Join(names, ", "))
	}
	if n := d.TargetDim(); n > 0 {
		fmt.Fprintf(&s, ", %s", phrase.Count(n, "target"))
	}
	if d.Graphs != nil {
		fmt.Fprintf(&s, ", in %s", d.Graphs.asRows(d.NumGraphs(), "graphs"))
	}
	if d.EdgeAnswers != nil {
		fmt.Fprintf(&s, ", with numbers of %s", d.EdgeAnswers.asRows(len(d.EdgeRows), "edges"))
	}
	for i, name := range d.plainSplits() {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		fmt.Fprintf(&s, "%s%s %s", sep, name, group(int64(len(d.Splits[name]))))
	}
	switch n := d.SplitSets(); {
	case d.whole != nil && n > 1:
		fmt.Fprintf(&s, " (split set %d of %d)", d.splitSet, n)
	case n > 1:
		fmt.Fprintf(&s, "; %d split sets", n)
	}
	if p := d.Meta.Parts; p != nil {
		fmt.Fprintf(&s, "; in %d parts", p.Count)
	}
	where := "memory"
	if d.dir != "" {
		where = d.dir
	}
	parts, bytes := d.PartBytes()
	fmt.Fprintf(&s, "; %s in %s", phrase.Bytes(d.Bytes()+bytes), where)
	if parts > 0 {
		fmt.Fprintf(&s, ", of which %s are of the %s here", phrase.Bytes(bytes), phrase.Count(parts, "part"))
	}
	return s.String()
}

// asRows describes d as n rows of a kind: the graphs of a dataset of many, or edges.
func (d *Dataset) asRows(n int, kind string) string {
	var of []string
	if n := d.FeatureDim(); n > 0 {
		of = append(of, phrase.Count(n, "feature"))
	}
	if n := d.Classes(); n > 0 {
		of = append(of, fmt.Sprintf("%s classes", group(int64(n))))
	}
	if n := d.TargetDim(); n > 0 {
		of = append(of, phrase.Count(n, "target"))
	}
	for _, name := range d.plainSplits() {
		of = append(of, name+" "+group(int64(len(d.Splits[name]))))
	}
	if sets := d.SplitSets(); sets > 1 {
		of = append(of, fmt.Sprintf("%d split sets", sets))
	}
	text := group(int64(n)) + " " + kind
	if of != nil {
		text += " (" + strings.Join(of, ", ") + ")"
	}
	return text
}

// Bytes returns the size of the arrays: graph, weights, features, times, labels and splits, without those of parts
// ([Dataset.PartBytes]). If they are mapped from files, only the pages that are read take memory.
func (d *Dataset) Bytes() int64 {
	n := 4 * int64(len(d.Labels))
	if g := d.Graph; g != nil {
		n += 8*int64(len(g.Indptr)) + 4*int64(len(g.Indices)) + 4*int64(len(g.EdgeWeights)) + 8*int64(len(g.EdgeTimes)) + 2*int64(len(g.EdgeTypes))
		if x := g.EdgeFeatures; x != nil {
			for _, a := range edgeFeatureArrays(x) {
				n += int64(len(a.body))
			}
		}
	}
	for _, a := range d.typeArrays() {
		n += int64(len(a.body))
	}
	for _, at := range d.EdgeSplits {
		n += 8 * int64(len(at))
	}
	if d.Features != nil {
		n += 4*int64(len(d.Features.F32)) + 2*int64(len(d.Features.F16))
	}
	if s := d.SparseFeatures; s != nil {
		n += 8*int64(len(s.Indptr)) + 4*int64(len(s.Indices)+len(s.Values))
	}
	if d.MultiLabels != nil {
		n += int64(len(d.MultiLabels.Data))
	}
	if d.Targets != nil {
		n += 4 * int64(len(d.Targets.F32))
	}
	if d.Graphs != nil {
		n += d.Graphs.Bytes() + 8*int64(len(d.GraphOffsets))
	}
	if d.EdgeAnswers != nil {
		n += d.EdgeAnswers.Bytes() + 8*int64(len(d.EdgeRows))
	}
	n += 8 * int64(len(d.Events)+len(d.NodeTimes))
	for _, ids := range d.Splits {
		n += 4 * int64(len(ids))
	}
	for _, a := range d.Arrays {
		n += 4*int64(len(a.I32)) + 8*int64(len(a.I64))
	}
	return n
}

// group formats n with a comma between thousands.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Close unmaps the files of an opened dataset, whose arrays must not be used afterwards, and frees
// the memory file of a shared one ([Dataset.Share]).
func (d *Dataset) Close() error {
	unshare(weak.Make(d))
	if d.whole != nil {
		return d.whole.Close()
	}
	var errs []error
	for _, c := range d.closer {
		errs = append(errs, c.Close())
	}
	d.closer = nil
	return errors.Join(errs...)
}

// Matrix is a [Rows, Cols] matrix, row-major. Its elements are float32 or float16; float16 takes
// half the memory and is converted to float32 when read.
type Matrix struct {
	Rows, Cols int
	F32        []float32 // [Rows·Cols]
	// F16 [Rows·Cols] holds the elements as the bits of IEEE 754 binary16 numbers, which have 11
	// significant bits and reach up to 65504; F32 is then nil.
	F16 []uint16

	of   *Matrix // if not nil, the matrix is the rows of this one, and only written
	rows []int32
	draw func(first int, to []float32) // see Drawn
}

// Drawn returns a matrix whose rows are computed when it is written ([Write]), in pieces of 16 MiB: it can only be written.
// draw sets to to the rows from first on; it gives the same values for a row each time.
func Drawn(rows, cols int, draw func(first int, to []float32)) *Matrix {
	return &Matrix{Rows: rows, Cols: cols, draw: draw}
}

// elsewhere reports whether the values are not in F32 and F16, so that the matrix can only be written.
func (m *Matrix) elsewhere() bool { return m.of != nil || m.draw != nil }

// floats returns n elements from at on, of a matrix in float32.
func (m *Matrix) floats(at, n int) []float32 {
	if m.draw == nil {
		return m.F32[at : at+n]
	}
	first, end := at/m.Cols, (at+n+m.Cols-1)/m.Cols
	x := make([]float32, (end-first)*m.Cols)
	m.draw(first, x)
	return x[at-first*m.Cols:][:n:n]
}

// Half reports whether the elements are float16.
func (m *Matrix) Half() bool { return m.F16 != nil || m.of != nil && m.of.Half() }

// Row returns row i: the matrix's own memory if the elements are float32, otherwise a converted
// copy.
func (m *Matrix) Row(i int) []float32 {
	lo, hi := i*m.Cols, (i+1)*m.Cols
	if m.Half() {
		row := make([]float32, m.Cols)
		simd.FromHalf(row, m.F16[lo:hi])
		return row
	}
	return m.F32[lo:hi:hi]
}

// Float32 returns the matrix in float32: itself, or a converted copy.
func (m *Matrix) Float32() *Matrix {
	if !m.Half() {
		return m
	}
	f := &Matrix{Rows: m.Rows, Cols: m.Cols, F32: make([]float32, len(m.F16))}
	parallel.For(0, len(m.F16), 1<<16, func(lo, hi int) { simd.FromHalf(f.F32[lo:hi], m.F16[lo:hi]) })
	return f
}

// Float16 returns the matrix in float16, each element rounded to nearest, ties to even: itself, or
// a converted copy. It returns an error that names an element out of float16's range.
func (m *Matrix) Float16() (*Matrix, error) {
	if m.Half() {
		return m, nil
	}
	return m.float16(nil)
}

func (m *Matrix) float16(r *rounding) (*Matrix, error) {
	h := &Matrix{Rows: m.Rows, Cols: m.Cols, F16: make([]uint16, len(m.F32))}
	return h, m.toHalf(h.F16, 0, r)
}

// toHalf converts the elements from at on; r, unless nil, counts what the conversion changes.
func (m *Matrix) toHalf(dst []uint16, at int, r *rounding) error {
	src := m.floats(at, len(dst))
	bad := firstBad(len(src), 1<<16, func(i int) bool { return !(src[i] < 65520 && src[i] > -65520) })
	if bad >= 0 {
		bad += at
		return fmt.Errorf("features: row %d, column %d is %v, but a float16 holds numbers only up to %d: scale the features or keep float32", bad/m.Cols, bad%m.Cols, src[bad-at], simd.MaxHalf)
	}
	parallel.For(0, len(dst), 1<<16, func(lo, hi int) {
		simd.ToHalf(dst[lo:hi], src[lo:hi])
		r.add(src[lo:hi], dst[lo:hi])
	})
	return nil
}

// Gather copies the rows ids into dst [len(ids), Cols] as float32, on the given number of threads
// (0: GOMAXPROCS). If ids is nil it copies the first rows, as many as dst holds. It panics if dst
// has another size, and on an id outside the matrix. Cost: one pass over the rows, prefetched.
func (m *Matrix) Gather(dst []float32, ids []int32, threads int) {
	if m.Cols == 0 {
		return
	}
	rows := len(ids)
	if ids == nil {
		rows = len(dst) / m.Cols
	}
	if len(dst) != rows*m.Cols || ids == nil && rows > m.Rows {
		panic(fmt.Sprintf("dataset: gathering %d rows of a [%d, %d] matrix into %d values", rows, m.Rows, m.Cols, len(dst)))
	}
	const far = 1 << 20           // 4 MiB, more than any second-level cache
	grain := max(1, 1<<14/m.Cols) // 64 KiB per chunk
	table := simd.Rows{Data: m.F32, Half: m.F16, Stride: m.Cols}
	parallel.For(threads, rows, grain, func(lo, hi int) {
		switch {
		case ids == nil && m.Half():
			simd.FromHalf(dst[lo*m.Cols:hi*m.Cols], m.F16[lo*m.Cols:hi*m.Cols])
			return
		case ids == nil:
			copy(dst[lo*m.Cols:hi*m.Cols], m.F32[lo*m.Cols:])
			return
		}
		part := dst[lo*m.Cols : hi*m.Cols]
		if len(dst) >= far {
			simd.GatherRowsFar(part, &table, m.Cols, ids[lo:hi])
		} else {
			simd.GatherRows(part, &table, m.Cols, ids[lo:hi])
		}
	})
}
