package gnb

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/loop"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/safetensors"
	"github.com/graphnb/graphnb/internal/simd"
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
	Run      string                     `json:"run,omitempty"`      // Config.ID
	Identity string                     `json:"identity,omitempty"` // Identity.Run; none: of a version that did not record it
	Position loop.Position              `json:"position"`
	Sums     loop.Sums                  `json:"sums"`
	Optim    []optimState               `json:"optimizers"`
	Kept     map[string]json.RawMessage `json:"kept,omitempty"`
	Best     map[string]number          `json:"best,omitempty"`
	// BestFiles are the checksums of the files of best weights beside the checkpoint.
	BestFiles map[string]string `json:"best_files,omitempty"`
}

type optimState struct {
	Name  string `json:"name"`
	Steps int64  `json:"steps"`
	LR    number `json:"lr"`
	// Start is the rate that the optimiser was made with; nil in a checkpoint of a
	// version that did not record it.
	Start *number `json:"start_lr,omitempty"`
}

// Keep makes a variable of the program part of every checkpoint, under a name of
// its own, and gives it the checkpoint's value when the run resumes. v is a
// pointer to something that encoding/json can encode (encoding/gob, where a
// number in it is not finite); it must be the same on every rank, since rank 0's
// is what is kept. Its value is taken at the end of an iteration of
// [Worker.Batches], of such a loop, and of an epoch; so change it within a loop
// over batches, or after the epoch's loops, not before them.
func (w *Worker) Keep(name string, v any) {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		w.Fail(fmt.Errorf("gnb: Keep got a %T as %q, at %s; it takes a pointer to the variable, such as &best", v, name, callSite()))
	}
	if _, ok := w.kept[name]; ok {
		w.Fail(fmt.Errorf("gnb: Keep was called twice with the name %q, the second time at %s", name, callSite()))
	}
	if w.resumed != nil {
		if raw, ok := w.resumed.Kept[name]; ok {
			if err := decodeKept(raw, v); err != nil {
				w.Fail(fmt.Errorf("gnb: the checkpoint's value of %q does not fit %T: %w; keep what the run kept, or start anew (Resume: gnb.Never)", name, v, err))
			}
		}
	}
	if _, err := encodeKept(v); err != nil { // said here, rather than at some checkpoint
		w.Fail(fmt.Errorf("gnb: Keep got a %T as %q, at %s, which cannot be written into a checkpoint: %w", v, name, callSite(), err))
	}
	w.kept[name] = v
}

// keptGob is how values are kept that JSON has no words for: NaN and infinities.
type keptGob struct {
	Gob []byte `json:"gnb.gob"`
}

func encodeKept(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		return raw, err
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(v) != nil {
		return nil, err
	}
	return json.Marshal(keptGob{b.Bytes()})
}

func decodeKept(raw json.RawMessage, v any) error {
	var k keptGob
	if bytes.HasPrefix(raw, []byte(`{"gnb.gob":`)) && json.Unmarshal(raw, &k) == nil {
		// gob leaves out what is zero, so the variable must be.
		p := reflect.ValueOf(v).Elem()
		p.SetZero()
		return gob.NewDecoder(bytes.NewReader(k.Gob)).Decode(v)
	}
	return json.Unmarshal(raw, v)
}

// saves says whether this run writes checkpoints.
func (w *Worker) saves() bool {
	return w.job.RunDir != "" && w.job.CheckpointEvery >= 0
}

// autoSave is how often checkpoints are written when the program does not say.
const autoSave = time.Minute

func (w *Worker) saveDue() bool {
	if every := int64(w.job.CheckpointEvery); every > 0 {
		return w.loop.Pos.Total-w.savedAt >= every
	}
	return time.Since(w.lastSave) > autoSave
}

// state is what a checkpoint of this boundary holds. The tensors are the
// parameters' own memory.
func (w *Worker) state() (checkpointState, []safetensors.Tensor, error) {
	st := checkpointState{
		Version: Version, Layout: philox.LayoutVersion, CPU: cpuClass(w.job.BF16), Seed: w.job.Seed,
		Ranks: w.World() * w.job.Virtual, Program: w.job.Program, Run: w.job.RunID, Identity: w.job.Identity,
		Position: w.loop.Pos, Sums: w.loop.Sums, Kept: map[string]json.RawMessage{}, Best: maps.Clone(w.best),
	}
	if w.resumed != nil {
		maps.Copy(st.Kept, w.resumed.Kept) // what the program has not asked for yet
	}
	for name, v := range w.kept {
		raw, err := encodeKept(v)
		if err != nil {
			return st, nil, fmt.Errorf("gnb: what Keep holds as %q cannot be written into a checkpoint: %w", name, err)
		}
		st.Kept[name] = raw
	}
	if err := w.toHost(); err != nil {
		return st, nil, err
	}
	var ts []safetensors.Tensor
	for _, n := range w.nets {
		ts = append(ts, n.tensors(n.prefix())...)
	}
	for i, o := range w.opts {
		start := number(o.start)
		st.Optim = append(st.Optim, optimState{o.opt.Name(), o.opt.Steps(), number(o.opt.LR()), &start})
		for _, s := range o.opt.State() {
			ts = append(ts, safetensors.Tensor{Name: fmt.Sprintf("optimizer%d.%s", i, s.Name), Shape: []int{len(s.Data)}, F32: s.Data})
		}
	}
	return st, ts, w.checkTensors(ts)
}

// snapshot is a copy of what a checkpoint holds, of a boundary that the program
// has left: an interrupt in the middle of an iteration, or of an evaluation, is
// written from it, so that what is written always belongs together.
type snapshot struct {
	there   bool
	state   checkpointState
	tensors []safetensors.Tensor
	at      time.Time
	cost    time.Duration
}

// snapshotShare is the part of the time, one in so many, that copies may take.
const snapshotShare = 50

// prepare copies what a checkpoint of this boundary would hold, if it is time.
func (w *Worker) prepare(always bool) error {
	s := &w.latest
	start := time.Now()
	if !always && start.Sub(s.at) < snapshotShare*s.cost {
		return nil
	}
	w.catchUp(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	st, ts, err := w.state()
	if err != nil {
		return err
	}
	for i := range ts {
		var mem []float32
		if i < len(s.tensors) {
			mem = s.tensors[i].F32
		}
		ts[i].F32 = append(mem[:0], ts[i].F32...)
	}
	s.there, s.state, s.tensors = true, st, ts
	s.at = time.Now()
	s.cost = s.at.Sub(start)
	return nil
}

// settle writes what must not be behind a checkpoint: the metrics, of which a
// resumed run would not report again what is lost in between, and the best
// weights. Any goroutine may call it.
func (w *Worker) settle() error {
	if err := w.flushRecords(); err != nil {
		return err
	}
	if err := w.sendRest(); err != nil {
		return err
	}
	if err := w.syncMetrics(); err != nil {
		return err
	}
	return w.writeBest(true)
}

// syncMetrics makes the metrics durable that were written.
func (w *Worker) syncMetrics() error {
	w.out.mu.Lock()
	defer w.out.mu.Unlock()
	if w.metrics == nil {
		return nil
	}
	if !w.metrics.There() {
		return errRemoved(w.job.RunDir)
	}
	if err := w.metrics.Sync(); err != nil {
		return fmt.Errorf("gnb: writing the run's metrics: %w; make room, and resume the run", err)
	}
	return nil
}

// save writes a checkpoint of the boundary at which the program stands.
func (w *Worker) save() error {
	w.catchUp(0)
	if err := w.settle(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	st, ts, err := w.state()
	if err != nil {
		return err
	}
	if err := w.write(st, ts); err != nil {
		return err
	}
	w.lastSave, w.savedAt = time.Now(), st.Position.Total
	return nil
}

// savePrepared writes the checkpoint that the last boundaries have prepared. A
// run that has not come to one since its start leaves what is on disk. Any
// goroutine may call it.
func (w *Worker) savePrepared() error {
	if err := w.settle(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.latest.there {
		return nil
	}
	return w.write(w.latest.state, w.latest.tensors)
}

// write writes a checkpoint; the caller holds mu.
func (w *Worker) write(st checkpointState, ts []safetensors.Tensor) error {
	pos := st.Position
	w.bestMu.Lock()
	st.BestFiles = maps.Clone(w.bestFiles)
	w.bestMu.Unlock()
	path, err := checkpoint.Save(filepath.Join(w.job.RunDir, "checkpoints"), pos.Total, ts, st, w.job.KeepCheckpoints)
	if err != nil {
		return fmt.Errorf("gnb: writing a checkpoint: %w", err)
	}
	return w.p.Emit(event{Type: evCheckpoint, Text: path, Total: pos.Total, At: pos.Place(), Epoch: pos.Epoch})
}

// stopIfAsked ends rank 0 with [ErrInterrupted], a checkpoint written, when the
// run has been interrupted, somewhere between two boundaries. The other ranks go
// on until they wait for it, and are ended then.
func (w *Worker) stopIfAsked() {
	if w.p.Rank == 0 && w.p.StopRequested() {
		w.Fail(w.leave(w.savePrepared))
	}
}

// leave writes the checkpoint of an interrupted run, once.
func (w *Worker) leave(save func() error) error {
	w.leaving.Do(func() {
		w.leftWith = ErrInterrupted
		if w.saves() {
			if err := save(); err != nil {
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
// something long.
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
				_ = w.leave(w.savePrepared)
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
	w.resumed, w.savedAt = st, st.Position.Total
	w.loop.Resume(st.Position, st.Sums)
	maps.Copy(w.best, st.Best)
	if w.p.Rank == 0 {
		w.bestFiles = weightsIn(w.job.RunDir) // compared before the run began to go on
		maps.DeleteFunc(w.bestFiles, func(name, _ string) bool { return st.BestFiles[name] == "" })
		if here := cpuClass(w.job.BF16); st.CPU != here {
			w.Printf("resuming on a CPU of class %s a run of class %s: results will agree closely, not to the bit", here, st.CPU)
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

// prefix is what the names of the network's tensors begin with in a checkpoint.
func (n *network) prefix() string { return fmt.Sprintf("model%d.", n.index) }

// loadNetwork gives a network the checkpoint's parameters. One that the run had
// not made yet when the checkpoint was taken keeps its start.
func (w *Worker) loadNetwork(n *network) error {
	there := 0
	for name := range w.ckpt {
		if strings.HasPrefix(name, n.prefix()) {
			there++
		}
	}
	if there == 0 {
		return nil
	}
	for _, p := range n.params.List() {
		v, ok := w.ckpt[n.prefix()+p.Name]
		if !ok || len(v) != len(p.W) {
			return fmt.Errorf("gnb: the checkpoint does not fit model %q: parameter %s has %d values there and %d here; resume with the sizes the run had, or start anew (Resume: gnb.Never)", n.name, p.Name, len(v), len(p.W))
		}
		if i := simd.NotFinite(v); i >= 0 {
			return fmt.Errorf("gnb: the checkpoint's parameter %s of model %q has %v; start anew (Resume: gnb.Never), with a lower learning rate or ClipNorm", p.Name, n.name, v[i])
		}
		copy(p.W, v)
	}
	if list := n.params.List(); there != len(list) {
		return fmt.Errorf("gnb: the checkpoint does not fit model %q: it has %d parameters there and %d here; resume with the layers the run had, or start anew (Resume: gnb.Never)", n.name, there, len(list))
	}
	return nil
}

func (w *Worker) loadOptimizer(i int, o *Optimizer) error {
	if i >= len(w.resumed.Optim) {
		return nil // made after the checkpoint was taken
	}
	if was := w.resumed.Optim[i].Name; was != o.opt.Name() {
		return fmt.Errorf("gnb: optimiser %d is %s here and %s in the checkpoint; resume with the optimisers the run had, or start anew (Resume: gnb.Never)", i, o.opt.Name(), was)
	}
	st := w.resumed.Optim[i]
	state := map[string][]float32{}
	for _, s := range o.opt.State() {
		state[s.Name] = w.ckpt[fmt.Sprintf("optimizer%d.%s", i, s.Name)]
	}
	o.opt.SetLR(o.resumedLR(st, w.job.Changed))
	return o.opt.SetState(st.Steps, state)
}

// SaveBest keeps the network's weights as best.safetensors in the run's directory
// when value is higher than at any call before, and says whether it was; NaN never
// is. Every rank must call it with the same value.
//
// Where the best weights change in quick succession the file is written about four
// times a second: it is there, and right, at the end of the run, at LoadBest, and
// before any checkpoint that comes later.
func (w *Worker) SaveBest(net Network, value float64) bool {
	n := w.netOf(net, "SaveBest")
	key := fmt.Sprintf("best%d", n.index)
	old, ok := w.best[key]
	if math.IsNaN(value) || ok && value <= float64(old) {
		return false
	}
	w.best[key], w.best[bestEpochKey(n)] = number(value), number(w.loop.Pos.ReportedEpoch())
	if w.p.Rank == 0 && w.job.RunDir != "" {
		w.stage(stageSave)
		w.check(n.toHost())
		w.check(w.checkTensors(n.tensors(n.prefix())))
		w.keepBest(n)
		w.check(w.writeBest(false))
		w.stage(stageProgram)
	}
	return true
}

// bestEvery bounds how often best weights are written: a file that must survive a
// crash costs a disk's latency, which is many epochs of a small graph.
const bestEvery = 250 * time.Millisecond

// bestCopy is the best weights of a network until they are written.
type bestCopy struct {
	path    string
	model   *ModelInfo
	step    int64 // of the run
	tensors []safetensors.Tensor
	waits   bool
}

// keepBest copies a network's weights for writeBest.
func (w *Worker) keepBest(n *network) {
	w.bestMu.Lock()
	defer w.bestMu.Unlock()
	if n.best == nil {
		n.best = &bestCopy{path: filepath.Join(w.job.RunDir, n.file("best")), model: n.info()}
		w.bests = append(w.bests, n.best)
	}
	ts := n.tensors("")
	for i := range ts {
		var mem []float32
		if i < len(n.best.tensors) {
			mem = n.best.tensors[i].F32
		}
		ts[i].F32 = append(mem[:0], ts[i].F32...)
	}
	n.best.tensors, n.best.step, n.best.waits = ts, w.loop.Pos.Total, true
}

// writeBest writes the best weights that wait, if it is time or now is set. Any
// goroutine may call it.
func (w *Worker) writeBest(now bool) error {
	w.bestMu.Lock()
	defer w.bestMu.Unlock()
	if !now && time.Since(w.bestAt) < bestEvery {
		return nil
	}
	for _, b := range w.bests {
		if !b.waits {
			continue
		}
		if err := writeWeights(b.path, b.model, b.step, b.tensors); err != nil {
			return fmt.Errorf("gnb: writing the best weights: %w", err)
		}
		sum, err := safetensors.Sum(b.path)
		if err != nil {
			return fmt.Errorf("gnb: writing the best weights: %w", err)
		}
		if w.bestFiles == nil {
			w.bestFiles = map[string]string{}
		}
		w.bestFiles[filepath.Base(b.path)] = sum
		b.waits, w.bestAt = false, time.Now()
	}
	return nil
}

// LoadBest puts the weights that [Worker.SaveBest] wrote last back into the
// network, on every rank. Collective.
func (w *Worker) LoadBest(net Network) {
	n := w.netOf(net, "LoadBest")
	if _, ok := w.best[fmt.Sprintf("best%d", n.index)]; !ok {
		w.Fail(fmt.Errorf("gnb: LoadBest at %s finds no weights of network %s: SaveBest was not called, or with nothing but NaN", callSite(), n.name))
	}
	w.check(w.writeBest(true))
	w.Barrier() // rank 0 has written the file
	ts, _, err := safetensors.ReadFile(filepath.Join(w.job.RunDir, n.file("best")))
	w.check(err)
	w.check(n.load(ts))
	w.Barrier() // all have read it before rank 0 may write the next
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
	if err := n.toHost(); err != nil {
		return err
	}
	return writeWeights(path, n.info(), n.w.loop.Pos.Total, n.tensors(""))
}

// load takes weights by the names of PyTorch's state_dict; all must be there and
// fit, else nothing changes.
func (n *network) load(ts []safetensors.Tensor) error {
	values := make(map[string]nn.Value, len(ts))
	for _, t := range ts {
		values[t.Name] = nn.Value{Shape: t.Shape, Data: t.F32}
	}
	if err := n.params.Load(values); err != nil {
		return fmt.Errorf("gnb: model %q: %w", n.name, err)
	}
	return n.toDevice()
}
