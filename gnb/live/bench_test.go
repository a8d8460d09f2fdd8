package live

import (
	"fmt"
	"testing"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// BenchmarkFrame is one update of the panel: what the drawing goroutine costs
// the machine, MaxFPS times a second at most. "same" is a frame between two
// steps, in which only the workers' rows change.
func BenchmarkFrame(b *testing.B) {
	for _, steps := range []int{10, 1000, 10000, 1000000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			s := sampleRun(steps, 8, 1, Running)
			all := s.Loss
			n := &notebook{}
			s.Loss = all[:max(len(all)-20000, len(all)/2)]
			n.liveData(&s)
			bytes := 0
			for b.Loop() {
				s.Loss = all[:min(len(s.Loss)+1, len(all))]
				s.Metrics[0].Name += " " // never the cached picture
				if len(s.Metrics[0].Name) > 20 {
					s.Metrics[0].Name = "train"
				}
				d := n.liveData(&s)
				bytes = len(d.Data[protocol.MIMETextHTML].(string))
			}
			b.ReportMetric(float64(bytes), "bytes/frame")
		})
	}
	b.Run("same", func(b *testing.B) {
		s := sampleRun(10000, 8, 1, Running)
		n := &notebook{}
		for b.Loop() {
			n.liveData(&s)
		}
	})
}

// BenchmarkUpdate is what the training side pays per call.
func BenchmarkUpdate(b *testing.B) {
	s := sampleRun(10000, 8, 1, Running)
	sink := New(Options{Display: &tape{}})
	for b.Loop() {
		sink.Update(s)
	}
	if err := sink.Close(s); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFigure is the final PNG, once per run.
func BenchmarkFigure(b *testing.B) {
	s := sampleRun(10000, 8, 1, Done)
	for b.Loop() {
		var p painter
		if _, _, _, err := p.PNG(&s); err != nil {
			b.Fatal(err)
		}
	}
}
