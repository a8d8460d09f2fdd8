package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// WatchOptions holds the options of Watch.
type WatchOptions struct {
	// Interval is the time between samples, 1 s by default and at least [MinInterval].
	Interval time.Duration
	// Helper is the program that reads GPUs; "" means the one that [FindCommand] returns.
	Helper string
}

// MinInterval is the shortest time between samples: the driver has new figures about every 100 ms.
const MinInterval = 100 * time.Millisecond

// Watch calls each with one sample per interval, the first after one interval, until ctx is done;
// then it returns ctx's error. Figures that cannot be read are missing from the samples, and a note
// says why; they do not end Watch. When Watch returns, its helper has ended.
func Watch(ctx context.Context, o WatchOptions, each func(Sample)) error {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Interval < MinInterval {
		return fmt.Errorf("an interval of %v is too short; it is %v or more", o.Interval, MinInterval)
	}
	ctx, cancel := context.WithCancel(ctx)
	var gone sync.WaitGroup
	defer gone.Wait()
	defer cancel()
	file, err := o.Helper, error(nil)
	if file == "" {
		file, err = findHelper()
	}
	var h *helper
	if err == nil {
		h = newHelper(file, o.Interval)
		gone.Go(func() { h.run(ctx) })
	}
	var host HostReader
	_, _ = host.Read() // the start of the first rates' interval
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			s := Sample{Time: now}
			var notes []string
			var hostErr error
			if s.Host, hostErr = host.Read(); hostErr != nil {
				s.Host = blankHost()
				notes = append(notes, "the host is not shown: "+hostErr.Error())
			}
			if h != nil {
				r := h.reading()
				s.GPUs = r.GPUs
				if r.Note != "" {
					notes = append(notes, r.Note)
				}
			} else {
				notes = append(notes, err.Error())
			}
			s.Note = strings.Join(notes, "; ")
			each(s)
		}
	}
}

// blankHost returns a host with unknown figures.
func blankHost() Host {
	x := Unknown()
	return Host{CPU: x, CPUThrottled: x, DiskRead: x, DiskWrite: x, DiskBusy: x, NetReceive: x, NetSend: x, Totals: Totals{CPUSeconds: x}}
}
