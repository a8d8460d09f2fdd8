package dataset

import (
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// Target returns the targets of node v, in the dataset's own memory.
func (d *Dataset) Target(v int32) []float32 {
	n := d.Targets.Cols
	return d.Targets.F32[int(v)*n : (int(v)+1)*n : (int(v)+1)*n]
}

// HasTarget reports whether a target of node v is known.
func (d *Dataset) HasTarget(v int32) bool {
	for _, y := range d.Target(v) {
		if y == y { //nolint:gocritic // not NaN
			return true
		}
	}
	return false
}

// checkTargetsShape returns an error if the targets' sizes contradict the number of nodes or graphs.
func (d *Dataset) checkTargetsShape(n int, what string) error {
	t := d.Targets
	switch {
	case t == nil && d.Meta.TargetDim != 0 && d.Meta.Parts == nil:
		return fmt.Errorf("Meta.TargetDim is %d, but there are no targets", d.Meta.TargetDim)
	case t == nil:
		return nil
	case t.F16 != nil || t.elsewhere():
		return errors.New("targets are float32 in memory: set Targets.F32")
	case t.Cols < 1:
		return fmt.Errorf("targets of %d columns: set Targets to nil instead", t.Cols)
	case t.Rows != n:
		return fmt.Errorf("%d rows of targets for %d %s", t.Rows, n, what)
	case len(t.F32) != t.Rows*t.Cols:
		return fmt.Errorf("%d targets for [%d, %d]", len(t.F32), t.Rows, t.Cols)
	}
	return nil
}

func (d *Dataset) loadTargets(src source) error {
	m := &d.Meta
	if m.TargetDim == 0 || m.Parts != nil {
		return nil
	}
	a, label, err := openNPY(src, targetsFile, "target_dim", m.TargetDim)
	if err != nil {
		return err
	}
	if err := a.expect(label, []npy.Type{npyFloat32}, d.rows(), m.TargetDim); err != nil {
		return err
	}
	d.Targets = &Matrix{Rows: d.rows(), Cols: m.TargetDim, F32: view[float32](a.data)}
	return nil
}

// checkTargets finds targets that are infinite. NaN is an unknown target.
func (d *Dataset) checkTargets(r *reading) error {
	t := d.Targets
	if t == nil {
		return nil
	}
	for lo := 0; lo < len(t.F32); lo += checkStep {
		part := t.F32[lo:min(lo+checkStep, len(t.F32))]
		if err := r.next(4 * int64(len(part))); err != nil {
			return err
		}
		if i := firstBad(len(part), 1<<14, func(i int) bool { return math.IsInf(float64(part[i]), 0) }); i >= 0 {
			return d.wrong(targetsFile, "row %d, column %d is %v; a target is a number, or NaN if unknown", (lo+i)/t.Cols, (lo+i)%t.Cols, part[i])
		}
	}
	return nil
}
