package kg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Unknown is the head or the tail that [Complete] looks for.
const Unknown = -1

// InferOptions configure [Score] and [Complete].
type InferOptions struct {
	// Final takes the final weights instead of those of the best epoch.
	Final bool
	// Threads is the number of threads; 0 means GOMAXPROCS. It does not change the result.
	Threads int
	// Known also returns entities that are known to complete a triple, in any part of the dataset;
	// otherwise Complete leaves them out. Score does not use it.
	Known bool
}

// Score returns the score of each triple by a trained run of [Train], in the order of the triples: logits,
// the higher the more likely a triple.
//
// It computes in this process, without workers. It returns an error for a triple of entities or relations
// that the dataset does not have, and for a dataset that does not fit the run. Cost: the decoder's score
// of each triple.
func Score(ctx context.Context, run *runs.Run, ds *dataset.Dataset, t TripleList, o InferOptions) ([]float32, error) {
	m, data, input, err := load(ctx, run, ds, o)
	if err != nil {
		return nil, err
	}
	if err := t.Check(data.Entities, data.Relations); err != nil {
		return nil, fmt.Errorf("kg: %w", err)
	}
	out := make([]float32, 0, t.Len())
	err = inBlocks(ctx, t.Len(), 1<<14, o.Threads, func(f *nn.Fwd, lo, hi int) error {
		b := t.Slice(lo, hi)
		h, r, e := input(f).rows(f, b.Head, b.Head, b.Rel, 0)
		out = append(out, m.Decoder.Score(f, h, r, f.Gather(e, b.Tail)).Data()...)
		return nil
	})
	return out, err
}

// Completion is an entity that completes a triple.
type Completion struct {
	Entity int32
	Score  float32
}

// Complete returns the k best entities for the unknown end of each triple, of which either Head or Tail
// is [Unknown]: the best first, of equal scores the smaller entity. Entities that are known to complete
// the triple, in any of the three parts, are left out unless o.Known is set; so there can be fewer than k.
//
// A query for heads is one for tails of the relation's reverse. It computes in this process, without
// workers. It returns an error for a triple without exactly one unknown end, for entities or relations
// that the dataset does not have, for a k below 1, for scores that are not numbers, and for a dataset that
// does not fit the run. Cost: the decoder's score of each triple with all entities.
func Complete(ctx context.Context, run *runs.Run, ds *dataset.Dataset, t TripleList, k int, o InferOptions) ([][]Completion, error) {
	if k < 1 {
		return nil, fmt.Errorf("kg: Complete is to return the best %d entities; it is a number of at least 1", k)
	}
	m, data, input, err := load(ctx, run, ds, o)
	if err != nil {
		return nil, err
	}
	if len(t.Rel) != t.Len() || len(t.Tail) != t.Len() {
		return nil, fmt.Errorf("kg: %w", t.Check(data.Entities, data.Relations))
	}
	var q kge.Triples // with the known ends as heads
	for i, h := range t.Head {
		r, known := t.Rel[i], h
		if (h == Unknown) == (t.Tail[i] == Unknown) {
			return nil, fmt.Errorf("kg: triple %d is (%d, %d, %d); exactly one of its head and tail is unknown (-1)", i, h, r, t.Tail[i])
		}
		if h == Unknown {
			known = t.Tail[i]
		}
		if err := (kge.Triples{Head: []int32{known}, Rel: []int32{r}, Tail: []int32{known}}).Check(data.Entities, data.Relations); err != nil {
			return nil, fmt.Errorf("kg: triple %d cannot be completed: %w", i, err)
		}
		if h == Unknown {
			r += int32(data.Relations)
		}
		q = q.Append(known, r, Unknown)
	}
	var filter *kge.Queries
	if !o.Known {
		filter = data.filter()
	}
	out := make([][]Completion, q.Len())
	n := data.Entities
	err = inBlocks(ctx, q.Len(), max(1, scoreBytes/(4*n)), o.Threads, func(f *nn.Fwd, lo, hi int) error {
		b := q.Slice(lo, hi)
		h, r, e := input(f).rows(f, b.Head, b.Head, b.Rel, 0)
		scores := m.Decoder.Tails(f, h, r, e).Data()
		parallel.For(o.Threads, b.Len(), 1, func(from, to int) {
			for i := from; i < to; i++ {
				var known []int32
				if filter != nil {
					known = filter.Answers(b.Head[i], b.Rel[i])
				}
				best, ok := pairs.Best(scores[i*n:(i+1)*n], known, k)
				if !ok {
					continue // reported below
				}
				out[lo+i] = make([]Completion, best.K)
				for j, v := range best.IDs {
					out[lo+i][j] = Completion{v, best.Scores[j]}
				}
			}
		})
		for i := lo; i < hi; i++ {
			if out[i] == nil {
				return fmt.Errorf("kg: scores of triple %d are not numbers; the weights of run %s are damaged", i, run.Dir)
			}
		}
		return nil
	})
	return out, err
}

// inBlocks calls use with a pass for each block of n rows.
func inBlocks(ctx context.Context, n, rows, threads int, use func(f *nn.Fwd, lo, hi int) error) error {
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	for lo := 0; lo < n; lo += rows {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("kg: scoring was interrupted: %w", err)
		}
		f.Reset(nn.Config{Threads: threads})
		var failed error
		if err := nn.Try(func() { failed = use(f, lo, min(lo+rows, n)) }); err != nil {
			return fmt.Errorf("kg: scoring: %w", err)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// load returns the model of a run with its weights, and the triples of a dataset that fits it.
func load(ctx context.Context, run *runs.Run, ds *dataset.Dataset, o InferOptions) (*Model, *Data, func(f *nn.Fwd) tables, error) {
	a, err := OptionsOf(run)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := getdata.Opened(ctx, ds, true); err != nil {
		return nil, nil, nil, err
	}
	data, err := Triples(ds)
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := kge.NewDecoder(a.Decoder, a.Dim, a.Of)
	if err != nil {
		return nil, nil, nil, err
	}
	m := withEncoder(data.Entities, data.Relations, d, a.Encoder)
	if m.Entity.Rows != run.Config.Nodes {
		return nil, nil, nil, fmt.Errorf("kg: run %s has learned rows of the %d entities of %s, and %s has %d; take the dataset of the run", run.Config.ID, run.Config.Nodes, run.Config.Dataset, ds.Name(), data.Entities)
	}
	file, _, err := run.WeightsFile(o.Final)
	if err != nil {
		return nil, nil, nil, err
	}
	tensors, _, err := safetensors.ReadFile(file)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kg: reading the weights of run %s: %w", run.Config.ID, err)
	}
	params, err := nn.Collect(m)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kg: %w", err)
	}
	if err := saving.Load(params, tensors); err != nil {
		return nil, nil, nil, fmt.Errorf("kg: the weights of run %s do not fit %s; take the dataset of the run: %w", run.Config.ID, ds.Name(), err)
	}
	var whole *nn.Block
	if m.Encoder != nil {
		if whole, err = messages(data.Train, data.Entities, data.Relations); err != nil {
			return nil, nil, nil, err
		}
	}
	input, err := m.fixed(o.Threads, whole)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kg: the encoder of run %s: %w", run.Config.ID, err)
	}
	return m, data, input, nil
}

// filter returns the known answers of all queries for tails and, by reverse relations, for heads.
func (d *Data) filter() *kge.Queries {
	return kge.NewQueries(kge.Reciprocal(d.Train.Join(d.Val).Join(d.Test), d.Relations))
}

// Names returns the names of the entities of a dataset that "gnb data convert" made of triples, in the
// order of their numbers; nil for a dataset without names.
func Names(ds *dataset.Dataset) ([]string, error) {
	if ds == nil || ds.Dir() == "" {
		return nil, nil
	}
	names, err := dataset.ReadNames(ds.Dir(), dataset.EntityNames)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kg: %w", err)
	}
	if len(names) != ds.Nodes() {
		return nil, fmt.Errorf("kg: %s has %d names for %d entities; convert the dataset again", filepath.Join(ds.Dir(), dataset.EntityNames), len(names), ds.Nodes())
	}
	return names, nil
}
