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
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	// BestMeta is the metadata of the run's files of best weights by their names. The checkpoint has their tensors too,
	// because the files themselves may be of later steps by the time the run resumes.
	BestMeta map[string]map[string]string `json:"best_meta,omitempty"`
	// BestFiles are the checksums of these files in checkpoints of versions that did not hold their tensors.
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

const (
	oldBestWayOut = "put back the run's own file, or start anew (Resume: gnb.Never)"
	bestWayOut    = "move it away, and the run writes its own again from the checkpoint, or start anew (Resume: gnb.Never)"
)

// CheckBestFiles compares the files of best weights in a run's directory with those of a checkpoint with the tensors
// ts, which a resumed run writes again. It fails if one is damaged or another run's, which is not overwritten, and notes
// those that are missing.
func (st *State) CheckBestFiles(ts []safetensors.Tensor, dir string) (notes []string, err error) {
	files, err := st.bestFiles(ts, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		now, meta, err := safetensors.ReadFile(f.path)
		step, noStep := strconv.ParseInt(meta[MetaStep], 10, 64)
		switch {
		case errors.Is(err, os.ErrNotExist):
			notes = append(notes, fmt.Sprintf("%s is missing: it is written again from the checkpoint", f.path))
		case err != nil:
			return notes, fmt.Errorf("gnb: the weights of the best epoch so far: %w; %s", err, bestWayOut)
		case !sameTensors(now, f.tensors) && (noStep != nil || step < st.Position.Total):
			return notes, fmt.Errorf("gnb: %s is not the file that the run wrote; %s", f.path, bestWayOut)
		}
	}
	return notes, nil
}

// bestFiles returns the files of best weights in dir as they were at the checkpoint with the tensors ts.
func (st *State) bestFiles(ts []safetensors.Tensor, dir string) (files []*bestFile, err error) {
	for _, name := range slices.Sorted(maps.Keys(st.BestMeta)) {
		f := &bestFile{path: filepath.Join(dir, filepath.Base(name)), meta: st.BestMeta[name], waits: true}
		for _, t := range ts {
			if own, ok := strings.CutPrefix(t.Name, bestPrefix(name)); ok {
				t.Name = own
				f.tensors = append(f.tensors, t)
			}
		}
		if f.tensors == nil {
			return nil, fmt.Errorf("gnb: the checkpoint lacks the weights of %s; %s", name, oldBestWayOut)
		}
		files = append(files, f)
	}
	for name, sum := range st.BestFiles { // of an earlier version: the file must be the one of the checkpoint's time
		path := filepath.Join(dir, filepath.Base(name))
		tensors, meta, err := safetensors.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("gnb: %s is missing: it has the weights of the best epoch so far, without which the run cannot resume; %s", path, oldBestWayOut)
		case err != nil:
			return nil, fmt.Errorf("gnb: the weights of the best epoch so far: %w; %s", err, oldBestWayOut)
		case safetensors.SumIn(meta) != sum:
			return nil, fmt.Errorf("gnb: %s is not the file of the checkpoint, which an earlier version of GraphNB wrote without its weights; %s", path, oldBestWayOut)
		}
		files = append(files, &bestFile{path: path, meta: meta, tensors: tensors})
	}
	return files, nil
}

// sameTensors reports whether two files have the same weights, bit for bit.
func sameTensors(a, b []safetensors.Tensor) bool {
	bits := func(x, y float32) int { return cmp.Compare(math.Float32bits(x), math.Float32bits(y)) }
	byName := func(x, y safetensors.Tensor) int { return cmp.Compare(x.Name, y.Name) }
	return slices.EqualFunc(slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName), func(x, y safetensors.Tensor) bool {
		return x.Name == y.Name && slices.Equal(x.Shape, y.Shape) && slices.CompareFunc(x.F32, y.F32, bits) == 0
	})
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
