package live

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// sampleRun returns an invented run with the given number of steps and workers, of which the given
// share is done.
func sampleRun(steps, workers int, done float64, state string) Snapshot {
	r := rand.New(rand.NewPCG(1, uint64(steps)))
	epochs := 20
	if steps < 100 {
		epochs = 2
	}
	per := steps / epochs
	n := int(float64(steps) * done)
	s := Snapshot{
		Title: "sage on planted", State: state,
		Epochs: epochs, Steps: per, Epoch: min(n/per+1, epochs), Step: n % per,
		Elapsed: time.Duration(n) * 7 * time.Millisecond,
		Left:    time.Duration(steps-n) * 7 * time.Millisecond,
	}
	if n == steps {
		s.Step = per
	}
	for i := range n {
		t := float64(i) / float64(steps)
		y := 0.35 + 1.3*math.Exp(-t*9) + 0.12*r.NormFloat64()*math.Exp(-t)
		s.Loss = append(s.Loss, chart.Point{Step: i + 1, Y: max(y, 0.05)})
	}
	full := n / per
	val, test, train := Series{Name: "val"}, Series{Name: "test"}, Series{Name: "train"}
	for e := 1; e <= full; e++ {
		t := 1 - math.Exp(-float64(e)/4)
		train.Points = append(train.Points, chart.Point{Step: e, Y: 0.3 + 0.64*t + 0.004*r.NormFloat64()})
		val.Points = append(val.Points, chart.Point{Step: e, Y: 0.3 + 0.58*t + 0.008*r.NormFloat64()})
		test.Points = append(test.Points, chart.Point{Step: e, Y: 0.3 + 0.57*t + 0.008*r.NormFloat64()})
	}
	s.Metrics = []Series{train, val, test}
	s.LR = []chart.Point{{Step: 1, Y: 0.003}}
	s.Rates = []Rate{{"edges/s", 1.21e6 * float64(workers), 3.1e6 * float64(workers)}, {"FLOP/s", 41e9, 287e9}, {"B/s", 9.1e9, 18.4e9}}
	names := []string{"sample", "fetch", "forward", "backward", "all-reduce", "optimizer", "idle", "evaluate", "program"}
	now := []string{"forward", "backward", "sample", "all-reduce"}
	for k := range workers {
		w := Worker{
			Rank: k, Epoch: s.Epoch, Step: s.Step, SeedsPerSec: 10300 + 500*r.NormFloat64(),
			EdgesPerSec: 1.21e6 + 5e4*r.NormFloat64(), Stage: now[k%len(now)], RSS: 412<<20 + int64(k)<<22,
		}
		share := []float64{0.21, 0.06, 0.24, 0.29, 0.04, 0.02, 0.05, 0.06, 0.01}
		for i, n := range names {
			w.Stages = append(w.Stages, StageShare{n, share[i] * (1 + 0.1*r.NormFloat64())})
		}
		s.Workers = append(s.Workers, w)
	}
	for e := max(full-2, 1); e <= full; e++ {
		s.Text = append(s.Text, fmt.Sprintf("epoch %d  loss %.3f  val %.3f", e, s.Loss[e*per-1].Y, val.Points[e-1].Y))
	}
	switch state {
	case screen.Failed:
		s.Detail = "worker 1 (pid 4711) ended in epoch 13, step 45, stage backward: killed by signal 9 (out of memory?); try a smaller batch"
	case screen.Interrupted:
		s.Detail = "interrupted; checkpoint of step 6,200 kept, continue with Resume"
	}
	return s
}
