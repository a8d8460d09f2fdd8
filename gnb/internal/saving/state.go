// Package saving keeps a run on disk while it trains: checkpoints with the program's own values, the
// best weights, and what a resumed run takes from them.
//
// A [Saver] writes checkpoints at boundaries between iterations, where everything that one holds
// belongs together. It also copies that now and then, so that an interrupt in the middle of an
// iteration has a boundary to save. [Resumed] is a checkpoint as the run that continues reads it.
// None of it knows workers or networks, only tensors with names.
package saving

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/loop"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// State is what a checkpoint holds beside weights and optimiser state. Random numbers need nothing:
// they are functions of the seed and the position.
type State struct {
	Version  string                     `json:"version"`
	Layout   int                        `json:"philox_layout"`
	CPU      string                     `json:"cpu"`
	Seed     uint64                     `json:"seed"`
	Ranks    int                        `json:"virtual_ranks_in_all"`
	Program  string                     `json:"program"`
	Run      string                     `json:"run,omitempty"`      // the run's ID
	Identity string                     `json:"identity,omitempty"` // digest of the run's identity; "" in early versions
	Position loop.Position              `json:"position"`
	Sums     loop.Sums                  `json:"sums"`
	Optim    []Optimizer                `json:"optimizers"`
	Kept     map[string]json.RawMessage `json:"kept,omitempty"`
	Best     map[string]runfile.Number  `json:"best,omitempty"`
	// BestFiles are the checksums of the files of best weights beside the checkpoint.
	BestFiles map[string]string `json:"best_files,omitempty"`
}

// Optimizer is an optimiser's state but for its tensors.
type Optimizer struct {
	Name  string         `json:"name"`
	Steps int64          `json:"steps"`
	LR    runfile.Number `json:"lr"`
	// Start is the learning rate that the optimiser was made with; nil in checkpoints of
	// versions that did not record it.
	Start *runfile.Number `json:"start_lr,omitempty"`
}

// The metadata of a file of weights beside its checksum: the network as JSON, and the number of steps
// of the run after which it had these weights.
const (
	MetaModel = "gnb_model"
	MetaStep  = "gnb_step"
)

// CheckBestFiles checks that the files of best weights in a run's directory are those that the
// checkpoint was written beside, or later ones of the same run, which the repeated steps write again.
func (st *State) CheckBestFiles(dir string) error {
	for name, sum := range st.BestFiles {
		path := filepath.Join(dir, filepath.Base(name))
		_, meta, err := safetensors.ReadFile(path)
		now := safetensors.SumIn(meta)
		step, noStep := strconv.ParseInt(meta[MetaStep], 10, 64)
		const wayOut = "put back the run's own file, or start anew (Resume: gnb.Never)"
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("gnb: %s is missing: it has the weights of the best epoch so far, without which the run cannot resume; %s", path, wayOut)
		case err != nil:
			return fmt.Errorf("gnb: the weights of the best epoch so far: %w; %s", err, wayOut)
		case now != sum && (noStep != nil || step < st.Position.Total):
			return fmt.Errorf("gnb: %s is not the file that the run wrote; %s", path, wayOut)
		}
	}
	return nil
}

// SumsIn are the checksums of the files of weights in a run's directory, by their names.
func SumsIn(dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // reading one of them reports it
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
