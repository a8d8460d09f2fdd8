package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/recipe"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
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
	feed.Declared = func(name string) (any, error) {
		build, err := samplers.Get(name)
		if err != nil {
			return nil, err
		}
		return build(), nil
	}
	inside.StageTimes = func(worker any) map[string]time.Duration { return worker.(*Worker).p.StageTimes() }
	inside.Moved = func(worker any) int64 { return worker.(*Worker).team().Moved() }
	inside.UseGraph = func(worker any, g *graphops.Graph) error { return worker.(*Worker).useGraph(g) }
	inside.Divided = func(worker any) any {
		if w := worker.(*Worker); w.job.Divided {
			return w.team()
		}
		return nil
	}
	inside.UseRows = func(worker any, rows sample.Rows, inDegrees []int32, slices func(d graphops.Degrees) graphops.Slicer) error {
		return worker.(*Worker).useRows(rows, inDegrees, slices)
	}
	inside.Settings = func(ds *Dataset, options any, out int) (loader any, s ModelConfig, err error) {
		if err := recipe.Settings(options.(TrainOptions)).OnlyTrain(); err != nil {
			return nil, s, err
		}
		a, err := recipe.Settings(options.(TrainOptions)).Sized(ds, "", out)
		return loaderOf(a), a.Sizes, err
	}
	inside.OnlyTrain = func(options any) error { return recipe.Settings(options.(TrainOptions)).OnlyTrain() }
	inside.LaunchOptions = func(ds *Dataset, model, options any) any { return options.(TrainOptions).launch(ds, model.(AnyModel)) }
	inside.NewNetwork = func(worker any, encoder, name string, s ModelConfig, build func(nn.Model) nn.Model) any {
		w := worker.(*Worker)
		d := modelDef{build: func(ModelConfig) nn.Model { return nil }}
		if encoder != "" {
			var err error
			d, err = models.Get(encoder)
			w.check(err)
		}
		var m nn.Model
		w.built(name, func() { m = build(d.build(s)) })
		return &Net[nn.Model]{Model: m, network: w.newNetwork(name, s, m)}
	}
	inside.Optimizing = func(options any, lr float64, epochs int) (any, error) {
		return recipe.Settings(options.(TrainOptions)).Optimizing(lr, epochs)
	}
	inside.SetOptimizing = func(options, how any, c runs.Config) {
		how.(recipe.Optimizing).Set((*recipe.Settings)(options.(*TrainOptions)), c)
	}
	inside.Optimizer = func(worker, net, how any, items int, loader any, epochs int) any {
		w := worker.(*Worker)
		return w.optimizing(net.(Network), how.(recipe.Optimizing), func() int {
			if items == 0 {
				return 1
			}
			p, err := w.planOf(feed.Numbers(items), loader.(Loader))
			w.check(err)
			return p.steps
		}, epochs)
	}
	inside.NoFeatures = func(worker any) { worker.(*Worker).feed.noFeatures = true }
	inside.LoadWeights = func(worker, net any, path string) {
		w := worker.(*Worker)
		ts, meta, err := saving.HandOut(w.comm, w.site("weights"), path)
		w.check(err)
		w.loadWeights(net.(Network), path, ts, meta)
	}
	inside.WithBest = func(worker, net any, use func()) { worker.(*Worker).withBest(net.(Network), use) }
	inside.Embed = func(worker, net any, g graphops.Slicer, use func(rows []float32, cols, threads int) error) (err error) {
		w, n := worker.(*Worker), net.(Network).net()
		if g != nil {
			defer func(own graphops.Slicer) { w.feed.slices = own }(w.graph())
			w.feed.slices = g
		}
		w.stage(runfile.StageEvaluate)
		w.check(n.params.Agree(w.comm, w.site("running statistics")))
		defer w.stage(runfile.StageProgram)
		n.averaged(func() {
			rows := w.layerwise(n)
			defer rows.Release()
			lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
			w.watchRows(n, !simd.Finite(rows.Data()[lo*rows.Cols():hi*rows.Cols()]))
			err = mapped.Guard(func() error { return use(rows.Data(), rows.Cols(), w.threads) })
		})
		return err
	}
	inside.Start = func(net, batch any) *nn.Fwd {
		n := net.(Network).net()
		n.start(batch.(*Batch))
		n.last.batch = nil // its blocks do not lead to the loss: a search for its cause looks at parameters alone
		return n.fwd
	}
	inside.OnHost = func(worker, net any, use func(threads int) error) (err error) {
		w, n := worker.(*Worker), net.(Network).net()
		w.stage(runfile.StageEvaluate)
		defer w.stage(runfile.StageProgram)
		w.check(n.params.Agree(w.comm, w.site("running statistics")))
		n.averaged(func() {
			n.Params()
			err = mapped.Guard(func() error { return use(w.threads) })
		})
		return err
	}
	inside.FullGraph = func(worker any, seeds []int32) any { return worker.(*Worker).wholeGraph(seeds) }
	inside.Report = func(worker any, values []runs.NamedValue) {
		w := worker.(*Worker)
		w.report.last.named = values
		w.flush(true)
		w.emitFirst(runs.Event{Kind: runs.KindMetrics, Values: values})
	}
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
		s, done, err := w.sampler(feed.Loader{Sampler: Fanouts(fanouts), Hops: len(fanouts)}, philox.Sample)
		if err != nil {
			return nil, err
		}
		st, err := device.StagerOf(w.gpu, false)
		if err != nil {
			done()
			return nil, err
		}
		return &singleSteps{w, s, st, done}, nil
	}
}

// useGraph replaces the edges of the worker's dataset. Nothing has been made of the old ones yet.
func (w *Worker) useGraph(g *graphops.Graph) error {
	ds := w.Dataset()
	switch {
	case w.job.Divided:
		return fmt.Errorf("gnb: another graph cannot replace the edges of %s, for which this run asks their owners; %s", ds.Name(), feed.WithTopology(ds))
	case w.unused() != nil:
		return w.unused()
	case g.NumNodes() != ds.Nodes():
		return fmt.Errorf("gnb: a graph of %d nodes cannot replace that of %s, which has %d", g.NumNodes(), ds.Name(), ds.Nodes())
	}
	w.ds, w.feed.slices, w.feed.replaced = ds.WithGraph(g), nil, true
	w.team().UseData(w.ds)
	w.feed.fetcher.UseData(w.ds)
	if w.gpu == nil {
		return nil
	}
	old := w.gpu // it has the old edges
	w.gpu = nil
	return cmp.Or(device.Close(old), w.openDevice())
}

// useRows is useGraph for a run that asks the owners of edges. Collective.
func (w *Worker) useRows(rows sample.Rows, inDegrees []int32, slices func(d graphops.Degrees) graphops.Slicer) error {
	if err := w.unused(); err != nil {
		return err
	}
	w.team().UseRows(rows, inDegrees)
	d, err := w.team().Degrees()
	w.feed.slices, w.feed.replaced = slices(d), true
	return err
}

// unused returns an error if something has been made of the worker's graph.
func (w *Worker) unused() error {
	if len(w.nets) > 0 || w.feed.samplers.Len() > 0 || w.loop.InLoop() {
		return errors.New("gnb: the graph of a worker cannot change after its first network or loop over batches; choose it at the beginning of the program")
	}
	return nil
}

// countRepeated samples the first steps of an epoch, calls each with every batch, and counts over all
// ranks what [tally.CountRepeated] does. Collective.
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
	counts, err = tally.CountRepeated(w.comm, steps, w.job.Virtual, func(step, v int) (*sample.Batch, error) {
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
	b := s.w.sampleShare(s.s, plan{Loader: feed.Loader{Batch: len(seeds)}, steps: 1}, seeds, epoch, step, 0, 0)
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
