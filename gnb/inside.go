package gnb

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/philox"
)

func init() {
	inside.Identify = func(ctx context.Context, ds *Dataset, model string) (*runs.Identity, error) {
		name, err := json.Marshal(model)
		if err != nil {
			return nil, err
		}
		return identify(ctx, ds, codeOf("", name))
	}
	inside.TrainArgs = func(ds *Dataset, model string, options any) (json.RawMessage, error) {
		args, err := options.(TrainOptions).args(ds, model)
		if err != nil {
			return nil, err
		}
		return json.Marshal(args)
	}
	inside.Metric = metricKind
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

// singleSteps is what package inside gives to the rooms above this package.
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
