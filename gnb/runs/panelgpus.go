package runs

import (
	"context"
	"os"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
)

// runGPUsAfter is how long a run goes on before its GPUs are watched: a shorter one ends before there is
// anything to see, and is not to start a process for it.
const runGPUsAfter = time.Second

// watchGPUs shows, in the panel of a run that may use GPUs, what those do, once a second. Where they cannot be
// read the panel is without them; monitor.Watch says why. end ends it, and waits for the helper's end.
func (rec *Recorder) watchGPUs(ctx context.Context) (end func()) {
	if rec.run.Config.Device == "cpu" || rec.o.Quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTimer(runGPUsAfter)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		// Its only error is that ctx is done.
		_ = machine.Watch(ctx, machine.WatchOptions{}, func(s machine.Sample) {
			rec.mu.Lock()
			defer rec.mu.Unlock()
			rec.panel.takeGPUs(rec.run.Config, s, rec.o.FirstGPU)
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}

// takeGPUs puts the run's GPUs of a sample into the panel.
func (p *panel) takeGPUs(run Config, s machine.Sample, first int) {
	if run.Device == "cpu" { // it fell back
		p.snap.GPUs = nil
		return
	}
	_, chosen := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	s.GPUs = gpusOfRun(s.GPUs, run.ID, first, run.Workers, chosen)
	p.gpus.Add(s, run.ID)
	shown := make([]live.GPU, len(s.GPUs))
	for i, g := range s.GPUs {
		shown[i] = live.GPU{GPU: g, Run: run.ID, Sum: p.gpus.GPU(g.Index).String()}
	}
	p.snap.GPUs = shown
}

// gpusOfRun are those that a worker of the run has memory of. Where the driver names none, as in a container
// whose processes it does not know, they are those that workers take in the order of the bus; with
// CUDA_VISIBLE_DEVICES (chosen) all that may be meant.
func gpusOfRun(all []machine.GPU, run string, first, workers int, chosen bool) []machine.GPU {
	var own, inOrder []machine.GPU
	for i := range all {
		g := &all[i]
		for _, p := range g.Processes {
			if p.Run == run {
				own = append(own, *g)
				break
			}
		}
		if d := g.Index - first; chosen || d >= 0 && d < workers {
			inOrder = append(inOrder, *g)
		}
	}
	if len(own) > 0 {
		return own
	}
	return inOrder
}
