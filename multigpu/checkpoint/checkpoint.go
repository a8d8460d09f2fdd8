// Package checkpoint stores the last states of a run. Each is one file, which is written completely
// or not at all.
//
// A checkpoint is a safetensors file step-%010d.safetensors: tensors by name,
// and in its metadata the rest of the state as JSON and the SHA-256 that package
// safetensors gives a file. Python reads the tensors with the safetensors
// package.
//
// # Basics
//
//	path, err := checkpoint.Save(dir, step, tensors, state, 3)
//	path, step, damaged, err := checkpoint.Latest(dir)
//	tensors, err := checkpoint.Load(path, &state)
//
// # Caveats
//
// One process at a time saves to a directory. A process killed while it saves leaves a temporary
// file, which the next Save removes (see package atomicfile); earlier checkpoints stay.
package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// ErrNone matches the error for a directory without a valid checkpoint.
var ErrNone = errors.New("there is no valid checkpoint")

// ErrDamaged matches the error for a file that differs from what was written.
var ErrDamaged = safetensors.ErrDamaged

const (
	prefix = "step-"
	suffix = ".safetensors"

	keyStep  = "gnb_step"
	keyState = "gnb_state"
)

// Path is the file of the checkpoint at step in dir.
func Path(dir string, step int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%010d%s", prefix, step, suffix))
}

// Save writes the checkpoint at step, replacing an existing one, and returns its path once the
// checkpoint would survive a power cut: it is written to a temporary file, synced and renamed, and
// the directory is synced. It creates dir if it is missing, but not its parent. state is kept as
// JSON. Then all but the keep highest steps are removed, never the one just written; keep < 1 keeps
// all.
func Save(dir string, step int64, tensors []safetensors.Tensor, state any, keep int) (path string, err error) {
	if step < 0 {
		return "", fmt.Errorf("checkpoint: step %d is negative", step)
	}
	js, err := json.Marshal(state)
	if err != nil {
		return "", fmt.Errorf("checkpoint: the state at step %d cannot be written as JSON: %w", step, err)
	}
	if err := atomicfile.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	atomicfile.Sweep(dir)
	meta := map[string]string{keyStep: strconv.FormatInt(step, 10), keyState: string(js)}
	path = Path(dir, step)
	// Only checkpoints have such names. A link, pipe or socket in a checkpoint's place holds no
	// state to resume from, and the next line would refuse to write into it.
	if info, err := os.Lstat(path); err == nil && info.Mode().Type()&(fs.ModeSymlink|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		if err := os.Remove(path); err != nil {
			return "", fmt.Errorf("checkpoint: saving step %d: %w", step, err)
		}
	}
	if err := safetensors.WriteFile(path, tensors, meta); err != nil {
		return "", fmt.Errorf("checkpoint: saving step %d: %w", step, err)
	}
	return path, prune(dir, step, keep)
}

// Latest returns the newest valid checkpoint of dir, by step, after reading it whole. Damaged files
// are skipped and returned as errors that match [ErrDamaged] and name the file; show them as
// warnings. If there is no valid checkpoint, the error matches [ErrNone].
func Latest(dir string) (path string, step int64, damaged []error, err error) {
	return LatestOf(dir, nil)
}

// LatestOf is [Latest] of the checkpoints that accept accepts. accept receives the state as JSON
// and returns nil or the reason for rejecting it. Rejected checkpoints are skipped and also
// returned, with that error.
func LatestOf(dir string, accept func(state json.RawMessage) error) (path string, step int64, passed []error, err error) {
	steps, err := list(dir)
	if err != nil {
		return "", 0, nil, err
	}
	for _, step := range slices.Backward(steps) {
		path := Path(dir, step)
		var state json.RawMessage
		_, err := Load(path, &state)
		if err == nil && accept != nil {
			if err = accept(state); err != nil {
				err = fmt.Errorf("checkpoint: %s: %w", path, err)
			}
		}
		if err == nil {
			return path, step, passed, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			passed = append(passed, err)
		}
	}
	return "", 0, passed, fmt.Errorf("checkpoint: %s: %w", dir, ErrNone)
}

// Load reads a checkpoint and checks its digest. state is a pointer that the
// JSON state is decoded into, or nil. A file that is not as Save wrote it gives
// an error that matches [ErrDamaged].
func Load(path string, state any) ([]safetensors.Tensor, error) {
	tensors, meta, err := safetensors.ReadFile(path)
	step, notStep := strconv.ParseInt(meta[keyStep], 10, 64)
	if errors.Is(err, ErrDamaged) && notStep == nil && meta[keyOld] == digestOld(step, tensors, meta[keyState]) {
		err = nil
	}
	switch {
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("checkpoint: %w", err)
	case err != nil:
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, fmt.Errorf("checkpoint: %w", pathErr)
		}
		return nil, fmt.Errorf("checkpoint: %w: %w", ErrDamaged, err)
	case notStep != nil || !safetensors.Sealed(meta) && meta[keyOld] == "":
		return nil, fmt.Errorf("checkpoint: %s: %w: it has no %s or no checksum in its metadata, so it is not a checkpoint", path, ErrDamaged, keyStep)
	}
	if state == nil {
		return tensors, nil
	}
	if err := json.Unmarshal([]byte(meta[keyState]), state); err != nil {
		return nil, fmt.Errorf("checkpoint: %s: its state does not fit: %w", path, err)
	}
	return tensors, nil
}

// keyOld is the key of the checksum in checkpoints of earlier versions.
const keyOld = "gnb_sha256"

// digestOld is that checksum: a SHA-256 over everything that a checkpoint holds;
// lengths go in front, so that no two contents give the same bytes.
func digestOld(step int64, tensors []safetensors.Tensor, state string) string {
	h := sha256.New()
	number(h, step)
	text(h, state)
	number(h, int64(len(tensors)))
	buf := make([]byte, 0, 32<<10)
	for _, t := range tensors {
		text(h, t.Name)
		number(h, int64(len(t.Shape)))
		for _, d := range t.Shape {
			number(h, int64(d))
		}
		for part := range slices.Chunk(t.F32, cap(buf)/4) {
			buf = buf[:0]
			for _, x := range part {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
			h.Write(buf)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func number(h hash.Hash, v int64) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(v))) }

func text(h hash.Hash, s string) {
	number(h, int64(len(s)))
	h.Write([]byte(s))
}

// list returns the steps for which dir has files, ascending; none if dir does not exist.
func list(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var steps []int64
	for _, e := range entries {
		digits := strings.TrimSuffix(strings.TrimPrefix(e.Name(), prefix), suffix)
		step, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && step >= 0 && filepath.Base(Path(dir, step)) == e.Name() {
			at := len(steps) // entries come by name, which is nearly always by step
			for at > 0 && steps[at-1] > step {
				at--
			}
			steps = append(steps, 0)
			copy(steps[at+1:], steps[at:])
			steps[at] = step
		}
	}
	return steps, nil
}

// prune removes what Save no longer keeps.
func prune(dir string, saved int64, keep int) error {
	if keep < 1 {
		return nil
	}
	steps, err := list(dir)
	if err != nil {
		return err
	}
	for _, step := range steps[:max(0, len(steps)-keep)] {
		if step == saved {
			continue
		}
		if err := os.Remove(Path(dir, step)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checkpoint: removing an old one: %w", err)
		}
	}
	return nil
}
