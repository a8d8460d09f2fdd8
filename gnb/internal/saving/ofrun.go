package saving

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// ErrForeign is matched by the error of a checkpoint that belongs to another run.
var ErrForeign = errors.New("it is not this run's")

// Newest returns the newest valid checkpoint of the run, and the errors of those it skipped:
// damaged files, and checkpoints of other runs.
func Newest(r *runs.Run) (path string, step int64, passed []error, err error) {
	return checkpoint.LatestOf(filepath.Join(r.Dir, "checkpoints"), func(raw json.RawMessage) error {
		var st State
		if err := json.Unmarshal(raw, &st); err != nil {
			return err
		}
		return owns(r.Config, st)
	})
}

// owns returns an error if a checkpoint belongs to another run; the error names that run.
func owns(c runs.Config, st State) error {
	switch {
	case st.Run != "" && st.Run != c.ID:
		return fmt.Errorf("%w, but of run %s", ErrForeign, st.Run)
	case c.Identity == nil && st.Identity == "" && st.Seed == c.Seed && st.Program == c.Program:
		return nil // both from a version that recorded no identity
	case c.Identity != nil && st.Identity == c.Identity.Run:
		return nil
	case slices.ContainsFunc(c.Changes, func(ch runs.Change) bool { return ch.Before == st.Identity }):
		return nil // the checkpoint is from before a change of settings
	}
	var what []string
	if st.Program != c.Program {
		what = append(what, fmt.Sprintf("its program is %s and not %s", st.Program, c.Program))
	}
	if st.Seed != c.Seed {
		what = append(what, fmt.Sprintf("its seed is %d and not %d", st.Seed, c.Seed))
	}
	if len(what) == 0 {
		what = append(what, "it was made with other data, code or settings")
	}
	return fmt.Errorf("%w: %s", ErrForeign, strings.Join(what, ", "))
}
