package gnb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/safetensors"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// checkpointState is what a checkpoint holds beside weights and optimiser state.
// Random numbers need nothing: they are functions of the seed and the position.
type checkpointState struct {
	Version  string                     `json:"version"`
	Layout   int                        `json:"philox_layout"`
	CPU      string                     `json:"cpu"`
	Seed     uint64                     `json:"seed"`
	Ranks    int                        `json:"virtual_ranks_in_all"`
	Program  string                     `json:"program"`
	Position position                   `json:"position"`
	Sums     sums                       `json:"sums"`
	Optim    []optimState               `json:"optimizers"`
	Kept     map[string]json.RawMessage `json:"kept,omitempty"`
	Best     map[string]number          `json:"best,omitempty"`
}

type optimState struct {
	Name  string `json:"name"`
	Steps int64  `json:"steps"`
	LR    number `json:"lr"`
}

// Keep makes a variable of the program part of every checkpoint, under a name of
// its own, and gives it the checkpoint's value when the run resumes. v is a
// pointer to something that encoding/json can encode; it must be the same on
// every rank, since rank 0's is what is kept. Its value is taken at the end of
// each iteration of [Worker.Batches] and of each epoch.
func (w *Worker) Keep(name string, v any) {
	if w.resumed != nil {
		if raw, ok := w.resumed.Kept[name]; ok {
			if err := json.Unmarshal(raw, v); err != nil {
				w.Fail(fmt.Errorf("gnb: the checkpoint's value of %q does not fit %T: %w", name, v, err))
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.kept[name]; ok {
		panic(stopped{fmt.Errorf("gnb: Keep was called twice with the name %q, the second time at %s", name, callSite())})
	}
	w.kept[name] = v
	w.snapshot()
}

// snapshot records what the program keeps; the caller holds mu.
func (w *Worker) snapshot() {
	if w.p.Rank != 0 {
		return
	}
	w.bestSnap = maps.Clone(w.best)
	if len(w.kept) == 0 {
		return
	}
	w.snap = make(map[string]json.RawMessage, len(w.kept))
	for name, v := range w.kept {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(stopped{fmt.Errorf("gnb: what Keep holds as %q cannot be written into a checkpoint: %w", name, err)})
		}
		w.snap[name] = raw
	}
}

// autoSave is how often checkpoints are written when the program does not say.
const autoSave = time.Minute

func (w *Worker) saveDue() bool {
	if w.p.Rank != 0 || len(w.nets) == 0 || w.job.CheckpointEvery < 0 {
		return false
	}
	if every := int64(w.job.CheckpointEvery); every > 0 {
		return w.pos.Total%every == 0 && w.pos.Total > 0
	}
	return time.Since(w.lastSave) > autoSave
}

// save writes a checkpoint of the last boundary, or of the end of the iteration
// whose step has already changed the parameters. Any goroutine may call it.
func (w *Worker) save() (string, error) {
	// Metrics must not end before the checkpoint does: what is lost in between a
	// resumed run would not report again.
	if err := w.flushRecords(); err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	pos := w.pos
	if w.dirty {
		pos.Step++
		pos.InAll++
	}
	st := checkpointState{
		Version: Version, Layout: philox.LayoutVersion, CPU: cpuClass(), Seed: w.job.Seed,
		Ranks: w.World() * w.job.Virtual, Program: w.job.Program,
		Position: pos, Sums: w.sums, Kept: w.snap, Best: w.bestSnap,
	}
	var ts []safetensors.Tensor
	for _, n := range w.nets {
		ts = append(ts, n.tensors(fmt.Sprintf("model%d.", n.index))...)
	}
	for i, o := range w.opts {
		st.Optim = append(st.Optim, optimState{o.opt.Name(), o.opt.Steps(), number(o.opt.LR())})
		for _, s := range o.opt.State() {
			ts = append(ts, safetensors.Tensor{Name: fmt.Sprintf("optimizer%d.%s", i, s.Name), Shape: []int{len(s.Data)}, F32: s.Data})
		}
	}
	path, err := checkpoint.Save(filepath.Join(w.job.RunDir, "checkpoints"), pos.Total, ts, st, w.job.KeepCheckpoints)
	if err != nil {
		return "", fmt.Errorf("gnb: writing a checkpoint: %w", err)
	}
	w.lastSave = time.Now()
	return path, w.p.Emit(event{Type: evCheckpoint, Text: path, Total: pos.Total, At: pos.place(), Epoch: pos.Epoch})
}

// stopIfAsked ends rank 0 with [ErrInterrupted], its checkpoint written, when the
// run has been interrupted. The other ranks go on until they wait for it, and are
// ended then.
func (w *Worker) stopIfAsked() {
	if w.p.Rank != 0 || !w.p.StopRequested() {
		return
	}
	w.Fail(w.saveForInterrupt())
}

func (w *Worker) saveForInterrupt() error {
	w.leaving.Do(func() {
		w.leftWith = ErrInterrupted
		if w.p.Rank == 0 && len(w.nets) > 0 && w.job.RunDir != "" && w.job.CheckpointEvery >= 0 {
			if _, err := w.save(); err != nil {
				w.leftWith = errors.Join(ErrInterrupted, err)
			}
		}
	})
	return w.leftWith
}

// stopPatience is how long an interrupted rank 0 waits for the end of an
// iteration before it writes the checkpoint from beside the program. The run's
// supervisor allows 2 s in all.
const stopPatience = 700 * time.Millisecond

// watchStop writes the checkpoint of an interrupted run whose program does not
// come to the end of an iteration: because it evaluates, waits, or computes
// something long. Parameters change only under mu, so what it writes is whole.
func (w *Worker) watchStop(done <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			switch {
			case !w.p.StopRequested():
			case since.IsZero():
				since = now
			case now.Sub(since) > stopPatience:
				_ = w.saveForInterrupt()
				if multigpu.InWorker() {
					os.Exit(1) // the supervisor has asked for this end
				}
				return
			}
		}
	}
}

// loadState reads the checkpoint that the run resumes from.
func (w *Worker) loadState(path string) error {
	st := &checkpointState{}
	ts, err := checkpoint.Load(path, st)
	if err != nil {
		return err
	}
	if st.Layout != philox.LayoutVersion {
		return fmt.Errorf("gnb: %s was written with random numbers of layout %d and this version has layout %d; start the run anew (Resume: gnb.Never)", path, st.Layout, philox.LayoutVersion)
	}
	w.ckpt = map[string][]float32{}
	for _, t := range ts {
		w.ckpt[t.Name] = t.F32
	}
	w.resumed, w.pos, w.skip, w.sums = st, st.Position, st.Position, st.Sums
	maps.Copy(w.best, st.Best)
	w.snap, w.bestSnap = st.Kept, st.Best
	if w.p.Rank == 0 {
		if st.CPU != cpuClass() {
			w.Printf("resuming on a CPU of class %s a run of class %s: results will agree closely, not to the bit", cpuClass(), st.CPU)
		}
		if ranks := w.World() * w.job.Virtual; st.Ranks != ranks {
			w.Printf("resuming with %d workers × virtual ranks a run that had %d: results will agree closely, not to the bit", ranks, st.Ranks)
		}
	}
	return nil
}

func (n *network) tensors(prefix string) []safetensors.Tensor {
	var ts []safetensors.Tensor
	for _, p := range n.params.List() {
		ts = append(ts, safetensors.Tensor{Name: prefix + p.Name, Shape: p.Shape(), F32: p.W})
	}
	return ts
}

func (w *Worker) loadNetwork(n *network) error {
	prefix := fmt.Sprintf("model%d.", n.index)
	for _, p := range n.params.List() {
		v, ok := w.ckpt[prefix+p.Name]
		if !ok || len(v) != len(p.W) {
			return fmt.Errorf("gnb: the checkpoint does not fit model %q: parameter %s has %d values there and %d here; resume with the sizes the run had, or start anew", n.name, p.Name, len(v), len(p.W))
		}
		copy(p.W, v)
	}
	return nil
}

func (w *Worker) loadOptimizer(i int, o *Optimizer) error {
	if i >= len(w.resumed.Optim) || w.resumed.Optim[i].Name != o.opt.Name() {
		return fmt.Errorf("gnb: the checkpoint holds no state for optimiser %d (%s); resume with the optimisers the run had", i, o.opt.Name())
	}
	st := w.resumed.Optim[i]
	state := map[string][]float32{}
	for _, s := range o.opt.State() {
		state[s.Name] = w.ckpt[fmt.Sprintf("optimizer%d.%s", i, s.Name)]
	}
	o.opt.SetLR(float64(st.LR))
	return o.opt.SetState(st.Steps, state)
}

// SaveBest writes the network's weights to best.safetensors in the run's
// directory when value is higher than at any call before, and says whether it
// was. Every rank must call it with the same value.
func (w *Worker) SaveBest(net Network, value float64) bool {
	n := net.net()
	key := fmt.Sprintf("best%d", n.index)
	old, ok := w.best[key]
	if ok && !(value > float64(old)) {
		return false
	}
	w.best[key] = number(value)
	if w.p.Rank == 0 && w.job.RunDir != "" {
		w.stage(stageSave)
		w.check(n.write(filepath.Join(w.job.RunDir, n.file("best"))))
		w.stage(stageProgram)
	}
	return true
}

// LoadBest puts the weights that [Worker.SaveBest] wrote last back into the
// network, on every rank. Collective.
func (w *Worker) LoadBest(net Network) {
	n := net.net()
	w.Barrier() // rank 0 has written the file
	ts, _, err := safetensors.ReadFile(filepath.Join(w.job.RunDir, n.file("best")))
	w.check(err)
	w.check(n.load(ts))
}

// file is the name of a file of the network's weights: networks after the first
// have their model's name in it.
func (n *network) file(kind string) string {
	if n.index > 0 {
		kind += fmt.Sprintf("-%d-%s", n.index, n.name)
	}
	return kind + ".safetensors"
}

func (n *network) write(path string) error {
	meta := map[string]string{"format": "pt", "graphnb_version": Version, "model": n.name}
	return safetensors.WriteFile(path, n.tensors(""), meta)
}

// load takes weights by the names of PyTorch's state_dict; all must be there and
// fit.
func (n *network) load(ts []safetensors.Tensor) error {
	have := map[string]safetensors.Tensor{}
	for _, t := range ts {
		have[t.Name] = t
	}
	for _, p := range n.params.List() {
		t, ok := have[p.Name]
		if !ok {
			return fmt.Errorf("gnb: the weights hold no tensor %s for model %q; they hold %v", p.Name, n.name, slices.Sorted(maps.Keys(have)))
		}
		if !slices.Equal(t.Shape, p.Shape()) {
			return fmt.Errorf("gnb: tensor %s of model %q has shape %v in the file and %v here; use the sizes the weights were trained with", p.Name, n.name, t.Shape, p.Shape())
		}
		delete(have, p.Name)
	}
	if len(have) > 0 {
		return fmt.Errorf("gnb: the weights hold tensors that model %q has no parameters for: %v", n.name, slices.Sorted(maps.Keys(have)))
	}
	for _, p := range n.params.List() {
		for _, t := range ts {
			if t.Name == p.Name {
				copy(p.W, t.F32)
			}
		}
	}
	return nil
}

// LoadWeights reads a safetensors file into the network: names and shapes must be
// the network's (PyTorch Geometric's, where the layers are its layers).
func (w *Worker) LoadWeights(net Network, path string) {
	ts, _, err := safetensors.ReadFile(path)
	w.check(err)
	w.check(net.net().load(ts))
}
