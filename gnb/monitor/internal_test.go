package monitor

import (
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
)

// A long watch takes a bounded amount of memory.
func TestReportKeepsEvenlySpacedSamples(t *testing.T) {
	w := &watch{o: Options{Quiet: true}, sink: live.NewMonitor(screen.Options{Quiet: true})}
	for i := range 10000 {
		w.add(machine.Sample{Time: time.Unix(int64(i), 0), Host: machine.Host{CPU: machine.Value(i%100) / 100}})
	}
	r := w.close(t.Context())
	if n := len(r.Samples); n > 1440 || n < 600 {
		t.Errorf("the report keeps %d of 10000 samples", n)
	}
	step := r.Samples[1].Time.Sub(r.Samples[0].Time)
	for i := 1; i < len(r.Samples); i++ {
		if d := r.Samples[i].Time.Sub(r.Samples[i-1].Time); d != step {
			t.Fatalf("samples %d and %d are %v apart, the first two %v", i-1, i, d, step)
		}
	}
	if r.Host.CPU.N != 10000 {
		t.Errorf("the summary has %d samples, want all", r.Host.CPU.N)
	}
}
