package feed

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// item counts its stages: each item is sampled and fetched once, in order.
type item struct {
	i                 int
	failed            bool
	fetched, released atomic.Int32
}

func run(items, ahead, failAt, leaveAt, fetched int) (all []*item, taken []int, err error) {
	var held atomic.Int32 // number of items fetched and not finished
	stopped := 0
	p := Pipeline[*item]{
		Items: items, Ahead: ahead, Fetched: fetched, Stopped: func(bool) { stopped++ },
		Sample: func(i int) (*item, bool) {
			it := &item{i: i, failed: i == failAt}
			all = append(all, it)
			return it, !it.failed
		},
		Fetch: func(it *item, _ <-chan struct{}) {
			it.fetched.Add(1)
			if n := held.Add(1); fetched > 0 && int(n) > fetched {
				err = fmt.Errorf("%d items are fetched at a time, at most %d may be", n, fetched)
			}
		},
		Release: func(it *item) { it.released.Add(1) },
	}
	r := p.Start()
	for {
		it, ok := r.Next()
		if !ok {
			break
		}
		taken = append(taken, it.i)
		if it.failed {
			break
		}
		r.Wait()
		if it.fetched.Load() != 1 {
			err = fmt.Errorf("item %d was fetched %d times after Wait", it.i, it.fetched.Load())
		}
		if it.i == leaveAt {
			break
		}
		held.Add(-1)
	}
	r.Close()
	if stopped != 1 {
		err = fmt.Errorf("Stopped was called %d times", stopped)
	}
	return all, taken, err
}

func TestPipeline(t *testing.T) {
	upTo := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for _, c := range []struct {
		name                          string
		items, ahead, failAt, leaveAt int
		want                          int // number of items taken
		fetched                       int
	}{
		{"all", 10, 2, -1, -1, 10, 0},
		{"none", 0, 2, -1, -1, 0, 0},
		{"one", 1, 1, -1, -1, 1, 0},
		{"ahead of all", 3, 8, -1, -1, 3, 0},
		{"a failure", 10, 2, 4, -1, 5, 0},
		{"the first fails", 10, 2, 0, -1, 1, 0},
		{"left early", 10, 3, -1, 2, 3, 0},
		{"left at the first", 10, 3, -1, 0, 1, 0},
		{"one fetched at a time", 20, 8, -1, -1, 20, 1},
		{"two fetched at a time", 20, 8, -1, -1, 20, 2},
		{"two at a time and a failure", 20, 8, 9, -1, 10, 2},
		{"two at a time, left early", 20, 8, -1, 5, 6, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			goroutines := runtime.NumGoroutine()
			all, taken, err := run(c.items, c.ahead, c.failAt, c.leaveAt, c.fetched)
			if err != nil {
				t.Error(err)
			}
			if !slices.Equal(taken, upTo(c.want)) {
				t.Errorf("the items taken are %v, want %v", taken, upTo(c.want))
			}
			// There are two channels of Ahead items, one item in each stage, and the item of the
			// consumer.
			if most := c.want + 2*c.ahead + 3; len(all) > most {
				t.Errorf("%d items were made, at most %d may be", len(all), most)
			}
			for _, it := range all {
				if want := int32(1); slices.Contains(taken, it.i) == (it.released.Load() == want) {
					t.Errorf("item %d was released %d times (taken: %v)", it.i, it.released.Load(), slices.Contains(taken, it.i))
				}
			}
			for range 100 {
				if runtime.NumGoroutine() <= goroutines {
					return
				}
				time.Sleep(time.Millisecond)
			}
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		})
	}
}

type fakeSampler struct{ closed *int }

func (fakeSampler) Hops() int { return 1 }

func (fakeSampler) Sample(int, int, sample.Seeds) (*sample.Batch, error) { return nil, nil }
func (f fakeSampler) Close() error                                       { *f.closed++; return nil }

// funcPicker is a picker that cannot be compared.
type funcPicker struct{ _ func() }

func (funcPicker) Pick(*sample.Hop, int32, []int32, []int32) []int32 { return nil }

func TestSamplersAreKept(t *testing.T) {
	var s Samplers
	opened, closed := 0, 0
	get := func(k Key) (done func()) {
		t.Helper()
		_, giveBack, err := s.Get(k, func(Key) (sample.Batcher, error) { opened++; return fakeSampler{&closed}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if err := giveBack(); err != nil {
				t.Error(err)
			}
		}
	}
	key := func(fanouts ...int) Key {
		return Key{Picker: sample.Fanouts(fanouts), Hops: len(fanouts), Purpose: philox.Sample}
	}
	fanouts := []int{3, 2}
	get(key(fanouts...))()
	fanouts[0] = 9 // the program changes its own slice
	get(key(3, 2))()
	if opened != 1 {
		t.Errorf("%d samplers were opened for the same fanouts, want 1", opened)
	}
	other := key(3, 2)
	other.Purpose = philox.Evaluate
	get(other)()
	if opened != 2 {
		t.Errorf("%d samplers are open, want 2: evaluation has its own draws", opened)
	}
	hold := get(key(1))
	for n := range 2 * maxSamplers {
		get(key(4, n))()
	}
	if len(s.kept) != maxSamplers || closed != opened-maxSamplers {
		t.Errorf("%d samplers are kept, and %d of %d closed; want %d kept and the others closed", len(s.kept), closed, opened, maxSamplers)
	}
	before := opened
	if hold(); get(key(1)) == nil || opened != before {
		t.Error("the sampler of a loop that was still running was not kept")
	}
}

// A picker that cannot be compared may pick differently in the next loop, so its sampler is closed
// at the end of its loop.
func TestSamplerOfAPickerThatCannotBeCompared(t *testing.T) {
	var s Samplers
	opened, closed := 0, 0
	for range 2 {
		_, done, err := s.Get(Key{Picker: funcPicker{}}, func(Key) (sample.Batcher, error) { opened++; return fakeSampler{&closed}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := done(); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 2 || closed != 2 {
		t.Errorf("%d opened and %d closed, want 2 and 2", opened, closed)
	}
}

// A first stage that shares the consumer's processor works first, unless it waits for other ranks.
func TestPipelineWaits(t *testing.T) {
	const ahead, items = 3, 8
	var waits atomic.Bool
	answer := make(chan struct{})
	var loops sync.WaitGroup
	r := Pipeline[*item]{
		Items: items, Ahead: ahead,
		Sample: func(i int) (*item, bool) {
			if i == items-1 {
				waits.Store(true)
				<-answer
				waits.Store(false)
			}
			return &item{i: i}, true
		},
		Fetch:    func(*item, <-chan struct{}) {},
		Release:  func(*item) {},
		Together: &Together{Leave: func() {}, First: &loops, Waits: waits.Load},
	}.Start()
	for i := range items {
		if i == items-1 {
			close(answer)
		}
		if it, ok := r.Next(); !ok || it.i != i {
			t.Fatalf("Next is %v, %v, want item %d", it, ok, i)
		}
		if ready, want := len(r.sampled), min(ahead, items-2-i); ready < want {
			t.Errorf("after item %d, %d more are ready, want %d", i, ready, want)
		}
		r.Wait()
		for !r.working.Load() && i+1+len(r.sampled) < items { // the first stage waits for the second, which keeps up
			runtime.Gosched()
		}
	}
	if _, ok := r.Next(); ok {
		t.Error("there is an item behind the last one")
	}
	r.Close()
	loops.Wait()
}

// A first stage that waits for other ranks does not block a consumer that leaves or panics. The
// stage ends when the other ranks allow it, releases all items, and tells the other ranks unless
// the consumer panicked.
func TestPipelineTogether(t *testing.T) {
	for name, panics := range map[string]bool{"leaves": false, "panics": true} {
		t.Run(name, func(t *testing.T) {
			let, left := make(chan struct{}), 0
			var first sync.WaitGroup
			var all []*item
			r := Pipeline[*item]{
				Items: 10, Ahead: 1,
				Sample: func(i int) (*item, bool) {
					if i == 2 {
						<-let // waits for the other ranks
					}
					it := &item{i: i}
					all = append(all, it)
					return it, true
				},
				Fetch:    func(it *item, _ <-chan struct{}) { it.fetched.Add(1) },
				Release:  func(it *item) { it.released.Add(1) },
				Together: &Together{Leave: func() { left++ }, First: &first},
			}.Start()
			func() {
				defer func() { _ = recover() }()
				defer r.Close()
				if _, ok := r.Next(); !ok {
					t.Fatal("no item")
				}
				r.Wait()
				r.Use(func() bool {
					if panics {
						panic("the consumer")
					}
					return false
				})
			}()
			close(let)
			first.Wait()
			for _, it := range all[1:] {
				if it.released.Load() != 1 {
					t.Errorf("item %d was released %d times", it.i, it.released.Load())
				}
			}
			if want := map[bool]int{false: 1}[panics]; left != want {
				t.Errorf("Leave was called %d times, want %d", left, want)
			}
		})
	}
}
