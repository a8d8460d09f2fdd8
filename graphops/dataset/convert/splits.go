package convert

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/tabular"
)

// checkSplit checks the value of --split before any file is read.
func checkSplit(spec string) error {
	if text, ok := strings.CutPrefix(spec, "per-class:"); ok {
		_, err := perClass(text)
		return err
	}
	if shares, ok := strings.CutPrefix(spec, "time"); ok && (shares == "" || shares[0] == ':') {
		spec = "random" + shares
	}
	_, _, err := randomSplit(spec)
	return err
}

// perClass reads the sizes of a split per-class:TRAIN,VAL,TEST; without TEST all others are for the test.
func perClass(text string) (s SplitSizes, err error) {
	to := []*int{&s.Train, &s.Val, &s.Test}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		if i < len(to) {
			*to[i], err = strconv.Atoi(strings.TrimSpace(part))
		}
		if err != nil || len(parts) < 2 || len(parts) > 3 || *to[i] < 0 || i != 1 && *to[i] == 0 {
			return s, tabular.Errorf("--split per-class:%s: give the train nodes of each class, and the val and test nodes of all, as in per-class:20,500,1000; without the last all others are for the test", text)
		}
	}
	return s, nil
}

// randomSplit reads a split at random; ok is false for the path of a file or folder.
func randomSplit(spec string) (o dataset.SplitOptions, ok bool, err error) {
	kind, value, has := strings.Cut(spec, ":")
	switch kind {
	case "random", "stratified":
		o.Plain = kind == "random"
		if !has {
			return o, true, nil
		}
		var shares []float64
		for text := range strings.SplitSeq(value, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(x >= 0 && x <= 1) {
				return o, true, tabular.Errorf("--split %s: %q is not a share from 0 to 1", spec, text)
			}
			shares = append(shares, x)
		}
		if len(shares) != 3 || shares[0] <= 0 || shares[0]+shares[1]+shares[2] < 1-1e-6 || shares[0]+shares[1]+shares[2] > 1+1e-6 || shares[1]+shares[2] == 0 {
			return o, true, tabular.Errorf("--split %s: give the shares of train, val and test, which add up to 1, as in %s:0.8,0.1,0.1", spec, kind)
		}
		o.Val, o.Test = shares[1], shares[2]
		return o, true, nil
	case "folds":
		if o.Folds, err = strconv.Atoi(value); err != nil || o.Folds < 3 || o.Folds > 1000 {
			return o, true, tabular.Errorf("--split %s: give the number of folds, from 3 to 1000, as in folds:10", spec)
		}
		return o, true, nil
	}
	return o, false, nil
}

// addSplits sets the splits that Options.Split asks for, and those of graphs without any. It returns what it did, for the
// dataset's source.
func addSplits(ctx context.Context, d *dataset.Dataset, m *tabular.Meter, o Options) (string, error) {
	of, spec := d, o.Split
	if a := d.EdgeAnswers; a != nil && (d.Labels == nil && d.MultiLabels == nil && d.Targets == nil || strings.HasPrefix(spec, "time")) {
		switch {
		case spec == "" && len(a.Splits) > 0:
			return "", nil
		case spec == "":
			spec = "random"
			o.note("no file has splits of the edges with targets, so 80 %% are train, 10 %% val and 10 %% test (--split random, seed %d)", o.Seed)
		}
		return fmt.Sprintf(", split of edges %s, seed %d", spec, o.Seed), DivideEdges(d, spec, o.Seed)
	}
	if d.Graphs != nil {
		of = d.Graphs
		of.Meta.NumNodes, of.Meta.Name = d.NumGraphs(), d.Meta.Name
		if spec == "" && len(of.Splits) == 0 && (of.Labels != nil || of.MultiLabels != nil || of.Targets != nil) {
			spec = "stratified"
			if of.Labels == nil {
				spec = "random"
			}
			defer func() {
				o.note("no file has splits of the graphs, so 80 %% are train, 10 %% val and 10 %% test (--split %s, seed %d)", spec, o.Seed)
			}()
		}
	}
	if spec == "" {
		return "", nil
	}
	if text, ok := strings.CutPrefix(spec, "per-class:"); ok {
		sizes, err := perClass(text)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(", split %s, seed %d", spec, o.Seed), DrawSplits(of, sizes, o.Seed)
	}
	random, ok, err := randomSplit(spec)
	switch {
	case err != nil:
		return "", err
	case ok && strings.HasPrefix(spec, "stratified") && of.Labels == nil:
		return "", tabular.Errorf("--split %s: %s has no classes to divide by; --split random does without", spec, d.Name())
	case ok:
		random.Seed = o.Seed
		if err := of.SplitAtRandom(random); err != nil {
			return "", tabular.Errorf("--split %s: %w", spec, err)
		}
		return fmt.Sprintf(", split %s, seed %d", spec, o.Seed), nil
	}
	splits, err := readSplits(ctx, spec, of.Nodes(), m, o)
	if err != nil {
		return "", err
	}
	of.Splits = splits
	return ", split of " + filepath.Base(spec), nil
}

// Divide replaces the splits of the graphs of a dataset of many, or of the nodes of a dataset that is one graph, as
// [Options].Split says. It changes d, so no other goroutine may read it meanwhile.
func Divide(ctx context.Context, d *dataset.Dataset, split string, seed uint64) error {
	if err := checkSplit(split); err != nil {
		return err
	}
	_, err := addSplits(ctx, d, &tabular.Meter{}, Options{Split: split, Seed: seed})
	return err
}

// DivideEdges replaces the splits of the edges with numbers to predict: at random, "random:0.8,0.1,0.1", or by their times,
// "time:0.8,0.1,0.1", which puts the latest into the test; both also without shares. See [dataset.Dataset.SplitEdges]. It changes
// d, so no other goroutine may read it meanwhile.
func DivideEdges(d *dataset.Dataset, split string, seed uint64) error {
	kind, shares, _ := strings.Cut(split, ":")
	if kind != "random" && kind != "time" {
		return tabular.Errorf("--split is %q; edges with numbers to predict are divided by random:0.8,0.1,0.1 or time:0.8,0.1,0.1, or by a column of the kind split", split)
	}
	o, _, err := randomSplit("random" + split[len(kind):])
	if err != nil {
		return tabular.Errorf("--split %s: give the shares of train, val and test, which add up to 1, as in %s:0.8,0.1,0.1, and not %s", split, kind, shares)
	}
	if err := d.SplitEdges(dataset.EdgeSplitOptions{Val: o.Val, Test: o.Test, ByTime: kind == "time", Seed: seed}); err != nil {
		return tabular.Errorf("--split %s: %w", split, err)
	}
	return nil
}

// splitWords are the names that splits have in files.
var splitWords = map[string]string{"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val", "test": "test", "testing": "test"}

// readSplits reads splits of n nodes or graphs, counted from 0: a JSON file, or a folder with a list for each split, one index a
// line, in train, val and test with the ending .txt or .csv, also compressed; train@1 and so on are further sets.
//
// A .npz file has the arrays train, val (or valid) and test with indices; train_mask, … with masks, and train_masks, …
// [sets, n] with those of several sets.
//
// The JSON is an object with the lists train, val (valid, validation) and test, or an array of such objects, one for each set.
// As in the files of F. Errica et al. (A fair comparison of graph neural networks, ICLR 2020, arXiv:1912.09893), train and
// validation can be in the first element of a list "model_selection".
func readSplits(ctx context.Context, path string, n int, m *tabular.Meter, o Options) (map[string][]int32, error) {
	s, err := newSource(path, m)
	if err != nil {
		return nil, tabular.Errorf("--split is %q, which is neither random, stratified, folds:K or per-class:TRAIN,VAL,TEST, nor the path of a file or folder: %w", path, err)
	}
	r := &splitReader{n: n, splits: map[string][]int32{}}
	if s.Dir {
		err = r.folder(ctx, s, o)
	} else {
		err = r.file(s, o)
	}
	if err != nil {
		return nil, err
	}
	if len(r.splits) == 0 {
		return nil, tabular.Errorf("%s has no lists named train, val and test", path)
	}
	for _, ids := range r.splits {
		slices.Sort(ids)
	}
	return r.splits, nil
}

type splitReader struct {
	n      int
	splits map[string][]int32
}

func (r *splitReader) folder(ctx context.Context, s *source, o Options) error {
	for _, file := range s.Files {
		stem, set, _ := strings.Cut(tabular.Stem(file), "@")
		base, k := splitWords[stem], 0
		if base == "" || !tabular.HasEnding(file, ".txt", ".csv") {
			continue
		}
		if set != "" {
			var err error
			if k, err = strconv.Atoi(set); err != nil || k < 0 || k > 999 {
				return tabular.Errorf("%s: the set of splits is %q; it is a number from 0 to 999", filepath.Join(s.Path, file), set)
			}
		}
		name := dataset.SplitSetName(base, k)
		if r.splits[name] != nil {
			return tabular.Errorf("%s has two files of the split %s", s.Path, name)
		}
		f, err := s.Open(file, "")
		if err != nil {
			return err
		}
		ids, err := tabular.ReadIDs(ctx, f, r.n, o.Threads)
		_ = f.Close()
		if err != nil {
			return err
		}
		r.splits[name] = ids
	}
	return nil
}

func (r *splitReader) file(s *source, o Options) error {
	f, err := s.Open("", "")
	if err != nil {
		return err
	}
	defer f.Close()
	if tabular.HasEnding(s.Path, ".npz") {
		r.splits, err = npzSplits(s.Path, r.n)
		return err
	}
	if !tabular.HasEnding(s.Path, ".json") {
		return f.Wrong("splits are read from a .json or .npz file, or from a folder with train.txt, val.txt and test.txt")
	}
	j := tabular.NewJSON(f, f.Wrong)
	c, err := j.Peek()
	if err != nil {
		return err
	}
	if c == '[' {
		k := 0
		err = j.Array(func() error {
			if k > 999 {
				return j.Wrong("there are more than 1000 sets of splits")
			}
			k++
			return r.set(j, k-1, o)
		})
	} else {
		err = r.set(j, 0, o)
	}
	if err != nil {
		return err
	}
	return j.End()
}

// set reads an object of lists.
func (r *splitReader) set(j *tabular.JSON, k int, o Options) error {
	return j.Object(func(key string) error {
		if key == "model_selection" {
			first := true
			return j.Array(func() error {
				if !first {
					return j.Skip()
				}
				first = false
				return r.set(j, k, o)
			})
		}
		base := splitWords[strings.ToLower(key)]
		if base == "" {
			o.note("the list %s of splits is not read", tabular.Shown([]byte(key)))
			return j.Skip()
		}
		name := dataset.SplitSetName(base, k)
		if r.splits[name] != nil {
			return j.Wrong("the split %s of set %d is listed twice", base, k)
		}
		ids, seen := []int32{}, make([]uint64, (r.n+63)/64)
		err := j.Array(func() error {
			v, err := j.Whole()
			if err != nil {
				return err
			}
			if v < 0 || v >= int64(r.n) {
				return j.Wrong("%s of set %d has the index %d; the indices are 0 to %d", base, k, v, r.n-1)
			}
			if seen[v/64]>>(v%64)&1 != 0 {
				return j.Wrong("%s of set %d has the index %d twice", base, k, v)
			}
			seen[v/64] |= 1 << (v % 64)
			ids = append(ids, int32(v))
			return nil
		})
		r.splits[name] = ids
		return err
	})
}
