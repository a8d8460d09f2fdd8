package monitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Report is the result of [Watch].
type Report struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Samples are evenly spaced moments from the beginning to the end, at most 1440: all samples
	// or, after a long time, every second, fourth, eighth one and so on.
	Samples []Sample `json:"samples"`
	// Note explains why GPUs, or figures of the host, were missing at the end; "" if nothing was.
	Note string `json:"note,omitempty"`
	// Host and GPUs summarise all samples, including those that are not in Samples.
	Host HostSummary  `json:"host"`
	GPUs []GPUSummary `json:"gpus"`
}

// String returns a table of means and extremes.
func (r *Report) String() string {
	var b strings.Builder
	h := &r.Host
	fmt.Fprintf(&b, "watched for %v", r.End.Sub(r.Start).Round(100*time.Millisecond))
	if h.CPU.N > 0 {
		fmt.Fprintf(&b, ": CPU %s of %g cores, memory up to %s of %s", machine.Span(h.CPU, machine.Percent), h.Cores, phrase.Bytes(int64(h.Memory.Max)), phrase.Bytes(h.MemoryTotal))
	}
	b.WriteByte('\n')
	if h.DiskRead.N > 0 || h.NetReceive.N > 0 {
		fmt.Fprintf(&b, "disk: read %s/s, written %s/s; network: received %s/s, sent %s/s\n",
			phrase.Bytes(int64(h.DiskRead.Mean)), phrase.Bytes(int64(h.DiskWrite.Mean)), phrase.Bytes(int64(h.NetReceive.Mean)), phrase.Bytes(int64(h.NetSend.Mean)))
	}
	for i := range r.GPUs {
		u := &r.GPUs[i]
		fmt.Fprintf(&b, "GPU %d (%s): %s\n", u.Index, u.Name, machine.GPUText(u))
	}
	if r.Note != "" {
		b.WriteString(r.Note + "\n")
	}
	return phrase.Clean(strings.TrimRight(b.String(), "\n"))
}
