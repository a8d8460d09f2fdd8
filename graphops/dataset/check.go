package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
)

// checkStep is the number of nodes checked between two checks of the context.
const checkStep = 1 << 18

// Check reads the whole dataset and returns the first error in it, naming the file (or the array,
// for a dataset in memory) and the position. Errors are: files that changed since they were opened,
// an indptr that does not ascend, sources out of range or out of order, edges without their reverse
// if the metadata says undirected, weights that are negative or not finite, features of edges that are not finite, labels that are not a
// class, targets that are infinite, edges between two graphs of a dataset of many, events that are no edges, share one or do not ascend in time, features that are not finite, sparse features whose columns are out of range or out of
// order, nodes of a split that are out of range or repeated, nodes in two of train, val and
// test, unless the metadata says overlapping_splits, and files that differ from their recorded digests
// ([Dataset.Verify]). A dataset that passes needs no further check
// of its values before sampling and training.
//
// It reads everything, and once more for the digests, on GOMAXPROCS threads, and stops when ctx is
// cancelled. If a file fails meanwhile, the error is a [*mapped.Fault].
func (d *Dataset) Check(ctx context.Context) error { return d.CheckWith(ctx, nil) }

// CheckWith is Check with progress: report, if not nil, is called from time to time, from this
// goroutine, with the number of bytes read and the total.
func (d *Dataset) CheckWith(ctx context.Context, report func(done, total int64)) error {
	if err := d.checkDrawn(); err != nil {
		return err
	}
	return d.checkAll(ctx, report)
}

// checkDrawn returns an error for a dataset that can only be written.
func (d *Dataset) checkDrawn() error {
	if d.Features != nil && d.Features.draw != nil {
		return fmt.Errorf("dataset: the features of %s are drawn when it is written (LoadOptions.ToWrite): write it, and open the directory", d.Name())
	}
	return nil
}

// checkAll is CheckWith for a dataset that is to be written.
func (d *Dataset) checkAll(ctx context.Context, report func(done, total int64)) error {
	err := d.checkParts(ctx, report, d.Bytes()+d.recordedBytes(),
		d.checkGraph, d.checkWeights, d.checkEdgeFeatures, d.checkLabels, d.checkMultiLabels, d.checkTargets, d.checkGraphs, d.checkEdgeAnswers, d.checkEvents, d.checkQuestions, d.checkSplits, d.checkEdgeSplits, d.checkFeatures, d.checkSparse, d.checkNodeFeatures, d.checkNames, d.verifyAll)
	if err == nil && d.whole == nil && d.Stored() {
		d.known.keepPassed()
	}
	return err
}

// checkParts runs some of the checks, which read the given number of bytes.
func (d *Dataset) checkParts(ctx context.Context, report func(done, total int64), bytes int64, checks ...func(*reading) error) error {
	r := &reading{ctx: ctx, report: report, total: bytes}
	return mapped.Guard(func() error {
		if err := d.checkShape(); err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
		for _, s := range d.stamps {
			if err := s.unchanged(); err != nil {
				return err
			}
		}
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		if report != nil {
			report(r.total, r.total)
		}
		return nil
	})
}

// reading is the progress of a check.
type reading struct {
	ctx         context.Context
	report      func(done, total int64)
	done, total int64
}

// next reports the number of bytes to be read next; an error ends the check.
func (r *reading) next(bytes int64) error {
	if r.report != nil {
		r.report(r.done, r.total)
	}
	r.done = min(r.done+bytes, r.total)
	return r.ctx.Err()
}

// wrong returns an error about the values of one array.
func (d *Dataset) wrong(file, format string, args ...any) error {
	where := file + " of " + d.Name()
	if d.dir != "" {
		where = filepath.Join(d.dir, file)
	}
	return fmt.Errorf("dataset: %s: "+format, append([]any{where}, args...)...)
}

func (d *Dataset) checkGraph(r *reading) error {
	if d.Graph == nil { // in a divided dataset, the parts have it
		return nil
	}
	n := d.Nodes()
	var loose uint64
	opposites := graphops.NewReverses()
	for lo := 0; ; lo += checkStep {
		hi := min(lo+checkStep, n)
		bytes := 8 * int64(hi-lo)
		if from, to := d.Graph.Indptr[lo], d.Graph.Indptr[hi]; from <= to { // otherwise the check of indptr reports it
			bytes += 4 * (to - from)
			if d.Graph.EdgeTypes != nil {
				bytes += 2 * (to - from)
			}
		}
		if err := r.next(bytes); err != nil {
			return err
		}
		err := d.Graph.ValidateRange(lo, hi)
		var v *graphops.ValidationError
		if errors.As(err, &v) {
			file := map[string]string{"Indptr": indptrFile, "Indices": indicesFile, "EdgeTypes": edgeTypesFile}[v.Array]
			return d.wrong(file, "entry %d: %s", v.Index, v.Why)
		}
		if err != nil {
			return err
		}
		if d.Meta.Undirected {
			loose += opposites.Of(d.Graph, lo, hi)
		}
		if lo+checkStep >= n {
			break
		}
	}
	if loose != 0 {
		return d.wrong(MetadataFile, "undirected is true, but some edge has no reverse edge: set it to false or add the reverse edges")
	}
	return nil
}

func (d *Dataset) checkWeights(r *reading) error {
	if d.Graph == nil {
		return nil
	}
	w := d.Graph.EdgeWeights
	for lo := 0; lo < len(w); lo += checkStep {
		hi := min(lo+checkStep, len(w))
		if err := r.next(4 * int64(hi-lo)); err != nil {
			return err
		}
		part := w[lo:hi]
		if i := firstBad(len(part), 1<<14, func(i int) bool { return !finite(part[i]) || part[i] < 0 }); i >= 0 {
			return d.wrong(weightsFile, "entry %d is %v; a weight must be finite and not negative", lo+i, w[lo+i])
		}
	}
	return nil
}

func (d *Dataset) checkMultiLabels(r *reading) error {
	if d.MultiLabels == nil {
		return nil
	}
	for v := range d.MultiLabels.Rows {
		if v%checkStep == 0 {
			if err := r.next(int64(min(checkStep, d.MultiLabels.Rows-v)) * int64(d.MultiLabels.Cols)); err != nil {
				return err
			}
		}
		for c, y := range d.MultiLabels.Row(v) {
			if y < -1 || y > 1 {
				return d.wrong(labelsFile, "row %d, column %d is %d; a target must be 0, 1, or -1 if unknown", v, c, y)
			}
		}
	}
	return nil
}

func (d *Dataset) checkSparse(r *reading) error { return d.checkSparseMatrix(r, d.SparseFeatures, "") }

// checkSparseMatrix checks the sparse features of a node type, or of all nodes.
func (d *Dataset) checkSparseMatrix(r *reading, s *Sparse, name string) error {
	if s == nil {
		return nil
	}
	for lo := 0; lo < s.Rows; lo += checkStep {
		hi := min(lo+checkStep, s.Rows)
		if err := r.next(8 * int64(hi-lo+(hi-lo)*len(s.Indices)/s.Rows)); err != nil { // the bytes of an average row
			return err
		}
		err := s.ValidateRange(lo, hi)
		var bad *SparseError
		if errors.As(err, &bad) {
			file := map[string]string{"Indptr": featuresIndptrFile, "Indices": featuresIndicesFile, "Values": featuresValuesFile}[bad.Array]
			return d.wrong(ofType(file, name), "entry %d: %s", bad.Index, bad.Why)
		}
	}
	return nil
}

// splitFile returns the file of the split that a view shows under the given plain name.
func (d *Dataset) splitFile(name string) string {
	if d.whole != nil {
		if set := SplitSetName(name, d.splitSet); d.whole.Splits[set] != nil {
			return splitFile(set)
		}
	}
	return splitFile(name)
}

func (d *Dataset) checkLabels(r *reading) error {
	if err := r.next(4 * int64(len(d.Labels))); err != nil {
		return err
	}
	for v, y := range d.Labels {
		if y < -1 || int(y) >= d.Meta.NumClasses {
			return d.wrong(labelsFile, "entry %d is %d; the classes are 0 to %d, or -1 if unknown", v, y, d.Meta.NumClasses-1)
		}
	}
	if s := d.Schema(); s != nil && d.Labels != nil {
		for t, n := range s.Nodes {
			lo, hi := s.Range(t)
			classes := d.ClassesOf(t)
			if i := slices.IndexFunc(d.Labels[lo:hi], func(y int32) bool { return int(y) >= classes }); i >= 0 {
				return d.wrong(labelsFile, "entry %d is %d, but nodes of type %s have %d classes", lo+i, d.Labels[lo+i], n.Name, classes)
			}
		}
	}
	return nil
}

func (d *Dataset) checkSplits(r *reading) error {
	n := d.Nodes()
	seen := make([]uint64, (n+63)/64)
	in := func(v int32) bool { return seen[v/64]>>(v%64)&1 != 0 }
	for _, name := range d.SplitNames() {
		if err := r.next(4 * int64(len(d.Splits[name]))); err != nil {
			return err
		}
		clear(seen)
		for i, v := range d.Splits[name] {
			if v < 0 || int(v) >= n {
				return d.wrong(d.splitFile(name), "entry %d is %d; the graph has the nodes 0 to %d", i, v, n-1)
			}
			if in(v) {
				return d.wrong(d.splitFile(name), "entry %d is %d, which is already in the split", i, v)
			}
			seen[v/64] |= 1 << (v % 64)
		}
	}
	if d.Meta.OverlappingSplits {
		return nil
	}
	for _, name := range d.SplitNames() {
		others := d.measuredWith(name)
		if len(others) == 0 {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		clear(seen)
		for _, v := range d.Splits[name] {
			seen[v/64] |= 1 << (v % 64)
		}
		for _, other := range others {
			if i := slices.IndexFunc(d.Splits[other], in); i >= 0 {
				return d.wrong(d.splitFile(other), "entry %d is %d, which is also in split %s; a result measured on nodes used for training or model selection says nothing about other nodes: remove it from one split or, if the overlap is intended, write the dataset with overlapping_splits (gnb data convert --overlapping-splits, or dataset.EditMetadata and Metadata.OverlappingSplits)",
					i, d.Splits[other][i], name)
			}
		}
	}
	return nil
}

// measuredWith returns the splits, of train, val and test in the split's set, that come after it
// and must have no node in common with it.
func (d *Dataset) measuredWith(name string) (others []string) {
	base, set := splitSet(name)
	usual := []string{"train", "val", "test"}
	for _, other := range usual[slices.Index(usual, base)+1:] {
		if other = SplitSetName(other, set); slices.Contains(usual, base) && d.Splits[other] != nil {
			others = append(others, other)
		}
	}
	return others
}

func (d *Dataset) checkFeatures(r *reading) error { return d.checkMatrix(r, d.Features, featuresFile) }

// checkMatrix finds features that are not finite.
func (d *Dataset) checkMatrix(r *reading, m *Matrix, file string) error {
	if m == nil || m.draw != nil { // what is drawn is checked when it is written
		return nil
	}
	const step = 1 << 24 // elements between two checks of the context
	n, size := m.Rows*m.Cols, int64(4)
	if m.Half() {
		size = 2
	}
	for at := 0; at < n; at += step {
		end := min(at+step, n)
		if err := r.next(size * int64(end-at)); err != nil {
			return err
		}
		var bad int
		if m.Half() {
			const exponent = 0x7c00 // set completely only in infinities and NaNs
			part := m.F16[at:end]
			bad = firstBad(len(part), 1<<16, func(i int) bool { return part[i]&exponent == exponent })
		} else {
			part := m.F32[at:end]
			bad = firstBad(len(part), 1<<16, func(i int) bool { return !finite(part[i]) })
		}
		if bad >= 0 {
			row, col := (at+bad)/m.Cols, (at+bad)%m.Cols
			return d.wrong(file, "row %d, column %d is %v; features must be finite", row, col, m.Row(row)[col])
		}
	}
	return nil
}

// firstBad returns the first bad one of n indices, or -1. It checks chunks of grain indices on GOMAXPROCS threads.
func firstBad(n, grain int, bad func(i int) bool) int {
	first := make([]int, parallel.Chunks(n, grain))
	parallel.For(0, n, grain, func(lo, hi int) {
		first[lo/grain] = -1
		for i := lo; i < hi; i++ {
			if bad(i) {
				first[lo/grain] = i
				break
			}
		}
	})
	for _, i := range first {
		if i >= 0 {
			return i
		}
	}
	return -1
}
