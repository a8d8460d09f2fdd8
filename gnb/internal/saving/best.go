package saving

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
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
	files   []*bestFile       // under mu
	written time.Time         // the last write; under mu
	sums    map[string]string // checksums of the files written, by their names; under mu
}

// bestFile is one network's best weights, from the time they are copied until they are written.
type bestFile struct {
	path    string
	meta    map[string]string
	tensors []safetensors.Tensor
	waits   bool
}

func bestKey(network int) string      { return fmt.Sprintf("best%d", network) }
func bestEpochKey(network int) string { return bestKey(network) + ".epoch" }

// Improve takes a network's value of an epoch and reports whether it is the highest so far; NaN never is.
func (b *Best) Improve(network int, value float64, epoch int) bool {
	old, ok := b.values[bestKey(network)]
	if math.IsNaN(value) || ok && value <= float64(old) {
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
	f.meta, f.tensors, f.waits = meta, copyTensors(f.tensors, tensors), true
}

// Write writes waiting weights if the last write is long enough ago or now is set.
func (b *Best) Write(now bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !now && time.Since(b.written) < writeBestEvery {
		return nil
	}
	for _, f := range b.files {
		if !f.waits {
			continue
		}
		if err := safetensors.WriteFile(f.path, f.tensors, f.meta); err != nil {
			return fmt.Errorf("gnb: writing the best weights: %w; make room, and resume the run", err)
		}
		sum, err := safetensors.Sum(f.path)
		if err != nil {
			return fmt.Errorf("gnb: writing the best weights: %w", err)
		}
		if b.sums == nil {
			b.sums = map[string]string{}
		}
		b.sums[filepath.Base(f.path)] = sum
		f.waits, b.written = false, time.Now()
	}
	return nil
}

// fileSums returns the checksums of the files written.
func (b *Best) fileSums() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.sums)
}

// resume loads the values of a checkpoint and the checksums of the current files in dir; "" means
// no directory.
func (b *Best) resume(st *State, dir string) {
	b.values = maps.Clone(st.Best)
	if dir == "" {
		return
	}
	b.sums = SumsIn(dir) // CheckBestFiles compared them before the run resumed
	maps.DeleteFunc(b.sums, func(name, _ string) bool { return st.BestFiles[name] == "" })
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
