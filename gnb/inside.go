package gnb

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

func init() {
	inside.Identify = func(ctx context.Context, ds *Dataset, model string) (*runs.Identity, error) {
		name, err := json.Marshal(model)
		if err != nil {
			return nil, err
		}
		return launcher.Identify(ctx, ds, codeOf("", name))
	}
	inside.TrainArgs = func(ds *Dataset, model string, options any) (json.RawMessage, error) {
		args, err := options.(TrainOptions).args(ds, model)
		if err != nil {
			return nil, err
		}
		return json.Marshal(args)
	}
	inside.StageTimes = func(worker any) map[string]time.Duration { return worker.(*Worker).p.StageTimes() }
	inside.Moved = func(worker any) int64 { return worker.(*Worker).team().Moved() }
	inside.CountRepeated = func(worker, loader any, steps int) ([4]float64, error) {
		w := worker.(*Worker)
		p, err := w.plan("train", loader.(Loader))
		if err != nil {
			return [4]float64{}, err
		}
		return w.countRepeated(p, 0, steps, func(int, *Batch) {})
	}
	inside.NewSteps = func(worker any, fanouts []int) (inside.Steps, error) {
		w := worker.(*Worker)
		s, done, err := w.sampler(Loader{Sampler: Fanouts(fanouts), Hops: len(fanouts)}, philox.Sample)
		if err != nil {
			return nil, err
		}
		st, err := w.stager()
		if err != nil {
			done()
			return nil, err
		}
		return &singleSteps{w, s, st, done}, nil
	}
}

// countRepeated samples the first steps of an epoch, calls each with every batch, and counts over all
// ranks what [feed.CountRepeated] does. Collective.
func (w *Worker) countRepeated(p plan, epoch, steps int, each func(step int, b *Batch)) (counts [4]float64, err error) {
	p.InputHalo = true // rows count once, at their owner
	s, done, err := w.sampler(p.Loader, philox.Sample)
	if err != nil {
		return counts, err
	}
	defer done()
	one := p.Loader
	one.Cooperative = false
	alone, done, err := w.sampler(one, philox.Sample)
	if err != nil {
		return counts, err
	}
	defer done()
	ids := sample.EpochOrder(w.job.Seed, epoch, p.ids)
	counts, err = feed.CountRepeated(w.comm, steps, w.job.Virtual, func(step, v int) (*sample.Batch, error) {
		b := w.sampleShare(s, p, ids, epoch, 0, step, v)
		if b.err == nil {
			each(step, b)
		}
		return b.Batch, b.err
	}, w.job.Divided, func(step int, mine bool) (*sample.Batch, error) {
		if !mine {
			return alone.Sample(epoch, step, nil)
		}
		return alone.Sample(epoch, step, ids[step*p.Batch:min((step+1)*p.Batch, len(ids))])
	})
	if err == nil {
		w.AllReduce(counts[:])
	}
	return counts, err
}

// singleSteps implements the functions that package inside offers to packages above this one.
type singleSteps struct {
	w    *Worker
	s    feed.Sampler
	st   device.Stager
	done func()
}

func (s *singleSteps) Sample(seeds []int32, epoch, step int) (any, error) {
	b := s.w.sampleShare(s.s, plan{Loader: Loader{Batch: len(seeds)}, steps: 1}, seeds, epoch, step, 0, 0)
	return b, b.err
}

func (s *singleSteps) Fetch(b any) error { return s.w.fetch(b.(*Batch), s.st, nil) }

func (s *singleSteps) Release(b any) { b.(*Batch).release() }

func (s *singleSteps) StageTimes() map[string]time.Duration { return s.w.p.StageTimes() }

func (s *singleSteps) Text(name, text string) {
	s.w.emitFirst(runs.Event{Kind: runs.KindResult, Split: name, Text: text})
}

func (s *singleSteps) Close() {
	if s.st != nil {
		s.st.Close()
	}
	s.done()
}
