// Package saving saves a run while it trains and loads it to resume: checkpoints with the
// program's own values, and the best weights. It also follows the program through its loop over
// epochs, the loops over batches within an epoch, and their steps.
//
// A [Saver] writes checkpoints at boundaries between iterations, when all parts of a checkpoint
// are consistent. From time to time it also copies that state, so that an interrupt in the middle
// of an iteration can save an earlier boundary. [Resumed] reads a checkpoint for a resumed run.
// A checkpoint holds a [Position]. A program that resumes from it runs the statements of its epoch
// again; its [Cursor] tells it which loops and steps to skip.
//
// A [Network] names the tensors of a network in checkpoints and files of weights. The package knows no
// workers.
package saving

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// State is the content of a checkpoint except weights and optimiser state. It holds no state of
// random numbers, because they are functions of the seed and the position.
type State struct {
	Version  string      `json:"version"`
	Layout   int         `json:"philox_layout"`
	CPU      string      `json:"cpu"`
	Seed     uint64      `json:"seed"`
	Ranks    int         `json:"virtual_ranks_in_all"`
	Program  string      `json:"program"`
	Run      string      `json:"run,omitempty"`      // the run's ID
	Identity string      `json:"identity,omitempty"` // digest of the run's identity; "" in early versions
	Position Position    `json:"position"`
	Sums     Sums        `json:"sums"`
	Optim    []Optimizer `json:"optimizers"`
	// Embeddings are the tables of learned rows, except their tensors.
	Embeddings []Embedding                `json:"embeddings,omitempty"`
	Kept       map[string]json.RawMessage `json:"kept,omitempty"`
	Best       map[string]runfile.Number  `json:"best,omitempty"`
	// BestFiles holds the checksums of the run's files of best weights.
	BestFiles map[string]string `json:"best_files,omitempty"`
}

// Optimizer is an optimiser's state except its tensors.
type Optimizer struct {
	Name  string         `json:"name"`
	Steps int64          `json:"steps"`
	LR    runfile.Number `json:"lr"`
	// Start is the optimiser's initial learning rate; nil in checkpoints of versions that did not
	// record it.
	Start *runfile.Number `json:"start_lr,omitempty"`
}

// Embedding is a network's table of learned rows, except its tensors.
type Embedding struct {
	Network int   `json:"network"` // the network's number
	Steps   int64 `json:"steps"`   // of the table's optimiser
}

// MetaStep is the key in a weights file's metadata of the number of steps of the run at these weights.
const MetaStep = "gnb_step"

// CheckBestFiles checks that the files of best weights in a run's directory are those from the
// time of the checkpoint, or later ones of the same run, which the resumed run will write again.
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

// SumsIn returns the checksums of the weights files in a run's directory by name.
func SumsIn(dir string) map[string]string {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // reading a file reports the error
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
