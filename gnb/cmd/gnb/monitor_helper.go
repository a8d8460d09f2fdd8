package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/nvmlstat"
)

// answerWithin is how long a GPU may take to be read before it is reported as one that does not answer: a
// driver that is asked by many takes some 100 ms.
const answerWithin = time.Second

// monitorHelper writes what GPUs do, a line an interval, until in ends: the process that started this one then
// has ended, or wants no more. It never waits for the driver; calls that hang are left behind when the process
// ends.
func monitorHelper(ctx context.Context, out *output, in io.Reader, interval time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	out.event("hello", machine.Hello{Protocol: machine.Protocol})
	type opened struct {
		r   *nvmlstat.Reader
		err error
	}
	opening, start := make(chan opened, 1), time.Now()
	go func() {
		r, err := nvmlstat.Open()
		opening <- opened{r, err}
	}()
	var r *nvmlstat.Reader
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-opening:
			r, opening = o.r, nil
			if o.err != nil {
				out.event("gpus", machine.Reading{Note: "GPUs are not shown: " + o.err.Error(), Final: true})
			}
		case <-tick.C:
		}
		switch {
		case r != nil:
			reading := machine.Reading{Driver: r.Driver(), GPUs: r.Read(answerWithin)}
			if len(reading.GPUs) == 0 {
				reading.Note, reading.Final = fmt.Sprintf("NVIDIA's driver %s is here and has no GPU", r.Driver()), true
			}
			out.event("gpus", reading)
		case opening != nil:
			note := machine.Starting
			if took := time.Since(start); took > 5*time.Second {
				note = fmt.Sprintf("GPUs are not shown: NVIDIA's driver has not started for %.0f s; see what \"nvidia-smi\" says", took.Seconds())
			}
			out.event("gpus", machine.Reading{Note: note})
		}
	}
}
