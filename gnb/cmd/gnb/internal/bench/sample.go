package bench

import (
	"context"
	"flag"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
)

// sampling is a loader's flags.
type sampling struct {
	dataset string
	split   string
	hops    ranks.Fanouts
	batch   int
	seed    uint64
}

func (s *sampling) flags(fs *flag.FlagSet) {
	s.hops = ranks.Fanouts{List: []int{15, 10, 5}}
	fs.StringVar(&s.dataset, "dataset", "rmat?scale=17&degree=16", "dataset to sample")
	fs.StringVar(&s.split, "split", "train", "split whose nodes are the seeds")
	fs.Var(&s.hops, "fanout", "neighbours sampled per hop, the seeds' hop first")
	fs.IntVar(&s.batch, "batch", 1024, "seeds per batch")
	fs.Uint64Var(&s.seed, "seed", 0, "random seed")
}

// batches samples one batch after the other, epoch after epoch. The caller releases the batch.
type batches struct {
	s           *sample.Sampler
	split, ids  []int32
	seed        uint64
	size        int
	epoch, step int
}

// open adds its flags, parses them all and opens the dataset, which the caller closes.
func (s *sampling) open(ctx context.Context, out *cli.Output, fs *flag.FlagSet, t *timing, args []string) (*dataset.Dataset, *batches, error) {
	s.flags(fs)
	if err := t.parse(out, fs, args); err != nil {
		return nil, nil, err
	}
	ds, err := options.Load(ctx, out, s.dataset)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.batches(ds, t.threads)
	if err != nil {
		ds.Close()
		return nil, nil, err
	}
	return ds, b, nil
}

func (s *sampling) batches(ds *dataset.Dataset, threads int) (*batches, error) {
	if s.hops.Full {
		return nil, cli.Usagef("--fanout full needs the number of hops: full,full")
	}
	split, err := ds.Split(s.split)
	if err != nil {
		return nil, err
	}
	if s.batch < 1 || s.batch > cli.MaxCount || len(split) == 0 {
		return nil, cli.Usagef("--batch is %d and split %q has %d nodes; both must be at least 1", s.batch, s.split, len(split))
	}
	smp, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts(s.hops.List), Seed: s.seed, Threads: threads})
	if err != nil {
		return nil, err
	}
	return &batches{s: smp, split: split, seed: s.seed, size: s.batch, epoch: -1}, nil
}

func (b *batches) next() (*sample.Batch, error) {
	if b.step*b.size >= len(b.ids) {
		b.epoch, b.step = b.epoch+1, 0
		b.ids = sample.EpochOrder(b.seed, b.epoch, b.split)
	}
	seeds := b.ids[b.step*b.size:]
	r, err := b.s.Sample(b.epoch, b.step, sample.Seeds{IDs: seeds[:min(b.size, len(seeds))]})
	b.step++
	return r, err
}

// hopSize is the size of one hop's block.
type hopSize struct {
	Dst   float64 `json:"dst"`
	Src   float64 `json:"src"`
	Edges float64 `json:"edges"`
}

// hopSizes adds up the blocks of batches; hops are listed as in --fanout, the seeds' hop first.
type hopSizes []hopSize

func (h *hopSizes) add(b *sample.Batch) {
	n := len(b.Blocks)
	if *h == nil {
		*h = make(hopSizes, n)
	}
	for i, k := range b.Blocks {
		s := &(*h)[n-1-i]
		s.Dst += float64(k.NumDst)
		s.Src += float64(k.NumSrc)
		s.Edges += float64(k.NumEdges())
	}
}

// mean is the mean of n batches.
func (h hopSizes) mean(n int) hopSizes {
	m := make(hopSizes, len(h))
	for i, s := range h {
		m[i] = hopSize{s.Dst / float64(n), s.Src / float64(n), s.Edges / float64(n)}
	}
	return m
}

func (h hopSizes) edges() float64 {
	n := 0.0
	for _, s := range h {
		n += s.Edges
	}
	return n
}

type sampleResult struct {
	timed
	Rate  float64  `json:"edges_per_second"`
	Limit float64  `json:"random_lines_per_second,omitempty"`
	Share float64  `json:"share,omitempty"`
	Hops  hopSizes `json:"hops"`
}

func benchSample(ctx context.Context, args []string, out *cli.Output) error {
	var (
		t timing
		s sampling
	)
	fs := benchFlags(out, "sample", "Samples mini-batches, without features and without training. The limit is the rate of random reads: an edge needs at least one row of 64 bytes, a cache line of the graph.", &t)
	ds, b, err := s.open(ctx, out, fs, &t, args)
	if err != nil {
		return err
	}
	defer ds.Close()
	steps := t.steps
	if steps == 0 {
		steps = 30
	}
	var sizes hopSizes
	var each []float64
	total := time.Duration(0)
	for i := range t.warmup + steps {
		start := time.Now()
		batch, err := b.next()
		if err != nil {
			return err
		}
		if i >= t.warmup {
			took := time.Since(start)
			total += took
			each = append(each, took.Seconds())
			sizes.add(batch)
		}
		batch.Release()
	}
	r := newTimed(t.threads, total, each)
	hops := sizes.mean(steps)
	res := sampleResult{timed: r, Rate: hops.edges() / r.Median, Hops: hops}
	if t.limits {
		res.Limit = randomRowGBs(t.threads, 64) * 1e9 / 64
		res.Share = res.Rate / res.Limit
	}
	out.Result(res)
	out.Printf("%.0f edges, %.0f nodes per batch on %d threads: %.3f ms, %.1f M edges/s%s\n",
		hops.edges(), hops[len(hops)-1].Src, t.threads, r.Median*1e3, res.Rate/1e6, of(res.Share, "M random lines/s", res.Limit/1e6))
	return nil
}

func benchGather(ctx context.Context, args []string, out *cli.Output) error {
	var (
		t timing
		s sampling
	)
	fs := benchFlags(out, "gather", "Fetches the features of sampled batches into memory that is reused, as training does.", &t)
	ds, b, err := s.open(ctx, out, fs, &t, args)
	if err != nil {
		return err
	}
	defer ds.Close()
	if ds.Features == nil {
		return cli.Usagef("%s has no dense features to fetch", ds.Name())
	}
	const kept = 8 // batches, so that rows do not stay in caches
	ids := make([][]int32, kept)
	rows, most := 0, 0
	for i := range ids {
		batch, err := b.next()
		if err != nil {
			return err
		}
		ids[i] = batch.InputIDs()
		rows += len(ids[i])
		most = max(most, len(ids[i]))
	}
	cols := ds.Features.Cols
	buf := make([]float32, most*cols)
	i := 0
	gather := func() {
		batch := ids[i%kept]
		i++
		ds.Features.Gather(buf[:len(batch)*cols], batch, t.threads)
	}
	for range kept {
		gather() // the first touch of a mapped page is a fault
	}
	r := t.run(gather)
	rate := t.rate(r, 4*float64(cols)*float64(rows)/kept, 4*cols)
	out.Result(struct {
		rateResult
		Rows int `json:"rows"` // of a batch
		Row  int `json:"row_bytes"`
	}{rate, rows / kept, 4 * cols})
	out.Printf("%d rows of %d bytes on %d threads: %.3f ms, %.1f GB/s%s\n", rows/kept, 4*cols, t.threads, r.Median*1e3, rate.GBs, of(rate.Share, "GB/s of random rows", rate.Limit))
	return nil
}
