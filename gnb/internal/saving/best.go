package saving

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// writeBestEvery is the minimal interval between writes of best weights: a durable write takes a
// disk's latency, in which a small graph trains many epochs.
const writeBestEvery = 250 * time.Millisecond

// Best keeps the best weights of a run's networks, one file each. [Best.Improve] and [Best.Epoch] belong
// to the program's goroutine; any goroutine may call the other methods.
type Best struct {
	// values holds each network's best value and its epoch, under keys that checkpoints use.
	values map[string]runfile.Number

	mu      sync.Mutex
	files   []*bestFile // under mu
	written time.Time   // the last write; under mu
	// early is set until a resumed run has loaded its checkpoint: a run that fails before then changes no file.
	early bool // under mu
}

// bestFile is one network's best weights, from the time they are copied until they are written.
type bestFile struct {
	path    string
	meta    map[string]string
	tensors []safetensors.Tensor // nil for a file of steps that the resumed run has abandoned, to be removed
	waits   bool
	// held are the tensors that the copy of a boundary refers to, nil without one, and spare the memory of
	// tensors that nothing refers to. Put writes neither into held tensors nor allocates while there is spare memory.
	held, spare []safetensors.Tensor
}

func bestKey(network int) string      { return fmt.Sprintf("best%d", network) }
func bestEpochKey(network int) string { return bestKey(network) + ".epoch" }

// Improve takes a network's value of an epoch and reports whether it is the highest so far; one that is not finite never is.
func (b *Best) Improve(network int, value float64, epoch int) bool {
	old, ok := b.values[bestKey(network)]
	if math.IsNaN(value) || math.IsInf(value, 0) || ok && value <= float64(old) {
		return false
	}
	if b.values == nil {
		b.values = map[string]runfile.Number{}
	}
	b.values[bestKey(network)], b.values[bestEpochKey(network)] = runfile.Number(value), runfile.Number(epoch)
	return true
}

// Epoch returns the epoch of a network's best value; ok is false if it has none.
func (b *Best) Epoch(network int) (epoch int, ok bool) {
	e, ok := b.values[bestEpochKey(network)]
	return int(e), ok
}

// Put copies a network's weights, to be written into the file path with the metadata.
func (b *Best) Put(path string, meta map[string]string, tensors []safetensors.Tensor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.files, func(f *bestFile) bool { return f.path == path })
	if i < 0 {
		i = len(b.files)
		b.files = append(b.files, &bestFile{path: path})
	}
	f := b.files[i]
	if sameMemory(f.tensors, f.held) {
		f.tensors, f.spare = f.spare, nil
	}
	f.meta, f.tensors, f.waits = meta, copyTensors(f.tensors, tensors), true
}

// content returns the best weights so far for a checkpoint: the metadata of each file by its name, and the tensors,
// which have the file's name before their own. If hold is set, they stay as they are until the next such call.
func (b *Best) content(hold bool) (meta map[string]map[string]string, tensors []safetensors.Tensor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		if hold {
			if f.held != nil && !sameMemory(f.tensors, f.held) {
				f.spare = f.held
			}
			f.held = f.tensors
		}
		if f.tensors == nil {
			continue
		}
		if meta == nil {
			meta = map[string]map[string]string{}
		}
		name := filepath.Base(f.path)
		meta[name] = f.meta
		for _, t := range f.tensors {
			t.Name = bestPrefix(name) + t.Name
			tensors = append(tensors, t)
		}
	}
	return meta, tensors
}

// allBest is the beginning of the names of all files of best weights, and of no other tensor in a checkpoint.
const allBest = "best"

// bestPrefix is the prefix of the names that the tensors of a file of best weights have in a checkpoint.
func bestPrefix(file string) string { return file + "/" }

// sameMemory reports whether two lists of tensors are one.
func sameMemory(a, b []safetensors.Tensor) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// Write writes waiting weights if the last write is long enough ago or now is set.
func (b *Best) Write(now bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.early || !now && time.Since(b.written) < writeBestEvery {
		return nil
	}
	for _, f := range b.files {
		if !f.waits {
			continue
		}
		err := error(nil)
		if f.tensors != nil {
			err = safetensors.WriteFile(f.path, f.tensors, f.meta)
		} else if err = os.Remove(f.path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("gnb: writing the best weights: %w; make room, and resume the run", err)
		}
		f.waits, b.written = false, time.Now()
	}
	return nil
}

// resume takes the values and the weights of a checkpoint whose tensors are ts. The files in dir, "" for a rank
// without one, become the checkpoint's once the run has begun: those of later steps, which the resumed run may
// never reach again, are replaced or removed.
func (b *Best) resume(st *State, ts []safetensors.Tensor, dir string) error {
	b.values = maps.Clone(st.Best)
	if dir == "" {
		return nil
	}
	files, err := st.bestFiles(ts, dir)
	if err != nil {
		return err
	}
	b.files, b.early = files, true
	for _, path := range weightsIn(dir, allBest) {
		if !slices.ContainsFunc(b.files, func(f *bestFile) bool { return f.path == path }) {
			b.files = append(b.files, &bestFile{path: path, waits: true})
		}
	}
	return nil
}

// weightsIn returns the files of weights in a run's directory whose names begin with kind, such as "best".
func weightsIn(dir, kind string) (paths []string) {
	entries, _ := os.ReadDir(dir) // a missing one has none
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), kind) && filepath.Ext(e.Name()) == ".safetensors" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// Begin lets a resumed run write its files.
func (b *Best) Begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.early = false
}

// copyTensors copies from into the memory of to.
func copyTensors(to, from []safetensors.Tensor) []safetensors.Tensor {
	out := slices.Clone(from)
	for i := range out {
		var mem []float32
		if i < len(to) {
			mem = to[i].F32
		}
		out[i].F32 = append(mem[:0], out[i].F32...)
	}
	return out
}
