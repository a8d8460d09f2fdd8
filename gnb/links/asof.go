package links

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/internal/mapped"
)

// partTimes are the times of the edges that a loader with AsOf predicts.
type partTimes struct{ train, val, test []int64 }

// checkAsOf returns an error for options that seeing edges as of their times does not fit.
func (o *recorded) checkAsOf(ds *gnb.Dataset) error {
	if !o.AsOf {
		return nil
	}
	d, err := newDecoder(o.Decoder, 1)
	switch {
	case !ds.HasEdgeTimes():
		return noTimesFor(ds)
	case ds.Graph == nil || o.Topology == "divided":
		return errAsOfDivided(ds)
	case o.FullGraph || o.KnownMessages || o.Disjoint != 0:
		return errors.New("links: with AsOf, the messages of each edge are all earlier edges; leave FullGraph, KnownMessages and Disjoint out")
	case topOf(o.Metric) > 0:
		return errAsOfTop
	case err == nil && readsGraph(d):
		return errAsOfDecoder(o.Decoder)
	}
	return nil
}

var errAsOfTop = errors.New("links: recommendations rank all nodes by one embedding each, and with AsOf a node has one for each time; choose auc, ap, mrr or hits_K")

func errAsOfDivided(ds *gnb.Dataset) error {
	return fmt.Errorf("links: AsOf needs the whole graph of %s with its edge times on each machine; %s", ds.Name(), feed.WithTopology(ds))
}

func noTimesFor(ds *gnb.Dataset) error {
	return fmt.Errorf("links: AsOf sees each edge as of its own time, and the edges of %s have none; convert the dataset with --edge-times, or leave AsOf (--as-of) out", ds.Name())
}

func errAsOfDecoder(name string) error {
	return fmt.Errorf("links: the decoder %s reads the neighbours of a pair without their times, so with AsOf it would see later edges; take dot, bilinear, mlp or hadamard", name)
}

// useTimes makes the worker compute on the whole graph, as of the time of each edge.
func (l *Loader) useTimes(divided bool) (err error) {
	s := l.split
	_, _, byTime := s.Cut()
	switch {
	case divided || s.Divided != nil:
		return errAsOfDivided(l.w.Dataset())
	case s.All.EdgeTimes == nil:
		return noTimesFor(l.w.Dataset())
	case !byTime:
		return errors.New("links: with AsOf an edge sees all earlier edges, and in this split edges of validation and test may be earlier than those of training; split by time (links.TimeSplit), or leave AsOf out")
	case l.o.KnownMessages:
		return errors.New("links: with AsOf, all earlier edges are messages in evaluation; leave KnownMessages out")
	}
	l.times = &partTimes{}
	err = mapped.Guard(func() (err error) {
		for _, p := range []struct {
			out *[]int64
			of  Part
		}{{&l.times.train, s.Train}, {&l.times.val, s.Val}, {&l.times.test, s.Test}} {
			if *p.out, err = s.TimesOf(p.of.Edges); err != nil {
				return err
			}
		}
		return nil
	})
	l.w.UseGraph(s.All)
	return err
}

func timesAt(times []int64, items []int32) []int64 {
	out := make([]int64, len(items))
	for k, i := range items {
		out[k] = times[i]
	}
	return out
}

// numberedAt is numbered for pairs in groups of equal size, each with a time: a seed is a node at a time.
func numberedAt(p Edges, times []int64) (seeds gnb.Seeds, src, dst []int32) {
	type seed struct {
		node int32
		time int64
	}
	row := make(map[seed]int32, 2*p.Len())
	seeds.Times = []int64{}
	group := 1
	if len(times) > 0 {
		group = p.Len() / len(times)
	}
	number := func(nodes []int32) []int32 {
		rows := make([]int32, len(nodes))
		for i, v := range nodes {
			at := seed{v, times[i/group]}
			r, ok := row[at]
			if !ok {
				r = int32(len(seeds.IDs))
				row[at] = r
				seeds.IDs, seeds.Times = append(seeds.IDs, v), append(seeds.Times, at.time)
			}
			rows[i] = r
		}
		return rows
	}
	src, dst = number(p.Src), number(p.Dst)
	return seeds, src, dst
}

// evaluateAsOf is evaluate with AsOf: it samples the neighbourhoods of the ends of each pair as of its edge's time.
func (l *Loader) evaluateAsOf(n *Net, k int, names ...string) []Metrics {
	if k > 0 {
		l.w.Fail(errAsOfTop)
	}
	var out []Metrics
	for _, name := range names {
		p, err := l.part(name)
		if err != nil {
			l.w.Fail(err)
		}
		times := map[string][]int64{"val": l.times.val, "test": l.times.test}[name]
		per := p.Neg.Len() / p.Len()
		scores := make([]float64, p.Len()+p.Neg.Len())
		items := gnb.Items{Name: "links", Count: p.Len(), Of: func(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
			mine := items[lo:hi]
			b := &Batch{Edges: edgesAt(p.Edges, mine), PerEdge: per}
			var neg Edges
			for _, i := range mine {
				of := p.Neg.Slice(int(i)*per, int(i+1)*per)
				neg.Src, neg.Dst = append(neg.Src, of.Src...), append(neg.Dst, of.Dst...)
			}
			if b.Pairs, _, err = pairs.Grouped(b.Edges, neg); err != nil {
				return seeds, nil, err
			}
			seeds, b.Src, b.Dst = numberedAt(b.Pairs, timesAt(times, mine))
			return seeds, b, nil
		}}
		loader := l.loop.loader
		loader.MaxSteps = 0
		if loader.Batch > 0 { // a batch has about as many seeds as one with a negative for each edge
			loader.Batch = max(1, 2*loader.Batch/(1+per))
		} else if loader.BatchPerWorker > 0 {
			loader.BatchPerWorker = max(1, 2*loader.BatchPerWorker/(1+per))
		} else {
			loader.Batch = max(1, 2*1024/(1+per))
		}
		err = l.w.EvaluateOf(n.Net, name, items, loader, func(b *gnb.Batch) error {
			h := n.Forward(b)
			s := pairsIn(b).Score(n.Decoder, h).Data()
			for i, item := range b.Items {
				group := s[i*(1+per) : (i+1)*(1+per)]
				scores[item] = float64(group[0])
				for j, x := range group[1:] {
					scores[p.Len()+int(item)*per+j] = float64(x)
				}
			}
			return nil
		})
		if err != nil {
			l.w.Fail(fmt.Errorf("links: evaluating %s: %w", name, err))
		}
		all := whole(l.w, scores)
		out = append(out, measure(name, all[:p.Len()], all[p.Len():]))
	}
	return out
}
