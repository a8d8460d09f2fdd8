package multigpu

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/multigpu/collective"
)

// measure times collectives between processes: barriers if Bytes is 0, else sums of Bytes/4 float32
// values each. It emits the median.
func measure(p *Process, job testJob) error {
	s := collective.Site{Kind: "step", At: "bench_test.go:1"}
	r, err := p.Comm.NewReducer(s, job.Bytes/4, 1)
	if err != nil {
		return err
	}
	for i := range r.Slot(0) {
		r.Slot(0)[i] = float32(i)
	}
	var each []time.Duration
	for i := range job.Steps + 20 {
		start := time.Now()
		if job.Bytes == 0 {
			err = p.Comm.Barrier(s)
		} else {
			_, err = r.Reduce(s)
		}
		if err != nil {
			return err
		}
		if i >= 20 { // warmed up: pages are mapped and all processes have met
			each = append(each, time.Since(start))
		}
	}
	slices.Sort(each)
	return p.Emit(each[len(each)/2])
}

// The time of an operation is the median of the operations of rank 0, between processes that share memory.

func BenchmarkCollectives(b *testing.B) {
	for _, world := range []int{1, 2, 4, 8} {
		for _, n := range []int{0, 225_000, 5_000_000} {
			name := fmt.Sprintf("barrier/world=%d", world)
			if n > 0 {
				name = fmt.Sprintf("reduce/floats=%d/world=%d", n, world)
			}
			b.Run(name, func(b *testing.B) {
				var took time.Duration
				s := Spec{World: world, Job: testJob{Kind: "measure", Steps: b.N, Bytes: 4 * n}, OnEvent: func(rank int, data json.RawMessage) {
					if rank == 0 {
						_ = json.Unmarshal(data, &took) // a failed parse leaves 0, which the results would show
					}
				}}
				g, err := Start(b.Context(), s)
				if err == nil {
					err = g.Wait()
				}
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(took.Nanoseconds()), "ns/op")
				if n > 0 {
					b.ReportMetric(float64(4*n)/took.Seconds()/1e9, "GB/s")
				}
			})
		}
	}
}

func BenchmarkStartAndEnd(b *testing.B) {
	for _, world := range []int{1, 4} {
		b.Run(fmt.Sprintf("world=%d", world), func(b *testing.B) {
			for b.Loop() {
				g, err := Start(b.Context(), Spec{World: world, Job: testJob{Kind: "train", Rank: -1, Steps: 0}})
				if err == nil {
					err = g.Wait()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
