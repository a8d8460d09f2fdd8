package gnb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/graphnb/graphnb/internal/safetensors"
)

// What the metadata of a file of weights has beside its checksum: the network, and after how many
// steps of the run it had these weights.
const (
	metaModel = "gnb_model"
	metaStep  = "gnb_step"
)

func writeWeights(path string, model *ModelInfo, step int64, ts []safetensors.Tensor) error {
	info, err := json.Marshal(model)
	if err != nil {
		return err
	}
	return safetensors.WriteFile(path, ts, map[string]string{
		"format": "pt", "graphnb_version": Version, "model": model.Name, metaModel: string(info), metaStep: strconv.FormatInt(step, 10),
	})
}

// LoadWeights reads a safetensors file into the network: names and shapes must be
// the network's (PyTorch Geometric's, where the layers are its layers). A file that
// a run has written has a checksum, and is refused where that does not hold; of
// another program's it is said that it has none.
func (w *Worker) LoadWeights(net Network, path string) {
	ts, meta, err := safetensors.ReadFile(path)
	w.check(err)
	if !safetensors.Sealed(meta) && w.Rank() == 0 {
		w.Printf("%s has no checksum, as files of other programs and earlier versions have none: damage to it would not be noticed", path)
	}
	w.check(w.netOf(net, "LoadWeights").load(ts))
}

// checkBestFiles checks that the files of best weights in a run's directory are those that a
// checkpoint was written beside, or later ones of the same run, which the steps that are done again
// write again.
func (st *checkpointState) checkBestFiles(dir string) error {
	for name, sum := range st.BestFiles {
		path := filepath.Join(dir, filepath.Base(name))
		_, meta, err := safetensors.ReadFile(path)
		now := safetensors.SumIn(meta)
		step, noStep := strconv.ParseInt(meta[metaStep], 10, 64)
		const wayOut = "put back the run's own file, or start anew (Resume: gnb.Never)"
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("gnb: %s is not there any more: the weights of the best epoch so far, without which the run cannot go on; %s", path, wayOut)
		case err != nil:
			return fmt.Errorf("gnb: the weights of the best epoch so far: %w; %s", err, wayOut)
		case now != sum && (noStep != nil || step < st.Position.Total):
			return fmt.Errorf("gnb: %s is not the file that the run wrote; %s", path, wayOut)
		}
	}
	return nil
}

// weightsIn are the checksums of the files of weights in a run's directory, by their names.
func weightsIn(dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be listed is said where it is read
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".safetensors" {
			continue
		}
		if sum, err := safetensors.Sum(filepath.Join(dir, e.Name())); err == nil && sum != "" {
			out[e.Name()] = sum
		}
	}
	return out
}

// weights is the file of the weights to compute with: those at the best validation accuracy, else,
// or when they are asked for, the final ones; and the network in it, nil where that is not
// recorded. It must be the file that the run has written.
func (r *Run) weights(final bool) (path string, model *ModelInfo, err error) {
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
		if text := meta[metaModel]; text != "" {
			model = &ModelInfo{}
			if err := json.Unmarshal([]byte(text), model); err != nil {
				return "", nil, fmt.Errorf("gnb: %s: what it says of its network cannot be read: %w", path, err)
			}
		}
		return absolute(path), model, nil
	}
	return "", nil, fmt.Errorf("gnb: run %s has no weights yet; it is %s", r.Config.ID, r.Result.State)
}
