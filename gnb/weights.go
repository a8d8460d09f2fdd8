package gnb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// LoadWeights reads a safetensors file into the network: names and shapes must be
// the network's (PyTorch Geometric's, where the layers are its layers). A file that
// a run has written has a checksum, and is refused where that does not hold; a
// note reports that another program's file has none.
func (w *Worker) LoadWeights(net Network, path string) {
	ts, meta, err := safetensors.ReadFile(path)
	w.check(err)
	if !safetensors.Sealed(meta) && w.Rank() == 0 {
		w.Printf("%s has no checksum, as files of other programs and earlier versions have none: damage to it would not be noticed", path)
	}
	w.check(w.netOf(net, "LoadWeights").load(ts))
}

// weightsOf is the file of the weights to compute with: those at the best validation accuracy, else,
// or when they are asked for, the final ones; and the network in it, nil where that is not
// recorded. It must be the file that the run has written.
func weightsOf(r *runs.Run, final bool) (path string, model *runs.ModelInfo, err error) {
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
			return "", nil, fmt.Errorf("gnb: %s of run %s is not there any more; %s", name, r.Config.ID, wayOut)
		case err != nil:
			return "", nil, fmt.Errorf("gnb: the weights of run %s: %w", r.Config.ID, err)
		}
		if written && safetensors.SumIn(meta) != said {
			return "", nil, fmt.Errorf("gnb: %s is not the file that run %s wrote; put that back, or train again", path, r.Config.ID)
		}
		if text := meta[saving.MetaModel]; text != "" {
			model = &runs.ModelInfo{}
			if err := json.Unmarshal([]byte(text), model); err != nil {
				return "", nil, fmt.Errorf("gnb: %s: what it says of its network cannot be read: %w", path, err)
			}
		}
		return runfile.Absolute(path), model, nil
	}
	return "", nil, fmt.Errorf("gnb: run %s has no weights yet; it is %s", r.Config.ID, r.Result.State)
}
