package gnb

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/sample"
)

// proofName is the name of the proof in a checkpoint.
const proofName = "gnb.Proof"

// proved returns a plan with what proves its batches, if it asks for that.
func (w *Worker) proved(p plan) (plan, error) {
	if !p.ProveTime {
		return p, nil
	}
	if w.proof == nil {
		sum := &sample.Proof{}
		if err := w.saving.Kept.Add(proofName, sum, entry.CallSite()); err != nil {
			return p, err
		}
		w.proof = sum
	}
	c := sample.Config{Picker: p.Sampler, AsOf: p.AsOf, Threads: w.threads}
	var err error
	if !w.job.Divided {
		p.prover, err = sample.ProverOf(w.ds.Graph, c)
		return p, err
	}
	rows, err := w.team().RowsHere()
	if err == nil {
		p.prover, err = sample.NewProver(rows, c)
	}
	return p, err
}

// addProof counts what was proved of one batch of each rank. Collective, if the loop proves its batches.
func (w *Worker) addProof(p plan, b *Batch) {
	if !p.ProveTime {
		return
	}
	q := b.proof
	q.Batches = 0
	all := []float64{float64(q.Seeds), float64(q.Edges), float64(q.Elsewhere), float64(q.Hidden)}
	w.AllReduce(all)
	if q.Seeds, q.Edges, q.Elsewhere, q.Hidden = int64(all[0]), int64(all[1]), int64(all[2]), int64(all[3]); b.EndsStep {
		q.Batches = 1
	}
	w.proof.Add(q)
}

// reportProof reports what was proved.
func (w *Worker) reportProof() {
	if w.proof == nil || w.p.Rank != 0 {
		return
	}
	w.Result("proved_batches", float64(w.proof.Batches))
	w.Result("proved_seeds", float64(w.proof.Seeds))
	w.Result("proved_edges", float64(w.proof.Edges))
	w.Result("hidden_edges", float64(w.proof.Hidden))
	w.ResultText("proof", fmt.Sprint(w.proof))
	w.Printf("%v", w.proof)
}
