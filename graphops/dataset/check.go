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
func (d *Dataset) Check(ctx context.Context) error {
	return mapped.Guard(func() error {
		if err := d.checkShape(); err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
		for _, s := range d.stamps {
			if err := s.unchanged(); err != nil {
				return err
			}
		}
		for _, check := range []func(context.Context) error{d.checkGraph, d.checkWeights, d.checkLabels, d.checkTargets, d.checkSplits, d.checkFeatures, d.checkSparse} {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// wrong is an error about the values of one array.
func (d *Dataset) wrong(file, format string, args ...any) error {
	where := file + " of " + d.Name()
	if d.dir != "" {
		where = filepath.Join(d.dir, file)
	}
	return fmt.Errorf("dataset: %s: "+format, append([]any{where}, args...)...)
}

func (d *Dataset) checkGraph(ctx context.Context) error {
	n := d.Nodes()
	for lo := 0; ; lo += checkStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := d.Graph.ValidateRange(lo, min(lo+checkStep, n))
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
	if d.Meta.Undirected && !d.Graph.Symmetric() {
		return d.wrong(metadataFile, "undirected is true, but some edge has no opposite: set it to false or add the opposite edges")
	}
	return nil
}

func (d *Dataset) checkWeights(ctx context.Context) error {
	w := d.weights()
	for lo := 0; lo < len(w); lo += checkStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, x := range w[lo:min(lo+checkStep, len(w))] {
			if !finite(x) || x < 0 {
				return d.wrong(weightsFile, "entry %d is %v; a weight is finite and not negative", lo+i, x)
			}
		}
	}
	return nil
}

func (d *Dataset) checkTargets(ctx context.Context) error {
	if d.YM == nil {
		return nil
	}
	for v := range d.YM.Rows {
		if v%checkStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for c, y := range d.YM.Row(v) {
			if y < -1 || y > 1 {
				return d.wrong(labelsFile, "row %d, column %d is %d; a target is 0, 1 or, where it is unknown, -1", v, c, y)
			}
		}
	}
	return nil
}

func (d *Dataset) checkSparse(ctx context.Context) error {
	if d.S == nil {
		return nil
	}
	for lo := 0; lo < d.S.Rows; lo += checkStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := d.S.validateRows(lo, min(lo+checkStep, d.S.Rows))
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

func (d *Dataset) checkLabels(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for v, y := range d.Y {
		if y < -1 || int(y) >= d.Meta.NumClasses {
			return d.wrong(labelsFile, "entry %d is %d; the classes are 0 to %d, and -1 is an unknown one", v, y, d.Meta.NumClasses-1)
		}
	}
	return nil
}

func (d *Dataset) checkSplits(ctx context.Context) error {
	n := d.Nodes()
	seen := make([]uint64, (n+63)/64)
	for _, name := range d.SplitNames() {
		if err := ctx.Err(); err != nil {
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

func (d *Dataset) checkFeatures(ctx context.Context) error {
	if d.X == nil {
		return nil
	}
	grain := max(1, 1<<16/d.X.Cols)
	step := 256 * grain // rows between two looks at the context
	for first := 0; first < d.X.Rows; first += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := min(step, d.X.Rows-first)
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
