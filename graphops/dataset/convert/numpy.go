package convert

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

var _ folderReader = numpyReader{}

// numpyReader reads folders of NumPy arrays under PyG's names: edge_index.npy [2, edges], and
// optionally edge_weight.npy [edges], edge_attr.npy (or edge_features.npy, edge_feat.npy) [edges,
// features], edge_time.npy (or edge_times.npy) [edges], x.npy (or features.npy, feats.npy, node_feat.npy) [nodes,
// features], y.npy (or labels.npy, label.npy, node_label.npy) [nodes] or, for several labels per
// node, [nodes, classes], targets.npy (or target.npy) [nodes] or [nodes, targets] of numbers to predict, NaN where unknown, and
// for each of train, val (or valid) and test either NAME_mask.npy
// [nodes] or NAME_idx.npy (or NAME.npy) of node ids; edge_targets.npy (or edge_target.npy) [edges] or [edges, targets] of numbers to
// predict of edges, and for their splits edge_NAME_mask.npy [edges] or edge_NAME_idx.npy of places in edge_index. Masks [nodes, sets] are of several sets of splits; one [nodes]
// beside them is of every set.
type numpyReader struct{}

func (numpyReader) Name() string { return "numpy" }

// Folder implements [folderReader].
func (numpyReader) Folder() bool { return true }

func (numpyReader) About() string {
	return "a folder of NumPy arrays: edge_index.npy [2, edges] and maybe x.npy, y.npy, targets.npy, edge_targets.npy, edge_weight.npy, edge_attr.npy, edge_time.npy, train_mask.npy or train_idx.npy, …"
}

func (numpyReader) detect(s *source) bool { return s.Has("edge_index.npy") }

func (numpyReader) read(ctx context.Context, s *source, o Options) (*dataset.Dataset, error) {
	x := s.Find("x.npy", "features.npy", "feats.npy", "node_feat.npy")
	if o.Features != "" {
		x = ""
	}
	targets := s.Find("targets.npy", "target.npy")
	d, err := s.numpyGraph(ctx, cmp.Or(x, targets), o)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if x != "" {
		if d.Features, err = s.features(x, d.Nodes()); err != nil {
			return nil, err
		}
	}
	if targets != "" {
		if d.Targets != nil {
			return nil, tabular.Errorf("reading %s: %s and the labels both have numbers to predict; keep one of them", s.Path, targets)
		}
		if d.Targets, err = s.numpyTargets(targets, "node", d.Nodes()); err != nil {
			return nil, err
		}
	}
	return d, s.numpySplits(d, o)
}

// numpyTargets reads the numbers to predict of n nodes or edges.
func (s *source) numpyTargets(name, what string, n int) (*dataset.Matrix, error) {
	a, err := s.array(name, "the "+what+"s' targets")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	t := &dataset.Matrix{Rows: n, Cols: 1}
	if len(a.Shape) == 2 {
		t.Cols = a.Shape[1]
	}
	if len(a.Shape) < 1 || len(a.Shape) > 2 || a.Shape[0] != n || t.Cols < 1 {
		return nil, a.wrong("it is %s; targets have an entry or a row for each of the %d %ss", a.Describe(), n, what)
	}
	if err := a.eachFloat(func(i int64, x float32) error {
		if math.IsInf(float64(x), 0) {
			return a.wrong("entry %d is %v; a target is a number that float32 holds, or NaN if unknown", i, x)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	t.F32, err = a.load()
	return t, err
}

// numpySplits reads the splits: for each the first file of its names.
func (s *source) numpySplits(d *dataset.Dataset, o Options) error {
	var parts [len(columns.Parts)][][]int32 // by set
	for k, names := range [len(columns.Parts)][]string{{"train"}, {"val", "valid", "validation"}, {"test"}} {
		for _, name := range names {
			found := s.Find(name+"_mask.npy", name+"_idx.npy", name+".npy", name+"_ids.npy")
			if found == "" || parts[k] != nil { // the files that were not read are named
				continue
			}
			var err error
			if parts[k], err = s.numpySplit(d.Nodes(), found, found == name+"_mask.npy"); err != nil {
				return err
			}
		}
	}
	for _, file := range s.Files { // trainMask.npy, is_train.npy, …
		stem, ok := strings.CutSuffix(file, ".npy")
		k, is := columns.MaskOf(stem)
		if !ok || !is || parts[k] != nil || s.Meter.WasRead(s.Path, file) {
			continue
		}
		var err error
		if parts[k], err = s.numpySplit(d.Nodes(), file, true); err != nil {
			return err
		}
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: file, What: "it is the mask of the split " + columns.Parts[k] + ", by its name", Count: int64(len(parts[k][0])), Of: int64(d.Nodes())})
	}
	sets, of := 0, ""
	for k, p := range parts {
		if len(p) > sets {
			sets, of = len(p), columns.Parts[k]
		}
	}
	for k, p := range parts {
		switch {
		case p == nil:
			continue
		case len(p) == 1 && sets > 1:
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: s.Base(""), What: "the split " + columns.Parts[k] + " is that of every set", Count: int64(sets)})
			p = slices.Repeat(p, sets)
		case len(p) != sets:
			return tabular.Errorf("reading %s: there are masks of %d sets of the split %s, and of %d sets of the split %s; each set has one of each", s.Path, len(p), columns.Parts[k], sets, of)
		}
		for set, ids := range p {
			d.Splits[dataset.SplitSetName(columns.Parts[k], set)] = ids
		}
	}
	if sets > 1 {
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: s.Base(""), What: "the masks are of several sets of splits, numbered from 0", Count: int64(sets), Option: "gnb train --split 1 takes the set 1"})
	}
	return nil
}

// numpyGraph reads the edges and the labels. The number of nodes is the number of rows of the
// labels, else of the features, else the largest id plus 1.
func (s *source) numpyGraph(ctx context.Context, x string, o Options) (*dataset.Dataset, error) {
	nodes := int64(-1)
	var y *tabular.Table
	wrong := tabular.Errorf
	if name := s.Find("y.npy", "labels.npy", "label.npy", "node_label.npy"); name != "" {
		a, err := s.array(name, "the nodes' labels")
		if err != nil {
			return nil, err
		}
		defer a.Close()
		if y, err = a.table(); err != nil {
			return nil, err
		}
		nodes, wrong = int64(y.Rows), a.wrong
	} else if x != "" {
		a, err := s.array(x, "the nodes' features")
		if err != nil {
			return nil, err
		}
		if len(a.Shape) > 0 { // else, the error comes when the features are read
			nodes = int64(a.Shape[0])
		}
		if nodes > MaxNodes {
			return nil, a.wrong("it is %s; node ids are int32, so there can be %d nodes", a.Describe(), MaxNodes)
		}
		if err := a.Close(); err != nil {
			return nil, err
		}
	}
	f, err := s.Open("edge_index.npy", "the edges")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := arrayOf(f)
	if err != nil {
		return nil, err
	}
	limit := nodes
	if nodes < 0 {
		limit = MaxNodes
	}
	e, err := a.edgeIndex(limit)
	if err != nil {
		return nil, err
	}
	if nodes < 0 {
		l := edgeList{src: e.src, dst: e.dst, most: -1}
		if len(e.src) > 0 {
			l.most = int64(max(slices.Max(e.src), slices.Max(e.dst)))
		}
		o.Relabel = false
		if e, err = l.number(f, 0, o); err != nil {
			return nil, err
		}
	} else {
		e.nodes = int(nodes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.Has("edge_weight.npy") {
		if e.w, err = s.edgeWeights(len(e.src)); err != nil {
			return nil, err
		}
	}
	if name := s.Find(edgeFeatureFiles...); name != "" && o.EdgeFeatures == "" {
		if e.x, err = s.edgeFeatures(name, len(e.src)); err != nil {
			return nil, err
		}
	}
	if name := s.Find(edgeTimeFiles...); name != "" && o.EdgeTimes == "" {
		if e.times, err = s.edgeTimes(name, len(e.src)); err != nil {
			return nil, err
		}
	}
	if name := s.Find("edge_targets.npy", "edge_target.npy"); name != "" {
		if err = s.numpyEdgeTargets(e, name); err != nil {
			return nil, err
		}
	}
	d, err := e.dataset(o)
	if err == nil && y != nil {
		err = setColumn(d, y, wrong, o)
	}
	return d, err
}

// numpyEdgeTargets reads the numbers to predict of edges, and their splits.
func (s *source) numpyEdgeTargets(e *edges, name string) (err error) {
	if e.targets, err = s.numpyTargets(name, "edge", len(e.src)); err != nil {
		return err
	}
	for k, part := range columns.Parts {
		found := s.Find("edge_"+part+"_mask.npy", "edge_"+part+"_idx.npy")
		if found == "" {
			continue
		}
		sets, err := s.numpySplit(len(e.src), found, strings.HasSuffix(found, "_mask.npy"))
		if err != nil {
			return err
		}
		if len(sets) > 1 {
			return tabular.Errorf("reading %s: %s has masks of %d sets of splits; edges have one", s.Path, found, len(sets))
		}
		e.parts[k] = sets[0]
	}
	return nil
}

func (s *source) edgeWeights(numEdges int) ([]float32, error) {
	a, err := s.array("edge_weight.npy", "the edges' weights")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if a.Len() != int64(numEdges) {
		return nil, a.wrong("it is %s, but there are %d edges", a.Describe(), numEdges)
	}
	return a.weights()
}

// maxSets bounds the sets of splits, each of which is three files of the result.
const maxSets = 1000

// numpySplit reads the nodes of a split by set: a mask of each set, or a list of ids.
func (s *source) numpySplit(nodes int, found string, mask bool) ([][]int32, error) {
	a, err := s.array(found, "a part of the split")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	sets := 1
	switch {
	case mask && len(a.Shape) == 2 && a.Shape[1] > 0 && a.Shape[1] <= maxSets:
		sets = a.Shape[1]
	case len(a.Shape) != 1:
		return nil, a.wrong("it is %s; a split is a list of node ids, or of True and False for each node, and masks of several sets are [nodes, sets]", a.Describe())
	}
	ids := make([][]int32, sets)
	for set := range ids {
		ids[set] = []int32{}
	}
	if !mask {
		seen := make([]uint64, (nodes+63)/64)
		return ids, a.eachWhole(func(i, x int64) error {
			if err := tabular.Claim(seen, x, nodes); err != nil {
				return a.wrong("entry %d: %w", i, err)
			}
			ids[0] = append(ids[0], int32(x))
			return nil
		})
	}
	if a.Shape[0] != nodes {
		return nil, a.wrong("it has %d entries for %d nodes", a.Shape[0], nodes)
	}
	return ids, a.eachWhole(func(i, x int64) error {
		if x != 0 && x != 1 {
			return a.wrong("entry %d is %d; a mask is of True and False, or of 0 and 1", i, x)
		}
		if set := i % int64(sets); x != 0 {
			ids[set] = append(ids[set], int32(i/int64(sets)))
		}
		return nil
	})
}
