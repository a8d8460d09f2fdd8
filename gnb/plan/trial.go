package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
)

const (
	// trialTime bounds the time in which steps are tried, after the first ones.
	trialTime = time.Second
	// warmSteps is the number of first steps that do not count, because memory gets its size in them, and trialSteps that of
	// the steps that count.
	warmSteps, trialSteps = 3, 48
	// groupSteps is the number of steps of which the mean time counts, and groups that of the groups.
	groupSteps = 6
	groups     = trialSteps / groupSteps
	// longStep is the predicted time of a share from which on none is tried.
	longStep = 0.5
)

// Bounds of a trial's factor: a measurement beyond them was disturbed.
const leastFactor, mostFactor = 0.25, 4

// trial is what a few steps took that were computed to see how the prediction differs from them.
type trial struct {
	Seconds float64 // of a virtual rank's share of a step
	Steps   int     // that were timed
	Factor  float64 // by which sampling and computing took longer than the sum of their predicted times
	// Least and Most are the mean times of a step in the fastest group and in the slowest one.
	Least, Most float64
}

// try computes a virtual rank's share of the run's first steps on each worker of this machine at the same time, while the
// next batches are sampled beside it, as workers do. The workers are goroutines here: nothing is summed over them, nothing is
// kept, and rows of other workers or of a disk are zeros. The ranks of a cooperative batch are one worker with their threads.
// Short steps are spread over the trial's time: the speed of a machine changes within it, such as that of caches which other programs
// and other machines of a host use. A trial without steps has the factor 1: the share is predicted to take too long.
func (j *Job) try(ctx context.Context, l *load, r *Rates) (trial, error) {
	if j.Cooperative && j.Workers > 1 {
		whole := *j
		whole.Workers, whole.Here, whole.Threads, whole.Cooperative = 1, 0, j.Threads*j.here(), false
		all, err := whole.loads(ctx, choiceSteps, choiceTime)
		if err != nil {
			return trial{}, err
		}
		return whole.try(ctx, all, r)
	}
	sampling, computing := l.busy*l.sampling*j.crowded(r), j.computeSeconds(l, r)
	if sampling+computing > longStep {
		return trial{Factor: 1}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime+time.Duration(float64(warmSteps)*mostFactor*(sampling+computing)*float64(time.Second)))
	defer cancel()
	tries := make([]trial, j.here())
	errs := make([]error, len(tries))
	var all sync.WaitGroup
	for rank := range tries {
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					errs[rank] = fmt.Errorf("model %q panics: %v", j.Model, v)
				}
			}()
			tries[rank], errs[rank] = j.tried(ctx, rank)
		})
	}
	all.Wait()
	var longest trial
	for rank, t := range tries {
		if errs[rank] != nil {
			return trial{}, fmt.Errorf("plan: trying steps: %w", errs[rank])
		}
		if rank == 0 || t.Seconds > longest.Seconds {
			longest = t
		}
	}
	if longest.Steps == 0 {
		return trial{Factor: 1}, nil
	}
	longest.Factor = min(max((longest.Seconds-j.optimizerSeconds(l, r))/(sampling+computing), leastFactor), mostFactor)
	return longest, nil
}

// tried computes shares of a rank until ctx ends, which is no error.
func (j *Job) tried(ctx context.Context, rank int) (t trial, err error) {
	d, err := newDry(j, true)
	if err != nil {
		return t, err
	}
	d.c.Backend, d.c.Exchanger, d.c.BF16 = nil, nil, j.Precision == "bf16"
	d.fwd = nn.NewFwd(d.c)
	batches, stop, err := j.batches(rank)
	if err != nil {
		return t, err
	}
	defer stop()
	weights := make([]float32, d.params.Len())
	adam := optim.NewAdam(optim.AdamOptions{})
	step := func() error {
		p := <-batches
		if p.err != nil {
			return p.err
		}
		err := mapped.Guard(func() error {
			_, err := d.batch(j.Data, sampled{b: p.b, blocks: p.b.Blocks}, j.gathered())
			return err
		})
		if err == nil {
			adam.Step(weights, d.params.Grad(), 1)
			p.b.Release()
		}
		return err
	}
	steps := func(most int) (n int, err error) {
		for n < most && ctx.Err() == nil && err == nil {
			if err = step(); err == nil {
				n++
			}
		}
		return n, err
	}
	if _, err := steps(warmSteps); err != nil {
		return t, err
	}
	var means []float64
	start := time.Now()
	for g := range groups {
		if wait := time.Until(start.Add(time.Duration(g) * j.spread / groups)); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			if _, err := steps(ahead); err != nil { // these were sampled meanwhile
				return t, err
			}
		}
		begin := time.Now()
		n, err := steps(groupSteps)
		if err != nil {
			return t, err
		}
		if n > 0 {
			t.Steps += n
			means = append(means, time.Since(begin).Seconds()/float64(n))
		}
	}
	t.take(means)
	return t, nil
}

// take sets the trial's times to those of its groups. Its time of a step is the median over them: within a group, collections of
// garbage count; a group that the machine held up does not.
func (t *trial) take(means []float64) {
	if len(means) == 0 {
		return
	}
	slices.Sort(means)
	t.Seconds, t.Least, t.Most = means[len(means)/2], means[0], means[len(means)-1]
}

// prepared is a batch of a trial.
type prepared struct {
	b   *sample.Batch
	err error
}

// batches samples a rank's shares of one step after the other, ahead of their use, until stop is called once. In a dataset in
// parts a share has as many seeds as the mean one.
func (j *Job) batches(rank int) (_ <-chan prepared, stop func(), err error) {
	s, ids, err := j.sampler(j.Threads)
	if err != nil {
		return nil, nil, err
	}
	batch, steps := j.batch(len(ids)), j.steps(len(ids))
	out, done, ended := make(chan prepared, ahead), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var order []int32
		for i := 0; ; i++ {
			epoch, step := i/steps, i%steps
			if step == 0 {
				order = sample.EpochOrder(j.Seed, epoch, ids)
			}
			all := order[step*batch : min((step+1)*batch, len(ids))]
			lo, hi := sample.Share(len(all), rank*j.Virtual, j.world())
			var p prepared
			p.b, p.err = sampleShare(s, epoch, step, all, all[lo:hi])
			select {
			case out <- p:
			case <-done:
				return
			}
			if p.err != nil {
				return
			}
		}
	}()
	return out, func() {
		close(done)
		<-ended
	}, nil
}
