package saving

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
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

// WeightsOf returns the file of weights to use: those at the best validation accuracy, or the
// final ones if there are no best ones or final is set. It also returns the network's description,
// nil if none was recorded. It fails if the run did not write the file.
func WeightsOf(r *runs.Run, final bool) (path string, model *runs.ModelInfo, err error) {
	for _, path := range []string{r.BestWeights(), r.Weights()} {
		if final && path != r.Weights() {
			continue
		}
		name := filepath.Base(path)
		said, written := r.Result.Weights[name]
		_, meta, err := safetensors.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && !written:
			continue
		case errors.Is(err, os.ErrNotExist):
			wayOut := "put it back"
			if !final {
				wayOut += ", or take the final weights (Final, --final)"
			}
			return "", nil, fmt.Errorf("gnb: %s of run %s is missing; %s", name, r.Config.ID, wayOut)
		case err != nil:
			return "", nil, fmt.Errorf("gnb: the weights of run %s: %w", r.Config.ID, err)
		}
		if written && safetensors.SumIn(meta) != said {
			return "", nil, fmt.Errorf("gnb: %s is not the file that run %s wrote; put that back, or train again", path, r.Config.ID)
		}
		if text := meta[MetaModel]; text != "" {
			model = &runs.ModelInfo{}
			if err := json.Unmarshal([]byte(text), model); err != nil {
				return "", nil, fmt.Errorf("gnb: %s: what it says of its network cannot be read: %w", path, err)
			}
		}
		return runfile.Absolute(path), model, nil
	}
	return "", nil, fmt.Errorf("gnb: run %s has no weights yet; it is %s", r.Config.ID, r.Result.State)
}
