package watch

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/nvmlstat"
)

// answerWithin is the timeout after which a GPU is reported as not answering; a busy driver takes
// about 100 ms.
const answerWithin = time.Second

// monitorHelper writes the state of the GPUs, one line per interval, until in ends, which means
// that the parent process has ended or needs no more samples. It never waits for the driver; calls
// that hang end with the process.
func monitorHelper(ctx context.Context, out *cli.Output, in io.Reader, interval time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	out.Event("hello", machine.Hello{Protocol: machine.Protocol})
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
				out.Event("gpus", machine.Reading{Note: "GPUs are not shown: " + o.err.Error(), Final: true})
			}
		case <-tick.C:
		}
		switch {
		case r != nil:
			reading := machine.Reading{Driver: r.Driver(), GPUs: r.Read(answerWithin)}
			if len(reading.GPUs) == 0 {
				reading.Note, reading.Final = fmt.Sprintf("NVIDIA's driver %s is here and has no GPU", r.Driver()), true
			}
			out.Event("gpus", reading)
		case opening != nil:
			note := machine.Starting
			if took := time.Since(start); took > 5*time.Second {
				note = fmt.Sprintf("GPUs are not shown: NVIDIA's driver has not started for %.0f s; see what \"nvidia-smi\" says", took.Seconds())
			}
			out.Event("gpus", machine.Reading{Note: note})
		}
	}
}
