package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// BenchmarkFrame measures one update of the panel: the cost of the drawing goroutine, which draws
// at most MaxFPS times per second. Before a frame there is a step, so that the loss is redrawn; or
// an epoch, so that metrics are redrawn; or neither ("same"), so that only the workers' rows
// change.
func BenchmarkFrame(b *testing.B) {
	frame := func(b *testing.B, steps int, next func(s *Snapshot)) {
		s := sampleRun(steps, 8, 1, screen.Running)
		n := &notebook{}
		n.liveData(&s)
		bytes := 0
		for b.Loop() {
			next(&s)
			d := n.liveData(&s)
			bytes = len(d.Data[protocol.MIMETextHTML].(string))
		}
		b.ReportMetric(float64(bytes), "bytes/frame")
	}
	step := func(s *Snapshot) {
		last := s.Loss[len(s.Loss)-1]
		s.Loss = append(s.Loss, chart.Point{Step: last.Step + 1, Y: last.Y})
	}
	for _, steps := range []int{10, 1000, 10000, 1000000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) { frame(b, steps, step) })
	}
	b.Run("epoch", func(b *testing.B) {
		frame(b, 10000, func(s *Snapshot) {
			step(s)
			val := &s.Metrics[1].Points
			*val = append((*val)[:19:19], chart.Point{Step: 20, Y: 1 / float64(len(s.Loss))})
		})
	})
	b.Run("same", func(b *testing.B) { frame(b, 10000, func(*Snapshot) {}) })
}

// BenchmarkPanel measures a second of a run that two workers train with 1000 steps per second. The
// first frames, which are drawn without rest, are left out. It reports the number of frames and the
// CPU time in ms, per second and per frame, minus the CPU time of the same second without a panel.
// The work of the kernel and the browser is not included.
func BenchmarkPanel(b *testing.B) {
	all := sampleRun(10000, 2, 1, screen.Running)
	second := func(update func(Snapshot)) time.Duration {
		before, start := cpuTime(), time.Now()
		s := all
		for i := 1; i <= 1000; i++ {
			s.Loss, s.Step = all.Loss[:5000+i], i%500
			update(s)
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Millisecond)))
		}
		return cpuTime() - before
	}
	var frames int
	var cpu time.Duration
	for b.Loop() {
		d := &screentest.Tape{}
		sink := New(screen.Options{Display: d})
		second(sink.Update)
		second(sink.Update)
		before := len(d.All())
		cpu += second(sink.Update) - second(func(Snapshot) {})
		frames += len(d.All()) - before
		if err := sink.Close(all); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(frames)/float64(b.N), "frames/s")
	b.ReportMetric(cpu.Seconds()*1e3/float64(b.N), "cpu-ms/s")
	b.ReportMetric(cpu.Seconds()*1e3/float64(frames), "cpu-ms/frame")
}

// BenchmarkUpdate measures the cost of a call for the training goroutine.
func BenchmarkUpdate(b *testing.B) {
	s := sampleRun(10000, 8, 1, screen.Running)
	sink := New(screen.Options{Display: &screentest.Tape{}})
	for b.Loop() {
		sink.Update(s)
	}
	if err := sink.Close(s); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFigure measures drawing the final PNG, once per run.
func BenchmarkFigure(b *testing.B) {
	s := sampleRun(10000, 8, 1, screen.Done)
	for b.Loop() {
		var p painter
		if _, err := p.picture(&s); err != nil {
			b.Fatal(err)
		}
	}
}
