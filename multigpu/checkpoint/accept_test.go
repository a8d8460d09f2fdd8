package checkpoint

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// LatestOf finds the newest checkpoint among those that a caller accepts and returns the rejected
// ones, each with the caller's reason.
func TestLatestOf(t *testing.T) {
	dir := t.TempDir()
	for step := int64(1); step <= 4; step++ {
		save(t, dir, step, 0)
	}
	foreign := errors.New("it is another run's")
	accept := func(steps ...int64) func(json.RawMessage) error {
		return func(raw json.RawMessage) error {
			var st state
			if err := json.Unmarshal(raw, &st); err != nil {
				return err
			}
			if !slices.Contains(steps, st.Step) {
				return foreign
			}
			return nil
		}
	}
	for _, c := range []struct {
		accept func(json.RawMessage) error
		step   int64
		passed int
	}{{nil, 4, 0}, {accept(1, 2, 3, 4), 4, 0}, {accept(1, 3), 3, 1}, {accept(1), 1, 3}, {accept(), 0, 4}} {
		path, step, passed, err := LatestOf(dir, c.accept)
		if c.step == 0 {
			if !errors.Is(err, ErrNone) {
				t.Errorf("LatestOf without an accepted checkpoint returned %s, %v", path, err)
			}
		} else if err != nil || step != c.step || path != Path(dir, step) {
			t.Errorf("step %d, %s, %v; want step %d", step, path, err, c.step)
		}
		if len(passed) != c.passed {
			t.Fatalf("the rejected checkpoints are %v, want %d", passed, c.passed)
		}
		for i, err := range passed {
			if !errors.Is(err, foreign) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), Path(dir, int64(4-i))) {
				t.Errorf("a checkpoint was rejected with %v", err)
			}
		}
	}
}
