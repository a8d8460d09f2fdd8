package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
)

// checkStep is the number of nodes that are checked between two looks at the
// context.
const checkStep = 1 << 18

// Check reads the whole dataset and returns the first thing that is wrong with
// it, naming the file (or the array, for a dataset in memory) and the position:
// files that changed since they were opened, an indptr that does not ascend,
// sources out of range or out of order, edges without their opposite where the
// metadata says undirected, weights that are negative or not finite, labels that
// are no class, features that are not finite, sparse features whose columns are
// out of range or out of order, nodes of a split that are out of range or repeated. A dataset that
// passes can be sampled and trained on without another check of its values.
//
// It runs on GOMAXPROCS threads, at memory or disk speed, and stops when ctx is
// cancelled. A file that fails meanwhile is a [*mapped.Fault].
func (d *Dataset) Check(ctx context.Context) error { return d.CheckWith(ctx, nil) }

// CheckWith is Check, and report (unless nil) is called every now and then, from this
// goroutine, with how many bytes of how many were read.
func (d *Dataset) CheckWith(ctx context.Context, report func(done, total int64)) error {
	r := &reading{ctx: ctx, report: report, total: d.Bytes()}
	if d.Meta.Undirected {
		r.total += 4 * d.Edges() // they are looked for twice
	}
	return mapped.Guard(func() error {
		if err := d.checkShape(); err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
		for _, s := range d.stamps {
			if err := s.unchanged(); err != nil {
				return err
			}
		}
		for _, check := range []func(*reading) error{d.checkGraph, d.checkWeights, d.checkLabels, d.checkTargets, d.checkSplits, d.checkFeatures, d.checkSparse} {
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

// reading is how far a check has come.
type reading struct {
	ctx         context.Context
	report      func(done, total int64)
	done, total int64
}

// next says that so many bytes are read next; an error ends the check.
func (r *reading) next(bytes int64) error {
	if r.report != nil {
		r.report(r.done, r.total)
	}
	r.done = min(r.done+bytes, r.total)
	return r.ctx.Err()
}

// wrong is an error about the values of one array.
func (d *Dataset) wrong(file, format string, args ...any) error {
	where := file + " of " + d.Name()
	if d.dir != "" {
		where = filepath.Join(d.dir, file)
	}
	return fmt.Errorf("dataset: %s: "+format, append([]any{where}, args...)...)
}

func (d *Dataset) checkGraph(r *reading) error {
	n := d.Nodes()
	for lo := 0; ; lo += checkStep {
		hi := min(lo+checkStep, n)
		bytes := 8 * int64(hi-lo)
		if from, to := d.Graph.Indptr[lo], d.Graph.Indptr[hi]; from <= to { // or it will be found wrong
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
		if lo+checkStep >= n {
			break
		}
	}
	if !d.Meta.Undirected {
		return nil
	}
	if err := r.next(4 * d.Edges()); err != nil {
		return err
	}
	if !d.Graph.Symmetric() {
		return d.wrong(metadataFile, "undirected is true, but some edge has no opposite: set it to false or add the opposite edges")
	}
	return nil
}

func (d *Dataset) checkWeights(r *reading) error {
	w := d.weights()
	for lo := 0; lo < len(w); lo += checkStep {
		hi := min(lo+checkStep, len(w))
		if err := r.next(4 * int64(hi-lo)); err != nil {
			return err
		}
		for i, x := range w[lo:hi] {
			if !finite(x) || x < 0 {
				return d.wrong(weightsFile, "entry %d is %v; a weight is finite and not negative", lo+i, x)
			}
		}
	}
	return nil
}

func (d *Dataset) checkTargets(r *reading) error {
	if d.YM == nil {
		return nil
	}
	for v := range d.YM.Rows {
		if v%checkStep == 0 {
			if err := r.next(int64(min(checkStep, d.YM.Rows-v)) * int64(d.YM.Cols)); err != nil {
				return err
			}
		}
		for c, y := range d.YM.Row(v) {
			if y < -1 || y > 1 {
				return d.wrong(labelsFile, "row %d, column %d is %d; a target is 0, 1 or, where it is unknown, -1", v, c, y)
			}
		}
	}
	return nil
}

func (d *Dataset) checkSparse(r *reading) error {
	if d.S == nil {
		return nil
	}
	for lo := 0; lo < d.S.Rows; lo += checkStep {
		hi := min(lo+checkStep, d.S.Rows)
		if err := r.next(8 * int64(hi-lo+(hi-lo)*len(d.S.Indices)/d.S.Rows)); err != nil { // a mean row's
			return err
		}
		err := d.S.validateRows(lo, hi)
		var bad *SparseError
		if errors.As(err, &bad) {
			file := map[string]string{"Indptr": featuresIndptrFile, "Indices": featuresIndicesFile, "Values": featuresValuesFile}[bad.Array]
			return d.wrong(file, "entry %d: %s", bad.Index, bad.Why)
		}
	}
	return nil
}

// splitFile is the file of a split that a view shows under its plain name.
func (d *Dataset) splitFile(name string) string {
	if d.whole != nil {
		if set := SplitSetName(name, d.splitSet); d.whole.Splits[set] != nil {
			return splitFile(set)
		}
	}
	return splitFile(name)
}

func (d *Dataset) checkLabels(r *reading) error {
	if err := r.next(4 * int64(len(d.Y))); err != nil {
		return err
	}
	for v, y := range d.Y {
		if y < -1 || int(y) >= d.Meta.NumClasses {
			return d.wrong(labelsFile, "entry %d is %d; the classes are 0 to %d, and -1 is an unknown one", v, y, d.Meta.NumClasses-1)
		}
	}
	return nil
}

func (d *Dataset) checkSplits(r *reading) error {
	n := d.Nodes()
	seen := make([]uint64, (n+63)/64)
	for _, name := range d.SplitNames() {
		if err := r.next(4 * int64(len(d.Splits[name]))); err != nil {
			return err
		}
		clear(seen)
		for i, v := range d.Splits[name] {
			if v < 0 || int(v) >= n {
				return d.wrong(d.splitFile(name), "entry %d is %d; the graph has the nodes 0 to %d", i, v, n-1)
			}
			if seen[v/64]>>(v%64)&1 != 0 {
				return d.wrong(d.splitFile(name), "entry %d is %d, which the split has already", i, v)
			}
			seen[v/64] |= 1 << (v % 64)
		}
	}
	return nil
}

func (d *Dataset) checkFeatures(r *reading) error {
	if d.X == nil {
		return nil
	}
	grain := max(1, 1<<16/d.X.Cols)
	step := 256 * grain // rows between two looks at the context
	for first := 0; first < d.X.Rows; first += step {
		rows := min(step, d.X.Rows-first)
		if err := r.next(4 * int64(rows) * int64(d.X.Cols)); err != nil {
			return err
		}
		bad := make([]int, parallel.Chunks(rows, grain))
		parallel.For(0, rows, grain, func(lo, hi int) {
			bad[lo/grain] = -1
			for i := (first + lo) * d.X.Cols; i < (first+hi)*d.X.Cols; i++ {
				if !finite(d.X.F32[i]) {
					bad[lo/grain] = i
					return
				}
			}
		})
		for _, i := range bad {
			if i >= 0 {
				return d.wrong(featuresFile, "row %d, column %d is %v; features must be finite", i/d.X.Cols, i%d.X.Cols, d.X.F32[i])
			}
		}
	}
	return nil
}
