package gnb

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/loop"
	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu"
)

// Keep makes a variable of the program part of every checkpoint, under a name of
// its own, and gives it the checkpoint's value when the run resumes. v is a
// pointer to something that encoding/json can encode (encoding/gob, where a
// number in it is not finite); it must be the same on every rank, since rank 0's
// is what is kept. Its value is taken at the end of an iteration of
// [Worker.Batches], of such a loop, and of an epoch; so change it within a loop
// over batches, or after the epoch's loops, not before them.
func (w *Worker) Keep(name string, v any) {
	w.check(w.saving.Kept.Add(name, v, callSite()))
}

// openSaving configures checkpoints, and loads the one from which the run resumes.
func (w *Worker) openSaving() error {
	w.saving.Open(saving.Options{
		Dir: w.job.RunDir, Every: w.job.CheckpointEvery, Keep: w.job.KeepCheckpoints,
		CatchUp: func() { w.catchUp(0) }, State: w.state, Settle: w.settle,
		Saved: func(path string, at loop.Position) error {
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
	st, err := w.saving.Resume(w.job.Checkpoint, bestDir)
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

// recordChange writes the configuration of a run that resumes changed, once, on rank 0: at the first
// boundary, where networks and optimisers have taken their part of the checkpoint, and so before any
// checkpoint of the changed run. A resume that fails earlier leaves the run as it was.
func (w *Worker) recordChange() error {
	if w.job.Config == nil {
		return nil
	}
	if err := runfile.WriteJSON(filepath.Join(w.job.RunDir, runfile.Config), w.job.Config); err != nil {
		return err
	}
	w.job.Config = nil
	return nil
}

// state is what a checkpoint of this boundary holds. The tensors are the
// parameters' own memory.
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
		ts = append(ts, n.tensors(n.prefix())...)
	}
	for i, o := range w.opts {
		start := runfile.Number(o.start)
		st.Optim = append(st.Optim, saving.Optimizer{Name: o.opt.Name(), Steps: o.opt.Steps(), LR: runfile.Number(o.opt.LR()), Start: &start})
		for _, s := range o.opt.State() {
			ts = append(ts, safetensors.Tensor{Name: saving.OptimizerTensor(i, s.Name), Shape: []int{len(s.Data)}, F32: s.Data})
		}
	}
	return st, ts, w.checkTensors(ts)
}

// settle writes what must not be behind a checkpoint: the metrics, of which a
// resumed run would not report again what is lost in between, and the best
// weights. Any goroutine may call it.
func (w *Worker) settle() error {
	if err := w.report.out.Sync(); err != nil {
		return err
	}
	return w.saving.Best.Write(true)
}

// stopIfAsked ends rank 0 with [ErrInterrupted], a checkpoint written, when the
// run has been interrupted, somewhere between two boundaries. The other ranks go
// on until they wait for it, and are ended then.
func (w *Worker) stopIfAsked() {
	if w.p.Rank == 0 && w.p.StopRequested() {
		w.Fail(w.saving.Leave(ErrInterrupted, w.saving.SavePrepared))
	}
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
				_ = w.saving.Leave(ErrInterrupted, w.saving.SavePrepared)
				if multigpu.InWorker() {
					os.Exit(1) // the supervisor has asked for this end
				}
				return
			}
		}
	}
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

// SaveBest keeps the network's weights as best.safetensors in the run's directory
// when value is higher than at any call before, and says whether it was; NaN never
// is. Every rank must call it with the same value.
//
// Where the best weights change in quick succession the file is written about four
// times a second: it is there, and right, at the end of the run, at LoadBest, and
// before any checkpoint that comes later.
func (w *Worker) SaveBest(net Network, value float64) bool {
	n := w.netOf(net, "SaveBest")
	if !w.saving.Best.Improve(n.index, value, w.loop.Pos.ReportedEpoch()) {
		return false
	}
	if w.p.Rank == 0 && w.job.RunDir != "" {
		w.stage(names.Save)
		w.check(n.toHost())
		ts := n.tensors(n.prefix())
		w.check(w.checkTensors(ts))
		w.saving.Best.Put(filepath.Join(w.job.RunDir, n.file("best")), n.metadata(), n.tensors(""))
		w.check(w.saving.Best.Write(false))
		w.stage(names.Program)
	}
	return true
}

// LoadBest puts the weights that [Worker.SaveBest] wrote last back into the
// network, on every rank. Collective.
func (w *Worker) LoadBest(net Network) {
	n := w.netOf(net, "LoadBest")
	if _, ok := w.saving.Best.Epoch(n.index); !ok {
		w.Fail(fmt.Errorf("gnb: LoadBest at %s finds no weights of network %s: SaveBest was not called, or with nothing but NaN", callSite(), n.name))
	}
	w.check(w.saving.Best.Write(true))
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

// metadata is what a file of the network's weights, as they are now, says beside them.
func (n *network) metadata() map[string]string {
	if n.described == "" {
		info, err := json.Marshal(n.info())
		n.w.check(err)
		n.described = string(info)
	}
	return map[string]string{
		"format": "pt", "graphnb_version": Version, "model": n.name,
		saving.MetaModel: n.described, saving.MetaStep: strconv.FormatInt(n.w.loop.Pos.Total, 10),
	}
}

func (n *network) write(path string) error {
	if err := n.toHost(); err != nil {
		return err
	}
	return safetensors.WriteFile(path, n.tensors(""), n.metadata())
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

// LoadWeights reads a safetensors file into the network: names and shapes must be
// the network's (PyTorch Geometric's, where the layers are its layers). A file that
// a run has written has a checksum, and is refused where that does not hold; a
// note reports that another program's file has none.
func (w *Worker) LoadWeights(net Network, path string) {
	ts, meta, err := safetensors.ReadFile(path)
	w.check(err)
	if !safetensors.Sealed(meta) && w.Rank() == 0 {
		w.Printf("%s has no checksum, as files of other programs and earlier versions have none: damage to it would not be noticed", path)
	}
	w.check(w.netOf(net, "LoadWeights").load(ts))
}
