package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// Operation says how an operation's time in training differs from the time that the other rates give for its work, which
// are those of a few operations alone: its time is Factor times that. It is measured in passes of small networks, on a
// small batch and on a large one, in which the other rates give Seconds.
type Operation struct {
	Seconds []float64 `json:"seconds"`
	Factor  []float64 `json:"factor"`
}

// otherOperations is the name of what all operations together have, for those that the small networks do not use.
const otherOperations = "others"

const (
	// referencePasses is the number of passes of each small network, of whose times the median counts.
	referencePasses = 7
	// referenceSteps is the number of steps whose batches are sampled before steps of training are measured.
	referenceSteps = 32
)

// reference returns a small dataset, and the networks that are trained on it. The small one has sparse features and few
// nodes, of which one batch reads all, as citation graphs have.
func reference(small bool, threads int) ([]Job, error) {
	o := datasets.RMATOptions{Scale: 17, Degree: 8, Features: -1, Classes: 40}
	fanouts, batch := []int{10, 8}, 1024
	if small {
		o = datasets.RMATOptions{Scale: 11, Degree: 4, Features: -1, Classes: 8}
		fanouts, batch = []int{-1, -1}, 256
	}
	ds, err := datasets.RMAT(o)
	if err != nil {
		return nil, err
	}
	if small {
		const cols, each = 1024, 16
		x := &dataset.Sparse{Rows: ds.Nodes(), Cols: cols, Indptr: make([]int64, ds.Nodes()+1)}
		for v := range ds.Nodes() {
			for i := range each {
				x.Indices = append(x.Indices, int32(i*cols/each+v%(cols/each)))
				x.Values = append(x.Values, 1)
			}
			x.Indptr[v+1] = int64(len(x.Indices))
		}
		ds.SparseFeatures = x
	} else { // 64 MiB, as much as caches do not hold
		const cols = 128
		ds.Features = &dataset.Matrix{Rows: ds.Nodes(), Cols: cols, F32: floats(ds.Nodes() * cols)}
	}
	size := nn.ModelConfig{In: ds.FeatureDim(), Hidden: 64, Out: o.Classes, Layers: 2, Dropout: 0.5}
	of := func(change func(*nn.ModelConfig), build func(nn.ModelConfig) nn.Model) Job {
		s := size
		change(&s)
		return Job{
			Data: ds, Build: func() nn.Model { return build(s) }, Fanouts: fanouts, Batch: batch, Epochs: 1, Eval: "none",
			Workers: 1, Virtual: 1, Threads: threads, Precision: "float32",
		}
	}
	same := func(*nn.ModelConfig) {}
	return []Job{
		of(same, func(s nn.ModelConfig) nn.Model { return nn.NewSAGEModel(s) }),
		of(same, func(s nn.ModelConfig) nn.Model { return nn.NewGCNModel(s) }),
		of(same, func(s nn.ModelConfig) nn.Model { return nn.NewGINModel(s) }),
		of(func(s *nn.ModelConfig) { s.Heads = 2 }, func(s nn.ModelConfig) nn.Model { return nn.NewGATModel(s) }),
		of(func(s *nn.ModelConfig) { s.Heads = 4 }, func(s nn.ModelConfig) nn.Model { return nn.NewGATv2Model(s) }),
		of(func(s *nn.ModelConfig) { s.Norm, s.Residual = "layer", true }, func(s nn.ModelConfig) nn.Model { return nn.NewSAGEModel(s) }),
		of(func(s *nn.ModelConfig) { s.Norm = "batch" }, func(s nn.ModelConfig) nn.Model { return nn.NewSAGEModel(s) }),
	}, nil
}

// operations measures how operations' times differ in passes, and how a step's time differs from the sum of its stages.
func (r *Rates) operations() error {
	type sum struct{ real, base, square [2]float64 }
	sums := map[string]*sum{otherOperations: {}}
	for scale, small := range []bool{true, false} {
		jobs, err := reference(small, r.Threads)
		if err != nil {
			return fmt.Errorf("plan: making a graph to measure with: %w", err)
		}
		for i := range jobs {
			err := jobs[i].shares(context.Background(), 0, 1, 0, r.Threads, func(s sampled) error {
				calls, err := jobs[i].timed(s, r)
				for _, c := range calls {
					for _, name := range []string{c.op, otherOperations} {
						if sums[name] == nil {
							sums[name] = &sum{}
						}
						sums[name].real[scale] += c.real
						sums[name].base[scale] += c.base
						sums[name].square[scale] += c.base * c.base
					}
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("plan: measuring the operations of a pass: %w", err)
			}
		}
		if small {
			continue
		}
		r.Operations = map[string]Operation{}
		for name, s := range sums {
			var o Operation
			for scale := range s.base {
				if s.base[scale] > 0 {
					o.Seconds, o.Factor = append(o.Seconds, s.square[scale]/s.base[scale]), append(o.Factor, s.real[scale]/s.base[scale])
				}
			}
			if len(o.Seconds) == 2 && o.Seconds[0] >= o.Seconds[1] {
				o.Seconds, o.Factor = o.Seconds[1:], o.Factor[1:]
			}
			r.Operations[name] = o
		}
		r.Together = 1
		l, err := jobs[0].loads(context.Background(), referenceSteps, time.Second)
		if err == nil {
			var t trial
			t, err = jobs[0].try(context.Background(), l, r)
			r.Together = min(max(t.Factor, leastTogether), mostTogether)
		}
		if err != nil {
			return fmt.Errorf("plan: measuring steps of training: %w", err)
		}
	}
	return nil
}

// call is an operation of a pass.
type call struct {
	op         string
	real, base float64 // seconds measured, and by the rates of its work
}

// timed runs forward and backward passes over a share and returns the operations of one.
func (j *Job) timed(s sampled, r *Rates) ([]call, error) {
	d, err := newDry(j, true)
	if err != nil {
		return nil, err
	}
	var costs []tensor.Cost
	var last time.Time
	passes := make([][]float64, referencePasses)
	pass := 0
	note := func(c tensor.Cost) {
		now := time.Now()
		if n := len(costs); n == 0 || costs[n-1].Call != c.Call {
			passes[pass] = append(passes[pass], 0)
		}
		passes[pass][len(passes[pass])-1] += now.Sub(last).Seconds()
		if costs = append(costs, c); c.Kind == tensor.TransposeCost { // the first pass has made it
			costs[len(costs)-1] = tensor.Cost{Op: c.Op, Call: c.Call}
		}
		last = time.Now()
	}
	d.c.Backend = tensor.Metered(&ops.Processor{Threads: j.Threads}, &d.now.work, note)
	d.fwd = nn.NewFwd(d.c)
	for pass = range passes {
		costs = costs[:0]
		d.fwd.Reset(d.c)
		x := d.input(j.Data, s, j.gathered())
		last = time.Now()
		out, err := nn.TryForward(d.m, d.fwd, s.blocks, x)
		if err != nil {
			return nil, err
		}
		l := loss(j.Data, out)
		last = time.Now()
		l.Backward()
	}
	var calls []call
	for _, c := range r.calls(costs, false) {
		times := make([]float64, 0, referencePasses)
		for _, p := range passes {
			if len(calls) < len(p) {
				times = append(times, p[len(calls)])
			}
		}
		slices.Sort(times)
		c.real = times[len(times)/2]
		calls = append(calls, c)
	}
	return calls, nil
}

// calls returns the operations of a pass, with the times that the rates of their work give.
func (r *Rates) calls(costs []tensor.Cost, bf16 bool) (calls []call) {
	for i, c := range costs {
		if i == 0 || costs[i-1].Call != c.Call {
			calls = append(calls, call{op: c.Op})
		}
		calls[len(calls)-1].base += r.seconds(c, bf16) + partCost
	}
	return calls
}

// passSeconds returns the time of a pass's operations on all threads.
func (r *Rates) passSeconds(costs []tensor.Cost, bf16 bool) (sum float64) {
	for _, c := range r.calls(costs, bf16) {
		o, ok := r.Operations[c.op]
		if !ok {
			o = r.Operations[otherOperations]
		}
		sum += c.base * between(o.Seconds, o.Factor, c.base)
	}
	return sum
}

// Bounds of Rates.Together: a measurement beyond them was disturbed.
const leastTogether, mostTogether = 0.8, 2

// fitOperations reports whether all operations have usable factors.
func (r *Rates) fitOperations() bool {
	if _, ok := r.Operations[otherOperations]; !ok || !(r.Together >= leastTogether && r.Together <= mostTogether) {
		return false
	}
	for o := range maps.Values(r.Operations) {
		if len(o.Seconds) == 0 || len(o.Seconds) > 2 || len(o.Factor) != len(o.Seconds) || !usable(o.Seconds) || !usable(o.Factor) {
			return false
		}
	}
	return true
}
