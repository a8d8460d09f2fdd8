package convert

import (
	"context"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// numpyReader reads folders of NumPy arrays under PyG's names: edge_index.npy [2, edges], and
// optionally edge_weight.npy [edges], edge_attr.npy (or edge_features.npy, edge_feat.npy) [edges,
// features], edge_time.npy (or edge_times.npy) [edges], x.npy (or features.npy, feats.npy, node_feat.npy) [nodes,
// features], y.npy (or labels.npy, label.npy, node_label.npy) [nodes] or, for several labels per
// node, [nodes, classes], and for each of train, val (or valid) and test either NAME_mask.npy
// [nodes] or NAME_idx.npy (or NAME.npy) of node ids.
type numpyReader struct{}

func (numpyReader) Name() string { return "numpy" }

// Folder implements [FolderReader].
func (numpyReader) Folder() bool { return true }

func (numpyReader) About() string {
	return "a folder of NumPy arrays: edge_index.npy [2, edges] and maybe x.npy, y.npy, edge_weight.npy, edge_attr.npy, edge_time.npy, train_mask.npy or train_idx.npy, …"
}

func (numpyReader) Detect(s *Source) bool { return s.Has("edge_index.npy") }

func (numpyReader) Read(ctx context.Context, s *Source, o Options) (*dataset.Dataset, error) {
	x := s.Find("x.npy", "features.npy", "feats.npy", "node_feat.npy")
	if o.Features != "" {
		x = ""
	}
	d, err := s.numpyGraph(ctx, x, o)
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
	for name, files := range map[string][]string{
		"train": {"train"}, "val": {"val", "valid", "validation"}, "test": {"test"},
	} {
		for _, file := range files {
			found := s.Find(file+"_mask.npy", file+"_idx.npy", file+".npy", file+"_ids.npy")
			if err := s.numpySplit(d, name, found, found == file+"_mask.npy"); err != nil {
				return nil, err
			}
		}
	}
	for _, file := range s.Files { // trainMask.npy, is_train.npy, …
		stem, ok := strings.CutSuffix(file, ".npy")
		if part, is := columns.MaskOf(stem); ok && is && !s.Meter.WasRead(s.Path, file) && d.Splits[columns.Parts[part]] == nil {
			if err := s.numpySplit(d, columns.Parts[part], file, true); err != nil {
				return nil, err
			}
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: file, What: "it is the mask of the split " + columns.Parts[part] + ", by its name", Count: int64(len(d.Splits[columns.Parts[part]])), Of: int64(d.Nodes())})
		}
	}
	return d, nil
}

// numpyGraph reads the edges and the labels. The number of nodes is the number of rows of the
// labels, else of the features, else the largest id plus 1.
func (s *Source) numpyGraph(ctx context.Context, x string, o Options) (*dataset.Dataset, error) {
	nodes := int64(-1)
	var y *input.Table
	wrong := input.Errorf
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
	d, err := e.dataset(o)
	if err == nil && y != nil {
		err = setColumn(d, y, wrong, o)
	}
	return d, err
}

func (s *Source) edgeWeights(numEdges int) ([]float32, error) {
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

// numpySplit reads a split, a mask or a list of ids, if there is one.
func (s *Source) numpySplit(d *dataset.Dataset, name, found string, mask bool) error {
	if found == "" {
		return nil
	}
	a, err := s.array(found, "a part of the split")
	if err != nil {
		return err
	}
	defer a.Close()
	if len(a.Shape) != 1 {
		return a.wrong("it is %s; a split is a list of node ids, or of True and False for each node", a.Describe())
	}
	ids := []int32{}
	if mask {
		if a.Len() != int64(d.Nodes()) {
			return a.wrong("it has %d entries for %d nodes", a.Len(), d.Nodes())
		}
		err = a.eachWhole(func(i, x int64) error {
			if x != 0 {
				ids = append(ids, int32(i))
			}
			return nil
		})
	} else {
		seen := make([]uint64, (d.Nodes()+63)/64)
		err = a.eachWhole(func(i, x int64) error {
			if err := input.Claim(seen, x, d.Nodes()); err != nil {
				return a.wrong("entry %d: %w", i, err)
			}
			ids = append(ids, int32(x))
			return nil
		})
	}
	d.Splits[name] = ids
	return err
}
