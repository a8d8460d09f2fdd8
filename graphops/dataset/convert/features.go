package convert

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/encode"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/tabular"
)

// maxFeatures is the largest number of generated feature columns.
const maxFeatures = 1 << 20

// checkFeatures checks the value of --features before any file is read.
func checkFeatures(spec string) error {
	kind, value, has := strings.Cut(spec, ":")
	switch {
	case spec == "" || strings.HasSuffix(spec, ".npy"):
		return nil
	case has && kind == "one-hot" && value != "":
		return nil
	case spec == "degree" || spec == "constant" || spec == onlyLabels || spec == onlyAttributes:
		return nil
	case has && kind == "degree":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 1<<16 {
			return tabular.Errorf("--features %s: the largest degree is a number from 1 to %d", spec, 1<<16)
		}
		return nil
	case has && kind == "random":
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 1<<16 {
			return tabular.Errorf("--features %s: random features need a number of columns from 1 to %d", spec, 1<<16)
		}
		return nil
	}
	return tabular.Errorf("--features is %q; it is FILE.npy, one-hot:FILE.csv, random:DIM, degree, degree:MAX or constant, and for TU folders labels or attributes", spec)
}

// addFeatures replaces the features of d by those of Options.Features.
func addFeatures(ctx context.Context, d *dataset.Dataset, m *tabular.Meter, o Options) (err error) {
	kind, value, _ := strings.Cut(o.Features, ":")
	d.Features, d.SparseFeatures = nil, nil
	switch {
	case kind == "one-hot":
		d.SparseFeatures, err = oneHot(ctx, value, d, m, o)
	case kind == "degree":
		most, _ := strconv.Atoi(value)
		d.SparseFeatures = degreeFeatures(d, most, o)
	case kind == "constant":
		d.Features = &dataset.Matrix{Rows: d.Nodes(), Cols: 1, F32: slices.Repeat([]float32{1}, d.Nodes())}
		d.Meta.FeatureNames = []string{"constant"}
	case kind == "random":
		dim, _ := strconv.Atoi(value) // checkFeatures has checked it
		d.Features = randomFeatures(d.Nodes(), dim, o)
	default:
		s := fileSource(o.Features, m)
		d.Features, err = s.features("", d.Nodes())
	}
	return err
}

// oneHot reads a line of class ids for each node and makes features from them: the class at
// position r of a line is a 1 in column r·classes + class, so the columns of each position form a
// block. Lines may have different lengths or be empty; a missing position is zeros.
func oneHot(ctx context.Context, path string, d *dataset.Dataset, m *tabular.Meter, o Options) (*dataset.Sparse, error) {
	f, err := tabular.OpenFile(path, m)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// If the dataset has no classes, the file's ids determine their number.
	limit := int64(d.Classes())
	if limit == 0 {
		limit = 1 << 16
	}
	s := &dataset.Sparse{Indptr: make([]int64, 1, f.Expect(int64(d.Nodes()), 1)+1)}
	most, ranks := int64(-1), 0
	err = tabular.ReadWholes(ctx, f, o.Threads, func(number int64, values []int64) error {
		if s.Rows == d.Nodes() {
			return f.Wrong("line %d: it has more lines than the graph has nodes, %d", number, d.Nodes())
		}
		for _, c := range values {
			if c < 0 || c >= limit {
				return f.Wrong("line %d: the class %d is out of range: classes are 0 to %d", number, c, limit-1)
			}
			most = max(most, c)
			s.Indices = append(s.Indices, int32(c))
		}
		ranks = max(ranks, len(values))
		s.Rows++
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d.Classes() == 0 {
		limit = most + 1
	}
	switch {
	case s.Rows != d.Nodes():
		return nil, f.Wrong("it has %d lines, but the graph has %d nodes: a line for each node is needed, which may be empty", s.Rows, d.Nodes())
	case ranks == 0:
		return nil, f.Wrong("it names no class")
	case int64(ranks)*limit > maxFeatures:
		return nil, f.Wrong("%d places of %d classes would be %d features; there can be %d", ranks, limit, int64(ranks)*limit, maxFeatures)
	}
	s.Cols = ranks * int(limit)
	for v := range s.Rows {
		row := s.Indices[s.Indptr[v]:s.Indptr[v+1]]
		for r := range row {
			row[r] += int32(r * int(limit)) // ascends with r
		}
	}
	return s, nil
}

// randomKey separates these random numbers from those of a training run with the same seed.
const randomKey = 0x636f6e7665727421

// randomFeatures draws values of mean 0 and variance 1: the scaled sum of four uniform integers,
// which is close to normal. They depend only on the seed.
func randomFeatures(nodes, dim int, o Options) *dataset.Matrix {
	x := &dataset.Matrix{Rows: nodes, Cols: dim, F32: make([]float32, nodes*dim)}
	scale := 1 / math.Sqrt(4*(1<<32-1)/12.0)
	parallel.For(o.Threads, nodes, max(1, 1<<14/dim), func(lo, hi int) {
		for v := lo; v < hi; v++ {
			u := philox.NewStream(o.Seed^randomKey, int64(v), 0, philox.C3(philox.User, siteFeatures, 0))
			row := x.Row(v)
			for j := range row {
				a, b := u.Next(), u.Next()
				row[j] = float32(float64(int32(a&0xffff+a>>16+b&0xffff+b>>16)-2*0xffff) * scale)
			}
		}
	})
	return x
}

// The philox counter sites of a conversion's random numbers.
const (
	siteFeatures = iota
	siteSplit
	siteTargets
	siteSplitSizes
)

// splitTargets divides the nodes with a target into train, val and test, by the seed and each node's number alone.
func splitTargets(d *dataset.Dataset, o Options) error {
	var ids [3][]int32
	known := 0
	for v := range int32(d.Nodes()) {
		if !d.HasTarget(v) {
			continue
		}
		known++
		u := philox.NewStream(o.Seed^randomKey, int64(v), 0, philox.C3(philox.User, siteTargets, 0))
		k := 0
		switch x := philox.Bounded(u.Next(), 10); {
		case x >= 8:
			k = 2
		case x >= 6:
			k = 1
		}
		ids[k] = append(ids[k], v)
	}
	if known == 0 {
		return tabular.Errorf("%s: every target of every node is unknown (NaN), so there is nothing to learn", d.Name())
	}
	if d.Splits == nil {
		d.Splits = map[string][]int32{}
	}
	for k, name := range columns.Parts {
		if d.Splits[name] = ids[k]; ids[k] == nil {
			d.Splits[name] = []int32{}
		}
	}
	o.said.Add(notice.Notice{Kind: notice.Guessed, Where: "targets", What: fmt.Sprintf("there is no split, so nodes with a target are divided by seed %d and their number: 60 %% train, 20 %% val, 20 %% test", o.Seed), Count: int64(known), Of: int64(d.Nodes())})
	return nil
}

// RandomSplits gives a dataset with a class for each node the given number of sets of splits, as O.
// Shchur et al. use them (Pitfalls of graph neural network evaluation, arXiv:1811.05868): in each
// set, train nodes and val nodes of every class are chosen at random, and "test" holds the other
// labelled nodes. A class with too few nodes fills "train" first. The ids ascend. The splits depend
// only on the labels and the seed.
//
// It is an error if the dataset has no labels of one class per node, or if a size is not positive.
func RandomSplits(d *dataset.Dataset, sets, train, val int, seed uint64) error {
	if d.Labels == nil || sets < 1 || train < 1 || val < 0 {
		return tabular.Errorf("%s: random splits need a class for each node, and at least one set and one node a class", d.Name())
	}
	if d.Splits == nil {
		d.Splits = map[string][]int32{}
	}
	members := make([][]int32, d.Classes())
	for v, c := range d.Labels {
		if c >= 0 && int(c) < len(members) {
			members[c] = append(members[c], int32(v))
		}
	}
	for k := range sets {
		var ids [3][]int32
		for c, all := range members {
			order := slices.Clone(all)
			// Each position of each class has its own counter, so a class's choice does not depend
			// on the sizes of other classes.
			for i := range min(train+val, len(order)) {
				u := philox.NewStream(seed^randomKey, int64(c)<<20|int64(i&(1<<20-1)), k, philox.C3(philox.User, siteSplit, 0))
				j := i + int(philox.Bounded(u.Next(), uint32(len(order)-i)))
				order[i], order[j] = order[j], order[i]
			}
			a := min(train, len(order))
			b := min(train+val, len(order))
			ids[0] = append(ids[0], order[:a]...)
			ids[1] = append(ids[1], order[a:b]...)
			ids[2] = append(ids[2], order[b:]...)
		}
		for i, name := range []string{"train", "val", "test"} {
			slices.Sort(ids[i])
			if ids[i] == nil {
				ids[i] = []int32{}
			}
			d.Splits[dataset.SplitSetName(name, k)] = ids[i]
		}
	}
	return nil
}

// addEncodings adds positional encodings to the features.
func addEncodings(ctx context.Context, d *dataset.Dataset, o Options) (*dataset.Dataset, error) {
	e, err := encode.Parse(o.Encode)
	if err != nil {
		return nil, tabular.Errorf("--encode: %w", err)
	}
	report, done := o.stage("encode"), atomic.Int64{}
	total := int64(d.Nodes())
	if e.Steps > 0 && e.Laplacian > 0 {
		total *= 2
	}
	var mu sync.Mutex
	e.Threads, e.Progress = o.Threads, func(nodes int) {
		mu.Lock()
		defer mu.Unlock()
		report(done.Add(int64(nodes)), total)
	}
	d, err = encode.Add(ctx, d, e)
	if err != nil {
		return nil, tabular.Errorf("--encode %s: %w", o.Encode, err)
	}
	return d, nil
}

// largestDegree is the largest in-degree with a column of its own, unless the option names another.
const largestDegree = 1000

// degreeFeatures returns one-hot features of the in-degrees: column k is 1 for a node of degree k, and the last column for one of
// the largest degree or more.
func degreeFeatures(d *dataset.Dataset, most int, o Options) *dataset.Sparse {
	n, at, largest, above := d.Nodes(), d.Graph.Indptr, int64(0), int64(0)
	for v := range n {
		largest = max(largest, at[v+1]-at[v])
	}
	limit := int64(most)
	if most == 0 {
		limit = min(largest, largestDegree)
	}
	s := &dataset.Sparse{Rows: n, Cols: int(limit) + 1, Indptr: make([]int64, n+1), Indices: make([]int32, n)}
	for v := range n {
		k := at[v+1] - at[v]
		if k > limit {
			above++
		}
		s.Indptr[v+1], s.Indices[v] = int64(v+1), int32(min(k, limit))
	}
	if above > 0 {
		o.said.Add(notice.Notice{Kind: notice.Merged, Where: "degree features", What: "nodes of a larger degree count as of degree " + strconv.FormatInt(limit, 10), Count: above, Of: int64(n), Option: "--features degree:MAX sets the largest one"})
	}
	for k := range s.Cols {
		d.Meta.FeatureNames = append(d.Meta.FeatureNames, "degree="+strconv.Itoa(k))
	}
	return s
}
