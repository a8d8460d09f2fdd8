package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Seeds are the seed nodes of a batch and, if the task has them, their times: see [sample.Seeds].
type Seeds = sample.Seeds

// AsOf says what seeds with times see of a graph, and take of that: see [sample.AsOf].
type AsOf = sample.AsOf

// Items are what an epoch goes through if that is not the nodes of a split: edges to predict, triples, graphs, events. Each
// item needs some seed nodes. See [Worker.BatchesOf].
type Items struct {
	// Name is the plural of an item, such as "graphs", in which the run's rates are shown; "" means "items".
	Name string
	// Count is the number of items of an epoch. They are numbered from 0.
	Count int
	// Of returns the seeds for this rank's share, items[lo:hi], of the items of a
	// step, and a value that the batch carries ([Batch.Value]). Seeds are distinct nodes or, with Loader.Disjoint, any,
	// which can have times. It must be a function of its
	// arguments alone: the step is counted over the epoch's loops, and draws that depend on (seed,
	// epoch, step, item) do not depend on workers. A goroutine calls it ahead of the loop, for servers several
	// in turn and not always in the order of steps, and again
	// for the items of the whole step if the run has a digest or the sampler is a [sample.StepPicker]. items must not be kept.
	Of func(epoch, step int, items []int32, lo, hi int) (seeds Seeds, value any, err error)
	// Size is the work of an item, such as the nodes of a graph: a step's items are then cut into shares of about equal work
	// instead of equal numbers. It is a function of the item alone; nil means that all items are equal.
	Size func(item int32) int64
}

// share returns the part [lo, hi) of a step's items that a share of all shares takes.
func (i *Items) share(items []int32, share, all int) (lo, hi int) {
	if i.Size == nil {
		return sample.Share(len(items), share, all)
	}
	total := int64(0)
	for _, item := range items {
		total += max(0, i.Size(item))
	}
	// An item belongs to the share in which the middle of its work lies, so shares are ranges of items that miss none.
	at, done := [2]int{len(items), len(items)}, int64(0)
	for k, item := range items {
		size := max(0, i.Size(item))
		of := 0
		if total > 0 {
			of = min(all-1, int(float64(all)*(float64(done)+float64(size)/2)/float64(total)))
		}
		for b := range at {
			if of >= share+b && at[b] == len(items) {
				at[b] = k
			}
		}
		done += size
	}
	return at[0], at[1]
}

// BatchesOf loops over items in mini-batches, as [Worker.Batches] loops over the nodes of a split:
// Loader.Batch items per step in a shuffled order, cut into even shares (see Items.Size), and sampled around the
// seeds that each.Of returns for a share, which can be empty. Resumption, virtual ranks and the digest
// are those of Batches. In a dataset in parts shares are even too, so that a batch reads features of
// other parts than the worker's own, and it has no labels. Cooperative batches are refused.
func (w *Worker) BatchesOf(each Items, l Loader) iter.Seq[*Batch] {
	return w.loopOver(cmp.Or(each.Name, "items"), func() (plan, error) { return w.planOfItems(each, l) })
}

// planOfItems is plan for items.
func (w *Worker) planOfItems(each Items, l Loader) (plan, error) {
	switch {
	case each.Of == nil:
		return plan{}, errors.New("gnb: BatchesOf needs the seeds of items, Items.Of")
	case each.Count < 0 || each.Count > math.MaxInt32:
		return plan{}, fmt.Errorf("gnb: Items.Count is %d; an epoch has 0 to %d items", each.Count, math.MaxInt32)
	case l.Cooperative:
		return plan{}, errors.New("gnb: BatchesOf makes no cooperative batches; leave Cooperative out")
	}
	p, err := w.planOf(feed.Numbers(each.Count), l)
	p.own = &each
	return p, err
}

// seedsOfItems returns the seeds of this worker's virtual rank v for the items of a step, and sets what
// the batch says about them.
func (w *Worker) seedsOfItems(b *Batch, p plan, epoch, step int, items []int32, v int) (seeds Seeds, err error) {
	lo, hi := p.own.share(items, w.p.Rank*w.job.Virtual+v, w.World()*w.job.Virtual)
	b.Items = items[lo:hi:hi]
	w.feed.ofItems.Lock() // with servers, several batches are sampled at a time
	defer w.feed.ofItems.Unlock()
	if w.digest != nil || feed.NeedsSteps(p.Sampler) { // these have the seeds of all ranks
		if b.global, _, err = p.own.Of(epoch, step, items, 0, len(items)); err != nil {
			return seeds, err
		}
	}
	seeds, b.Value, err = p.own.Of(epoch, step, items, lo, hi)
	if err == nil && seeds.Times != nil && w.ds.NodeTimes != nil && p.AsOf.NodeTimes == nil {
		return seeds, fmt.Errorf("gnb: the seeds have times, and so have the nodes of %s, which would be seen before they exist; set AsOf.NodeTimes of the Loader to NodeTimes of the dataset", w.ds.Name())
	}
	if seeds.Len() == 0 && b.global.Times != nil { // as the other ranks' shares
		seeds.Times = []int64{}
	}
	return seeds, err
}
