package recorder

import (
	"context"
	"os"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/machine"
)

// runGPUsAfter is the time after which a run's GPUs are watched: a shorter run ends before a
// sample is shown, and should not start a helper process.
const runGPUsAfter = time.Second

// watchGPUs shows the state of the GPUs, once per second, in the panel of a run that may use GPUs.
// If they cannot be read the panel omits them; monitor.Watch reports the reason. end stops the
// helper process and waits for it.
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
			rec.panel.takeGPUs(rec.run.Config, s, rec.firstGPU)
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}

// takeGPUs adds a sample of the run's GPUs to the panel.
func (p *panel) takeGPUs(run runs.Config, s machine.Sample, first int) {
	if run.Device == "cpu" { // the run fell back to the CPU
		p.snap.GPUs = nil
		return
	}
	_, chosen := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	s.GPUs = gpusOfRun(s.GPUs, run.ID, first, run.Workers, chosen)
	p.gpus.Add(s, run.ID)
	shown := make([]live.GPU, len(s.GPUs))
	for i, g := range s.GPUs {
		shown[i] = live.GPU{GPU: g, Run: run.ID, Sum: machine.GPUText(p.gpus.GPU(g.Index))}
	}
	p.snap.GPUs = shown
}

// gpusOfRun returns the GPUs on which a worker of the run has memory. If the driver names none,
// for example in a container whose processes it does not know, it returns the GPUs that workers
// take in the order of the bus; if CUDA_VISIBLE_DEVICES is set (chosen), all that it may select.
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
