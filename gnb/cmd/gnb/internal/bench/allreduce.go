package bench

import (
	"context"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
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

	Transport string `json:"transport"`
}

func benchAllReduce(_ context.Context, args []string, out *cli.Output) error {
	var t timing
	fs := benchFlags(out, "allreduce", "Sums gradients over ranks, with a thread per rank: in shared memory, as worker processes do, or over TCP, as machines do. With --transport mpi, in a gnb that is built with -tags mpi, the ranks are those of mpirun. The rate counts the gradient's bytes; the limit of shared memory is one pass over memory for all slots and the sum.", &t)
	elements := fs.Int("elements", 200_000, "gradient elements (float32)")
	ranks := fs.Int("workers", 2, "number of ranks")
	transport := fs.String("transport", "shm", "shm, tcp (loopback), or mpi under mpirun")
	if err := t.parse(out, fs, args); err != nil {
		return err
	}
	if *elements < 1 || *elements > 1<<28 || *ranks < 1 || *ranks > collective.MaxRanks {
		return cli.Usagef("--elements must lie in [1, 268435456] and --workers in [1, %d]", collective.MaxRanks)
	}
	if !slices.Contains([]string{"shm", "tcp", "mpi"}, *transport) || *transport == "tcp" && *ranks > maxTCPRanks {
		return cli.Usagef("--transport must be shm, tcp with at most %d --workers, or mpi", maxTCPRanks)
	}
	vectors := *ranks + 1
	if *transport != "shm" {
		vectors = 3 * *ranks // each has a sum of its own, and parts of the others'
	}
	if err := machine.Room("the ranks' gradients and their sums", 4*float64(*elements)*float64(vectors)); err != nil {
		return err
	}
	steps := t.steps
	if steps == 0 {
		steps = 200
	}
	each, err := []float64(nil), error(nil)
	if *transport == "mpi" {
		rank := 0
		if rank, *ranks, each, err = sumSecondsMPI(*elements, t.warmup, steps); err == nil && rank > 0 {
			return nil // rank 0 prints
		}
	} else {
		each, err = sumSeconds(*transport, *ranks, *elements, t.warmup, steps)
	}
	if err != nil {
		return err
	}
	total := 0.0
	for _, s := range each {
		total += s
	}
	r := newTimed(*ranks, time.Duration(total*float64(time.Second)), each)
	bytes := 4 * float64(*elements)
	res := allReduceResult{timed: r, GBs: bytes / r.Median / 1e9, Elements: *elements, Workers: *ranks, Transport: *transport}
	if t.limits && *transport == "shm" {
		res.Limit = copyGBs(t.threads) / float64(*ranks+1)
		res.Share = res.GBs / res.Limit
	}
	out.Result(res)
	out.Printf("%d elements over %d ranks: %.1f µs, %.2f GB/s%s\n", *elements, *ranks, r.Median*1e6, res.GBs, of(res.Share, "GB/s from memory", res.Limit))
	return nil
}
