package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu/collective"
)

type allReduceResult struct {
	timed
	GBs      float64 `json:"gb_per_second"`
	Limit    float64 `json:"memory_gb_per_second,omitempty"`
	Share    float64 `json:"share,omitempty"`
	Elements int     `json:"elements"`
	Workers  int     `json:"workers"`
}

func benchAllReduce(_ context.Context, args []string, out *output) (err error) {
	var t timing
	fs := benchFlags(out, "allreduce", "Sums gradients over ranks in shared memory, as worker processes do, but with a thread per rank. The rate counts the gradient's bytes; the limit is one pass over memory for all slots and the sum.", &t)
	elements := fs.Int("elements", 200_000, "gradient elements (float32)")
	ranks := fs.Int("workers", 2, "number of ranks")
	if err := t.parse(out, fs, args); err != nil {
		return err
	}
	if *elements < 1 || *elements > 1<<28 || *ranks < 1 || *ranks > collective.MaxRanks {
		return usagef("--elements must lie in [1, 268435456] and --workers in [1, %d]", collective.MaxRanks)
	}
	if err := machine.Room("the ranks' gradients and their sum", 4*float64(*elements)*float64(*ranks+1)); err != nil {
		return err
	}
	files, err := collective.NewShared(*ranks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	steps := t.steps
	if steps == 0 {
		steps = 200
	}
	each := make([][]float64, *ranks)
	errs := make([]error, *ranks)
	var wg sync.WaitGroup
	for rank := range *ranks {
		wg.Go(func() {
			if each[rank], errs[rank] = reduceRank(files, rank, *ranks, *elements, t.warmup, steps); errs[rank] != nil {
				files.Abort(errs[rank].Error())
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	total := 0.0
	for _, s := range each[0] {
		total += s
	}
	r := newTimed(*ranks, time.Duration(total*float64(time.Second)), each[0])
	bytes := 4 * float64(*elements)
	res := allReduceResult{timed: r, GBs: bytes / r.Median / 1e9, Elements: *elements, Workers: *ranks}
	if t.limits {
		res.Limit = copyGBs(t.threads) / float64(*ranks+1)
		res.Share = res.GBs / res.Limit
	}
	out.result(res)
	out.printf("%d elements over %d ranks: %.1f µs, %.2f GB/s%s\n", *elements, *ranks, r.Median*1e6, res.GBs, of(res.Share, "GB/s from memory", res.Limit))
	return nil
}

// reduceRank is one rank of the sums; it returns the seconds of each.
func reduceRank(files *collective.Files, rank, ranks, elements, warmup, steps int) (each []float64, err error) {
	comm, err := collective.Open(files.Control, files.Data, rank, ranks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, comm.Close()) }()
	site := collective.Site{Kind: "bench"}
	red, err := comm.NewReducer(site, elements, 1)
	if err != nil {
		return nil, err
	}
	defer red.Release()
	slot := red.Slot(0)
	for i := range slot {
		slot[i] = float32(rank)
	}
	for i := range warmup + steps {
		start := time.Now()
		if _, err := red.Reduce(site); err != nil {
			return nil, err
		}
		if i >= warmup {
			each = append(each, time.Since(start).Seconds())
		}
	}
	return each, nil
}
