package gnb

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu"
)

// Keep makes a variable of the program part of every checkpoint, under a unique name, and restores
// its value when the run resumes. v is a pointer to a value that encoding/json can encode
// (encoding/gob, if a number in it is not finite). Keep refuses a type of which a part would be lost, such as an
// unexported field. Resuming replaces the whole value, whatever the variable was set to before. The value must be the same on every rank,
// because checkpoints hold rank 0's value. Keep reads it at the end of each iteration of
// [Worker.Batches], of each such loop and of each epoch; so change it within a loop over batches,
// or after the epoch's loops, not before them.
func (w *Worker) Keep(name string, v any) {
	w.check(w.saving.Kept.Add(name, v, entry.CallSite()))
}

// openSaving configures checkpoints, and loads the checkpoint of a resumed run.
func (w *Worker) openSaving() error {
	w.saving.Open(saving.Options{
		Dir: w.job.RunDir, Every: w.job.CheckpointEvery, Keep: w.job.KeepCheckpoints,
		CatchUp: func() { w.catchUp(0) }, State: w.state, Shares: w.sharedRows, Settle: w.settle,
		Saved: func(path string, at saving.Position) error {
			return w.p.Emit(runs.Event{Kind: runs.KindCheckpoint, Text: path, Total: at.Total, At: at.Place(), Epoch: at.Epoch})
		},
	})
	if w.job.Checkpoint == "" {
		return nil
	}
	bestDir := ""
	if w.p.Rank == 0 {
		bestDir = w.job.RunDir
	}
	st, err := w.saving.Resume(saving.CheckpointPath(w.job.Checkpoint, w.job.Handed && w.p.Rank != 0, w.p.Files()), bestDir)
	if err != nil {
		return err
	}
	w.loop.Resume(st.Position, st.Sums)
	if w.p.Rank != 0 {
		return nil
	}
	if here := saving.CPUClass(w.job.BF16); st.CPU != here {
		w.Printf("resuming on a CPU of class %s a run of class %s: results will agree closely, not to the bit", here, st.CPU)
	}
	if ranks := w.World() * w.job.Virtual; st.Ranks != ranks {
		w.Printf("resuming with %d workers × virtual ranks a run that had %d: results will agree closely, not to the bit", ranks, st.Ranks)
	}
	return nil
}

// recordChange writes the new configuration of a run resumed with changes, once, on rank 0, and lets the resumed run
// write its best weights. It does so at the first boundary, after networks and optimisers have loaded the checkpoint and
// before the changed run writes one. A resume that fails earlier leaves the run unchanged.
func (w *Worker) recordChange() error {
	w.saving.Best.Begin()
	if w.job.Config == nil {
		return nil
	}
	if err := runfile.WriteJSON("gnb", filepath.Join(w.job.RunDir, runfile.Config), w.job.Config); err != nil {
		return err
	}
	w.job.Config = nil
	return nil
}

// state returns the content of a checkpoint at this boundary. The tensors share memory with the
// parameters.
func (w *Worker) state() (saving.State, []safetensors.Tensor, error) {
	st := saving.State{
		Version: Version, Layout: philox.LayoutVersion, CPU: saving.CPUClass(w.job.BF16), Seed: w.job.Seed,
		Ranks: w.World() * w.job.Virtual, Program: w.job.Program, Run: w.job.RunID, Identity: w.job.Identity,
		Position: w.loop.Pos, Sums: w.loop.Sums,
	}
	if err := w.toHost(); err != nil {
		return st, nil, err
	}
	var ts []safetensors.Tensor
	for _, n := range w.nets {
		ts = st.Add(n.saved(), ts)
	}
	for _, o := range w.opts {
		ts = st.AddOptimizer(o.opt, o.start, ts)
	}
	return st, ts, w.checkTensors(ts)
}

// settle writes the data that must be on disk before a checkpoint: the metrics, because a resumed
// run does not report earlier ones again, and the best weights. Any goroutine may call it.
func (w *Worker) settle() error {
	if err := w.report.out.sync(); err != nil {
		return err
	}
	return w.saving.Best.Write(true)
}

// lastCheckpoint writes a checkpoint at the end of the loop over epochs and at the end of the program, so that every run
// can go on, unless the last step has one. After the program has loaded a file's weights its networks
// are no longer those of its steps, and a checkpoint is that of an earlier boundary. Collective.
func (w *Worker) lastCheckpoint() {
	loaded := w.loop.Pos.Total > 0 && slices.ContainsFunc(w.nets, func(n *network) bool { return n.loaded })
	if w.tablesApart() {
		if !loaded {
			w.boundaryTogether(false, true)
		}
		return
	}
	if w.p.Rank != 0 || !w.saving.On() || w.saving.Holds(w.loop.Pos) {
		return
	}
	w.check(w.recordChange())
	w.stage(runfile.StageSave)
	if !loaded {
		w.check(w.saving.Save())
	} else if !w.saving.Any() {
		w.check(w.saving.SavePrepared())
	}
	w.stage(runfile.StageProgram)
}

// stopIfAsked writes a checkpoint and ends rank 0 with [ErrInterrupted] if the run was interrupted
// between two boundaries. The other ranks continue until they wait for rank 0; then the supervisor
// ends them.
func (w *Worker) stopIfAsked() {
	if w.p.Rank == 0 && w.p.StopRequested() {
		w.Fail(w.leave(w.saving.SavePrepared))
	}
}

// leave writes the checkpoint of an interrupted run, in a stage that other goroutines do not change
// meanwhile: the supervisor waits for it.
func (w *Worker) leave(save func() error) error {
	w.leaving.Store(true)
	w.p.Stage(runfile.StageSave)
	err := w.saving.Leave(ErrInterrupted, save)
	w.leaving.Store(false)
	w.stage(runfile.StageProgram)
	return err
}

// watchStop writes the checkpoint of an interrupted run whose program does not reach the end of an
// iteration in time, because it evaluates, waits or computes.
func (w *Worker) watchStop(done <-chan struct{}) {
	if saving.AwaitStop(done, w.p.StopRequested) {
		_ = w.leave(w.saving.SavePrepared)
		if multigpu.InWorker() {
			os.Exit(1) // the supervisor has asked for this end
		}
	}
}

// SaveBest keeps the network's weights as best.safetensors in the run's directory when value is
// higher than at any call before, and reports whether it was higher; a value that is not finite never is. Every rank must
// call it with the same value.
//
// If the best weights change quickly the file is written about four times per second. It is up to
// date at the end of the run, at LoadBest, and before any later checkpoint.
func (w *Worker) SaveBest(net Network, value float64) bool {
	return w.saveBest(w.netOf(net, "SaveBest"), value)
}

func (w *Worker) saveBest(n *network, value float64) bool {
	if !w.saving.Best.Improve(n.index, value, w.loop.Pos.ReportedEpoch()) {
		return false
	}
	if w.job.RunDir == "" || w.p.Rank != 0 && !n.saved().Apart() {
		return true
	}
	w.stage(runfile.StageSave)
	w.saving.Best.Begin()
	n.averaged(func() {
		w.check(n.params.ToHost())
		ts, err := n.saved().Weights()
		w.check(err)
		if w.p.Rank == 0 {
			w.check(w.checkTensors(append(n.saved().Tensors(), ts...)))
			w.saving.Best.Put(filepath.Join(w.job.RunDir, n.saved().File("best")), n.metadata(), ts)
		}
	})
	if w.p.Rank == 0 {
		w.check(w.saving.Best.Write(false))
	}
	w.stage(runfile.StageProgram)
	return true
}

// Best is how [Worker.BestBy] chooses the best epoch.
type Best struct {
	By       string // a value that the program logs ([Worker.Log]) or evaluates, such as "val_auc"
	Minimize bool   // the lowest value is the best, as for a loss; by default it is the highest
	// Patience ends [Worker.Epochs] after this many epochs without improvement, at an epoch that logs the value; 0
	// means never.
	Patience int
}

// BestBy saves the network's weights, as [Worker.SaveBest] does, at the end of each epoch whose value is better than that
// of every epoch before; a value that is not finite never is, and Patience begins with the first one that is. The run's result has "best_epoch", from 0, and what was logged in that epoch. Call
// it before the loop over [Worker.Epochs], whose ends it makes collective: all ranks follow the value of rank 0.
//
//	w.BestBy(net, gnb.Best{By: "val_auc", Patience: 20})
//
// After the loop, [Worker.LoadBest] loads these weights, for instance to evaluate the test split once.
func (w *Worker) BestBy(net Network, b Best) {
	n := w.netOf(net, "BestBy")
	switch {
	case b.By == "" || b.Patience < 0:
		w.Fail(fmt.Errorf("gnb: BestBy got the name %q and a Patience of %d, at %s; give it the name of a logged value, and a number of epochs or 0", b.By, b.Patience, entry.CallSite()))
	case w.by != nil || w.loop.EpochsAt != "":
		w.Fail(fmt.Errorf("gnb: BestBy at %s comes after another one or after Epochs; call it once, before Epochs", entry.CallSite()))
	}
	w.by, w.byNet = &saving.ByValue{Name: b.By, Minimize: b.Minimize, Patience: b.Patience}, n
	w.Keep("gnb.BestBy", &w.by.Best)
}

// judge takes an epoch's value for BestBy, and reports whether to stop. Collective.
func (w *Worker) judge(epoch int) (stop bool) {
	return w.by.Judge(epoch, w.p.Rank == 0, w.AllReduce, func(score float64) (improved bool, best int, some bool) {
		improved = w.saveBest(w.byNet, score)
		best, some = w.saving.Best.Epoch(w.byNet.index)
		return improved, best, some
	})
}

// withBest calls use with the best weights of a network, and then loads the current ones again. What use evaluates is
// reported for the best epoch. Collective.
func (w *Worker) withBest(net Network, use func()) {
	n := net.net()
	own := filepath.Join(w.job.RunDir, n.saved().File("model"))
	w.check(n.write(own)) // as at the end of the run
	w.LoadBest(net)
	best, _ := w.saving.Best.Epoch(n.index)
	w.report.of = best + 1
	use()
	w.report.of = 0
	ts, _, err := saving.HandOut(w.comm, w.site("final weights"), own)
	w.check(err)
	w.check(n.load(ts))
}

// LoadBest loads the weights of the last [Worker.SaveBest] into the network, on every rank.
// Collective.
func (w *Worker) LoadBest(net Network) {
	n := w.netOf(net, "LoadBest")
	if _, ok := w.saving.Best.Epoch(n.index); !ok {
		w.Fail(fmt.Errorf("gnb: LoadBest at %s finds no weights of network %s: SaveBest was not called, or with nothing but NaN", entry.CallSite(), n.name))
	}
	w.saving.Best.Begin()
	w.check(w.saving.Best.Write(true))
	ts, _, err := saving.HandOut(w.comm, w.site("best weights"), filepath.Join(w.job.RunDir, n.saved().File("best")))
	w.check(err)
	w.check(n.load(ts))
}

// saved returns what is saved of the network.
func (n *network) saved() *saving.Network {
	return &saving.Network{Index: n.index, Name: n.name, Params: n.params.Params, Table: n.table}
}

// load sets the weights, see [saving.Network.Load].
func (n *network) load(ts []safetensors.Tensor) error {
	if err := n.saved().Load(ts); err != nil {
		return err
	}
	n.loaded = true
	return n.params.ToDevice()
}

// metadata returns the metadata for a file of the network's current weights.
func (n *network) metadata() map[string]string {
	if n.described == "" {
		info, err := json.Marshal(n.info())
		n.w.check(err)
		n.described = string(info)
	}
	return map[string]string{
		"format": "pt", "graphnb_version": Version, "model": n.name,
		runfile.MetaModel: n.described, saving.MetaStep: strconv.FormatInt(n.w.loop.Pos.Total, 10),
	}
}

// write writes the network's weights to a file at rank 0. Collective, if each machine has some learned rows.
func (n *network) write(path string) (err error) {
	n.averaged(func() {
		var ts []safetensors.Tensor
		if err = n.params.ToHost(); err == nil {
			ts, err = n.saved().Weights()
		}
		if err == nil && n.w.p.Rank == 0 {
			if err = n.w.checkTensors(ts); err == nil {
				err = safetensors.WriteFile(path, ts, n.metadata())
			}
		}
	})
	return err
}

// LoadWeights reads a safetensors file into the network: names and shapes must match the
// network's, which for layers of PyTorch Geometric are PyTorch Geometric's. A file written by a
// run has a checksum, and LoadWeights refuses the file if it does not match. For a file of another
// program, a note reports that it has no checksum. Rank 0 reads the file for all. Collective.
func (w *Worker) LoadWeights(net Network, path string) {
	ts, meta, err := saving.HandOut(w.comm, w.site("weights"), path)
	w.check(err)
	if !safetensors.Sealed(meta) && w.Rank() == 0 {
		w.Printf("%s has no checksum, as files of other programs and earlier versions have none: damage to it would not be noticed", path)
	}
	w.check(w.netOf(net, "LoadWeights").load(ts))
}

// startFrom sets the network's initial weights to those of the run that this one starts with, as far as they match, and
// reports what does not. It changes nothing without such a run, or if the network's weights are a checkpoint's.
// Collective.
func (n *network) startFrom() error {
	w, from, saved := n.w, n.w.job.From, n.saved()
	if from == nil || w.saving.Resumed.Has(saved.Prefix()) {
		return nil
	}
	file := saved.File("best")
	sum, ok := from.Weights[file]
	if !ok {
		file = saved.File("model")
		sum, ok = from.Weights[file]
	}
	if !ok {
		w.Printf("%s has no weights for network %d, %q, which keeps its initial ones", from, n.index, n.name)
		return nil
	}
	path := filepath.Join(from.Dir, file)
	ts, meta, err := saving.HandOut(w.comm, w.site("weights to start with"), path)
	switch {
	case err != nil:
		return fmt.Errorf("gnb: the weights to start with: %w", err)
	case safetensors.SumIn(meta) != sum:
		return fmt.Errorf("gnb: the weights to start with: %s has changed since the run was begun; put back the file, or begin another run", path)
	}
	m := saved.LoadMatching(ts, w.job.FromRows)
	if n.table != nil {
		rows := w.onAnyRank(w.p.Rank == 0 && slices.Contains(m.Matched, saving.EmbeddingWeights))
		if rows {
			if err := saved.SetRows(ts); err != nil {
				return err
			}
		}
	}
	if w.onAnyRank(w.p.Rank == 0 && len(m.Matched) == 0) {
		return fmt.Errorf("gnb: nothing in %s of %s fits model %q by name and shape (%s); give the model the sizes of that run, or begin without From", file, from, n.name, m)
	}
	what := ""
	if s := m.String(); s != "" {
		what = "; the others keep their initial values: " + s
	}
	all := len(saved.Params.List())
	if n.table != nil {
		all++
	}
	w.Printf("started with %s of %s: %d of %d parameters of model %q%s", file, from, len(m.Matched), all, n.name, what)
	return nil
}
