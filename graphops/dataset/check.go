package dataset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
// class, features that are not finite, sparse features whose columns are out of range or out of
// order, nodes of a split that are out of range or repeated, and nodes in two of train, val and
// test, unless the metadata says overlapping_splits. A dataset that passes needs no further check
// of its values before sampling and training.
//
// It reads everything once, on GOMAXPROCS threads, at memory or disk speed, and stops when ctx is
// cancelled. If a file fails meanwhile, the error is a [*mapped.Fault].
func (d *Dataset) Check(ctx context.Context) error { return d.CheckWith(ctx, nil) }

// CheckWith is Check with progress: report, if not nil, is called from time to time, from this
// goroutine, with the number of bytes read and the total.
func (d *Dataset) CheckWith(ctx context.Context, report func(done, total int64)) error {
	return d.checkParts(ctx, report, d.Bytes(),
		d.checkGraph, d.checkWeights, d.checkEdgeFeatures, d.checkLabels, d.checkTargets, d.checkSplits, d.checkFeatures, d.checkSparse)
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
	opposites := newOpposites()
	for lo := 0; ; lo += checkStep {
		hi := min(lo+checkStep, n)
		bytes := 8 * int64(hi-lo)
		if from, to := d.Graph.Indptr[lo], d.Graph.Indptr[hi]; from <= to { // otherwise the check of indptr reports it
			bytes += 4 * (to - from)
		}
		if err := r.next(bytes); err != nil {
			return err
		}
		err := d.Graph.ValidateRange(lo, hi)
		var v *graphops.ValidationError
		if errors.As(err, &v) {
			file := indicesFile
			if v.Array == "Indptr" {
				file = indptrFile
			}
			return d.wrong(file, "entry %d: %s", v.Index, v.Why)
		}
		if err != nil {
			return err
		}
		if d.Meta.Undirected {
			loose += opposites.of(d.Graph, lo, hi)
		}
		if lo+checkStep >= n {
			break
		}
	}
	if loose != 0 {
		return d.wrong(metadataFile, "undirected is true, but some edge has no reverse edge: set it to false or add the reverse edges")
	}
	return nil
}

// opposites checks whether every edge has its reverse, in one pass over the edges in their order:
// it sums a hash of (source, destination) and subtracts that of (destination, source). The sum is 0
// if all edges have reverses, and otherwise with a probability of 2^-64; the secret key prevents
// constructed collisions.
type opposites struct{ key uint64 }

func newOpposites() opposites { return opposites{key: rand.Uint64()} }

func (o opposites) of(g *graphops.Graph, from, to int) (sum uint64) {
	const grain = 1 << 11
	parts := make([]uint64, parallel.Chunks(to-from, grain))
	parallel.For(0, to-from, grain, func(lo, hi int) {
		var part uint64
		for v := from + lo; v < from+hi; v++ {
			for _, u := range g.InNeighbors(int32(v)) {
				if int(u) != v {
					part += o.hash(uint64(u)<<32|uint64(v)) - o.hash(uint64(v)<<32|uint64(u))
				}
			}
		}
		parts[lo/grain] = part
	})
	for _, part := range parts {
		sum += part
	}
	return sum
}

// hash applies MurmurHash3's finalizer twice, with a key.
func (o opposites) hash(x uint64) uint64 {
	return mix64(mix64(x^o.key) + o.key)
}

func mix64(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
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
		if i := firstBad(w[lo:hi], 1<<14, func(x float32) bool { return !finite(x) || x < 0 }); i >= 0 {
			return d.wrong(weightsFile, "entry %d is %v; a weight must be finite and not negative", lo+i, w[lo+i])
		}
	}
	return nil
}

func (d *Dataset) checkTargets(r *reading) error {
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

func (d *Dataset) checkSparse(r *reading) error {
	if d.SparseFeatures == nil {
		return nil
	}
	for lo := 0; lo < d.SparseFeatures.Rows; lo += checkStep {
		hi := min(lo+checkStep, d.SparseFeatures.Rows)
		if err := r.next(8 * int64(hi-lo+(hi-lo)*len(d.SparseFeatures.Indices)/d.SparseFeatures.Rows)); err != nil { // the bytes of an average row
			return err
		}
		err := d.SparseFeatures.ValidateRange(lo, hi)
		var bad *SparseError
		if errors.As(err, &bad) {
			file := map[string]string{"Indptr": featuresIndptrFile, "Indices": featuresIndicesFile, "Values": featuresValuesFile}[bad.Array]
			return d.wrong(file, "entry %d: %s", bad.Index, bad.Why)
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
				return d.wrong(d.splitFile(other), "entry %d is %d, which is also in split %s; a result measured on nodes used for training or model selection says nothing about other nodes: remove it from one split or, if the overlap is intended, set overlapping_splits to true in metadata.json (Metadata.OverlappingSplits, gnb data convert --overlapping-splits)",
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

func (d *Dataset) checkFeatures(r *reading) error {
	if d.Features == nil {
		return nil
	}
	const step = 1 << 24 // elements between two checks of the context
	n, size := d.Features.Rows*d.Features.Cols, int64(4)
	if d.Features.Half() {
		size = 2
	}
	for at := 0; at < n; at += step {
		end := min(at+step, n)
		if err := r.next(size * int64(end-at)); err != nil {
			return err
		}
		var bad int
		if d.Features.Half() {
			const exponent = 0x7c00 // set completely only in infinities and NaNs
			bad = firstBad(d.Features.F16[at:end], 1<<16, func(x uint16) bool { return x&exponent == exponent })
		} else {
			bad = firstBad(d.Features.F32[at:end], 1<<16, func(x float32) bool { return !finite(x) })
		}
		if bad >= 0 {
			row, col := (at+bad)/d.Features.Cols, (at+bad)%d.Features.Cols
			return d.wrong(featuresFile, "row %d, column %d is %v; features must be finite", row, col, d.Features.Row(row)[col])
		}
	}
	return nil
}

// firstBad returns the index of the first bad element of xs, or -1. It checks chunks of grain
// elements on GOMAXPROCS threads.
func firstBad[T any](xs []T, grain int, bad func(T) bool) int {
	first := make([]int, parallel.Chunks(len(xs), grain))
	parallel.For(0, len(xs), grain, func(lo, hi int) {
		first[lo/grain] = -1
		if i := slices.IndexFunc(xs[lo:hi], bad); i >= 0 {
			first[lo/grain] = lo + i
		}
	})
	for _, i := range first {
		if i >= 0 {
			return i
		}
	}
	return -1
}
